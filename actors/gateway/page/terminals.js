/** The choice of a terminal. The page's URL keeps it, as `?terminal=NAME`; a name may hold any characters. */

import { arrange, byId, element, firstVisible, say } from "./display.js";

/** How many terminals are listed; the others are found by name. */
const LISTED = 100;

/** From how many terminals on there is a field to find one. */
const MANY = 9;

/** The terminal that the page's URL names, or null. */
export function chosenTerminal() {
  return new URL(location.href).searchParams.get("terminal");
}

/** The list of terminals. `onChoose(name)` is called when another one is chosen, also by going back. */
export class TerminalList {
  #terminals = [];
  #links = new Map();
  #onChoose;

  constructor(onChoose) {
    this.#onChoose = onChoose;
    byId("filter").addEventListener("input", () => this.#draw());
    addEventListener("popstate", () => this.#choose());
    if (matchMedia("(max-width: 44rem)").matches && chosenTerminal() !== null) byId("terminals-box").open = false;
  }

  /** What there is now: `{name, pending}` each. */
  show(terminals) {
    this.#terminals = terminals;
    this.#draw();
  }

  /** The terminals cannot be listed, and this is why. */
  fail(message) {
    say(byId("terminals-note"), message);
  }

  has(name) {
    return this.#terminals.some((terminal) => terminal.name === name);
  }

  #choose() {
    this.#draw();
    this.#onChoose(chosenTerminal());
  }

  #draw() {
    const wanted = byId("filter").value.trim().toLowerCase();
    const found = this.#terminals.filter(({ name }) => name.toLowerCase().includes(wanted));
    const listed = found.slice(0, LISTED);
    this.#links = new Map(listed.map(({ name }) => [name, this.#links.get(name) ?? this.#link(name)]));
    arrange(
      byId("terminals"),
      listed.map((terminal) => this.#row(terminal)),
    );
    byId("filter-box").hidden = this.#terminals.length < MANY;
    say(byId("terminals-count"), String(this.#terminals.length));
    say(byId("terminals-note"), noteOf(this.#terminals.length, found.length));
  }

  #link(name) {
    const link = element(
      "a",
      { href: urlOf(name) },
      element("span", { dir: "auto", class: "name" }, firstVisible(name) ?? "(no name)"),
    );
    link.append(element("span", { class: "count" }));
    link.addEventListener("click", (event) => this.#onClick(event, name));
    element("li", {}, link);
    return link;
  }

  #row({ name, pending }) {
    const link = this.#links.get(name);
    if (name === chosenTerminal()) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    say(link.lastChild, pending ? `${pending} pending` : "");
    return link.parentElement;
  }

  #onClick(event, name) {
    // With a modifier a link opens elsewhere, as links do.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (name === chosenTerminal()) return;
    history.pushState(null, "", urlOf(name));
    this.#choose();
    byId("title").focus();
  }
}

function urlOf(name) {
  return `?${new URLSearchParams({ terminal: name })}`;
}

function noteOf(all, found) {
  if (all === 0) return "There is no terminal yet.";
  if (found === 0) return "No terminal is called that.";
  return found > LISTED ? `and ${found - LISTED} more; find one by its name.` : "";
}
