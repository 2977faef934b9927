"""The connection breaks and comes back; terminals are chosen; a token is entered where one is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from greenroom.actors.gateway.access import Access, AccessToken
from greenroom.protocol.access import Grants
from tests.page.conftest import Open
from tests.page.looking import card, form_of, message, notice, send
from tests.page.stage import Stage, staged

TOKEN = "k7/9+-xQ2~3mmvvZZ0pq"
TEXT = {"control": "text", "name": "x", "label": "Text"}


def test_a_broken_connection_comes_back_and_what_was_typed_is_still_there(stage: Stage, page: Page) -> None:
    fields = (TEXT, {"control": "password", "name": "pin", "label": "Pin"})
    asked = stage.ask(form_of(*fields), timeout=600)
    page.get_by_label("Text").fill("typed before")
    page.get_by_label("Pin").fill("hunter2")
    stage.break_connections()
    expect(page.locator("#connection")).to_have_text("Not connected")
    expect(page.locator("#subtitle")).to_contain_text("What you type is kept")
    page.get_by_label("Text").press("End")
    page.get_by_label("Text").press_sequentially(" and while it was away")
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("nothing was sent")
    stage.listen_again()
    expect(page.locator("#connection")).to_have_text("Connected", timeout=20_000)
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_label("Text")).to_have_value("typed before and while it was away")
    assert page.evaluate("[...Object.values(localStorage), ...Object.values(sessionStorage)]") == []
    send(page)
    assert asked.answer == {"x": "typed before and while it was away", "pin": "hunter2"}


def test_the_page_comes_back_by_itself_after_the_server_has_restarted(stage: Stage, page: Page) -> None:
    stage.ask(form_of(TEXT, label="Of the old server"))
    expect(card(page, "Of the old server")).to_be_visible()
    stage.break_connections()
    stage.stop()
    expect(page.locator("#connection")).to_have_text("Not connected")
    stage.start()
    stage.add(stage.home)
    expect(page.locator("#connection")).to_have_text("Connected", timeout=20_000)
    expect(notice(page)).to_contain_text("Of the old server ended while this page was not connected")
    asked = stage.ask(form_of(TEXT, label="Of the new server"))
    page.get_by_label("Text").fill("still here")
    send(page)
    assert asked.answer == {"x": "still here"}


def test_a_form_is_shown_once_however_often_it_is_told_of(stage: Stage, page: Page) -> None:
    stage.ask(form_of(TEXT, label="Early"))
    for _ in range(2):
        stage.break_connections()
        stage.listen_again()
        page.evaluate("dispatchEvent(new Event('online'))")
        expect(page.locator("#connection")).to_have_text("Connected", timeout=20_000)
    stage.ask(form_of(TEXT, label="Late"))
    expect(page.get_by_role("article")).to_have_count(2)


@pytest.mark.parametrize(
    ("chance", "delays"), [("1 - 2 ** -53", (1, 1, 2, 4, 8, 15, 15)), ("0", (1, 1, 1, 2, 4, 8, 8))]
)
def test_attempts_become_rare_and_are_spread_by_chance(
    stage: Stage, open_page: Open, chance: str, delays: tuple[int, ...]
) -> None:
    page = open_page(stage.url)
    page.add_init_script(f"Math.random = () => {chance};")
    page.clock.install()
    page.goto(stage.url)
    expect(page.locator("#connection")).to_have_text("Connected")
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    stage.break_connections()
    for seconds in delays:
        expect(page.locator("#connection")).to_have_text("Not connected")
        expect(page.locator("#retry-in")).to_have_text(f"again in {seconds} s")
        page.get_by_role("button", name="Try now").click()


def test_a_connection_that_is_silent_is_given_up(stage: Stage, open_page: Open) -> None:
    """Something in between holds both sockets open and lets nothing through any more."""
    page = open_page(stage.url)
    silent: list[bool] = []

    def between(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        route.on_message(lambda text: None if silent else server.send(text))
        server.on_message(lambda text: None if silent else route.send(text))

    page.route_web_socket("**/rpc", between)
    page.clock.install()
    page.goto(stage.url_of(stage.home))
    expect(page.locator("#connection")).to_have_text("Connected")
    page.evaluate(
        """() => {
            window.states = [];
            const line = document.querySelector("#connection");
            new MutationObserver(() => states.push(line.textContent)).observe(line, { childList: true });
        }"""
    )
    silent.append(True)
    page.clock.run_for(25_000)
    assert page.evaluate("states[0]") == "Not connected"
    silent.clear()
    page.clock.run_for(25_000)
    expect(page.locator("#connection")).to_have_text("Connected")
    stage.ask(form_of(TEXT))
    expect(card(page)).to_be_visible()


def test_an_answer_whose_outcome_is_not_known_is_neither_lost_nor_sent_twice(stage: Stage, open_page: Open) -> None:
    page = open_page(stage.url)
    answers: list[str | bytes] = []

    def between(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def pass_on(text: str | bytes) -> None:
            if "terminal/answer" in str(text):
                answers.append(text)
                if len(answers) == 1:
                    route.close()
                    return
            server.send(text)

        route.on_message(pass_on)

    page.route_web_socket("**/rpc", between)
    page.goto(stage.url_of(stage.home))
    asked = stage.ask(form_of(TEXT))
    page.get_by_label("Text").fill("once")
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("before the server had answered")
    expect(page.locator("#connection")).to_have_text("Connected")
    assert len(answers) == 1
    assert not asked.answered
    send(page)
    expect(notice(page)).to_contain_text("Thank you")
    assert asked.answer == {"x": "once"}


def test_a_form_that_was_answered_as_the_connection_broke_is_not_called_lost(stage: Stage, open_page: Open) -> None:
    page = open_page(stage.url)

    def between(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def pass_back(text: str | bytes) -> None:
            if '"success":true' in str(text):
                route.close()
            else:
                route.send(text)

        route.on_message(server.send)
        server.on_message(pass_back)

    page.route_web_socket("**/rpc", between)
    page.goto(stage.url_of(stage.home))
    asked = stage.ask(form_of(TEXT))
    page.get_by_label("Text").fill("arrived")
    send(page)
    expect(notice(page)).to_contain_text("your answer arrived before the connection broke")
    expect(notice(page)).not_to_contain_text("was not sent")
    assert asked.answer == {"x": "arrived"}


# ---------------------------------------------------------------- terminals


def test_a_terminal_is_chosen_and_the_url_keeps_it(stage: Stage, open_page: Open) -> None:
    stage.add("alpha", "beta")
    stage.ask(form_of(TEXT, label="For beta"), to="beta")
    page = open_page(stage.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Choose a terminal")
    expect(page.get_by_role("link", name="beta")).to_contain_text("1 pending")
    page.get_by_role("link", name="beta").click()
    expect(page).to_have_url(stage.url_of("beta"))
    expect(page.get_by_role("link", name="beta")).to_have_attribute("aria-current", "page")
    expect(card(page, "For beta")).to_be_visible()
    page.reload()
    expect(card(page, "For beta")).to_be_visible()
    page.get_by_role("link", name="alpha").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("alpha")
    expect(page.get_by_role("article")).to_have_count(0)
    page.go_back()
    expect(card(page, "For beta")).to_be_visible()


def test_what_was_typed_at_one_terminal_is_kept_while_another_is_looked_at(stage: Stage, open_page: Open) -> None:
    stage.add("alpha", "beta")
    kept, gone = (stage.ask(form_of(TEXT, label=label), to="alpha") for label in ("Kept", "Gone"))
    page = open_page(stage.url_of("alpha"))
    page.get_by_label("Text").fill("typed")
    page.get_by_role("link", name="beta").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("beta")
    gone.cancel()
    page.get_by_role("link", name="alpha").click()
    expect(page.get_by_label("Text")).to_have_value("typed")
    expect(notice(page)).to_contain_text("Gone ended while")
    send(page)
    assert kept.answer == {"x": "typed"}


ODD = ["a/b", "a?x=1", "a#b", "..", "50%", "{other}", "ü😀", "a b+c&d", "<b>x</b>"]


def test_a_name_may_hold_any_characters(stage: Stage, open_page: Open) -> None:
    """In the list, in the URL, and after a reload it is that terminal and no other."""
    stage.add(*ODD)
    page = open_page()
    for name in ODD:
        page.get_by_role("link", name=name, exact=True).click()
        asked = stage.ask(form_of(TEXT, label="Right here"), to=name)
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(page.get_by_role("article")).to_have_count(1)
        page.get_by_label("Text").fill(name)
        send(page)
        assert asked.answer == {"x": name}


def test_a_terminal_that_is_not_there_yet_is_waited_for(stage: Stage, open_page: Open) -> None:
    page = open_page(stage.url)
    page.clock.install()
    page.goto(stage.url_of("later"))
    expect(page.locator("#subtitle")).to_contain_text("There is no terminal of this name.")
    asked = stage.ask(form_of(TEXT), to="later")
    page.clock.run_for(5_000)
    page.get_by_label("Text").fill("here")
    send(page)
    assert asked.answer == {"x": "here"}


def test_one_terminal_of_very_many_is_found_by_its_name(stage: Stage, open_page: Open) -> None:
    stage.add(*(f"actor {number}" for number in range(150)))
    page = open_page(stage.url)
    links = page.get_by_role("navigation").get_by_role("link")
    expect(links).to_have_count(100)
    expect(page.get_by_text("and 51 more; find one by its name.")).to_be_visible()
    page.get_by_role("searchbox", name="Find a terminal").fill("ACTOR 14")
    expect(links).to_have_count(11)
    page.get_by_role("searchbox").fill("nobody")
    expect(page.get_by_text("No terminal is called that.")).to_be_visible()


# ---------------------------------------------------------------- tokens


def test_no_token_is_asked_for_where_none_is_wanted(stage: Stage, page: Page) -> None:
    expect(page.get_by_label("Access token")).to_be_hidden()
    stage.break_connections()
    expect(page.locator("#connection")).to_have_text("Not connected")
    expect(page.get_by_label("Access token")).to_be_hidden()


@pytest.fixture
def guarded() -> Iterator[Stage]:
    """A gateway that lets nobody in without a token."""
    with staged(Access([AccessToken.of("ada", TOKEN, Grants(admin=True))])) as stage:
        stage.begin()
        yield stage


def test_a_token_is_asked_for_where_one_is_wanted_and_is_kept_for_the_tab(guarded: Stage, open_page: Open) -> None:
    page = open_page()
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.on("websocket", lambda socket: urls.append(socket.url))
    page.goto(guarded.url_of(guarded.home))
    entry = page.get_by_label("Access token")
    expect(entry).to_be_focused()
    expect(page.locator("#connection")).to_have_text("A token is needed")
    entry.fill("guessed-and-wrong")
    entry.press("Enter")
    expect(entry).to_have_value("")
    expect(page.locator("#connection")).to_have_text("A token is needed")
    expect(entry).to_be_focused()
    entry.fill(f" {TOKEN} ")
    entry.press("Enter")
    expect(page.locator("#connection")).to_have_text("Connected")
    expect(entry).to_be_hidden()
    asked = guarded.ask(form_of(TEXT))
    page.get_by_label("Text").fill("let in")
    send(page)
    assert asked.answer == {"x": "let in"}
    page.reload()
    expect(page.locator("#connection")).to_have_text("Connected")
    assert page.evaluate("Object.values(localStorage)") == []
    assert not any(TOKEN in url or "wrong" in url for url in urls)
    expect(page.locator("body")).not_to_contain_text(TOKEN)


def test_who_may_not_read_the_tree_is_told_so_and_can_answer(open_page: Open) -> None:
    grants = Grants(attach=("ops*",), answer=("ops*",))
    with staged(Access([AccessToken.of("ada", TOKEN, grants)])) as stage:
        stage.begin()
        asked = stage.ask(form_of(TEXT))
        page = open_page()
        page.goto(stage.url_of(stage.home))
        page.get_by_label("Access token").fill(TOKEN)
        page.get_by_label("Access token").press("Enter")
        expect(page.locator("#tree-note")).to_contain_text("token")
        expect(page.get_by_text("Who waits for whom")).to_be_hidden()
        page.get_by_label("Text").fill("allowed")
        send(page)
        assert asked.answer == {"x": "allowed"}


def test_a_token_that_no_header_could_carry_is_not_sent(guarded: Stage, open_page: Open) -> None:
    page = open_page()
    page.goto(guarded.url)
    entry = page.get_by_label("Access token")
    expect(entry).to_be_focused()
    entry.fill("schlüssel")
    entry.press("Enter")
    expect(entry).to_have_value("schlüssel")
    assert entry.evaluate("(entry) => entry.validity.patternMismatch")


def test_a_local_rule_needs_no_connection(stage: Stage, page: Page) -> None:
    stage.ask(form_of({**TEXT, "rule": {"minimum": 3}}))
    page.get_by_label("Text").fill("a")
    stage.break_connections()
    page.get_by_label("Text").fill("ab")
    expect(message(page, "x")).to_have_text("Write at least 3 characters.")
