/** The forms that are pending at one terminal, as a list on the page. */

import { FormCard } from "./card.js";
import { announce, byId, element, say } from "./display.js";

/** How many forms are on the page at once; the others follow as these go. */
const SHOWN = 50;

/** How long a notice of a form that has gone stays, in milliseconds. */
const LINGER = 12_000;

const REASONS = {
  answered: "was answered elsewhere.",
  accepted: "was answered. Thank you.",
  withdrawn: "was withdrawn: whoever asked needs no answer any more.",
  timeout: "has expired: its time was up.",
  stopped: "was taken away before anybody answered.",
  removed: "has ended: its terminal was removed.",
  restarted: "has ended: its terminal began anew.",
  target: "has ended: its terminal is gone.",
  unknown: "is not pending any more: somebody answered it, or it was taken back.",
  missed: "ended while this page was not connected to it.",
  unconfirmed: "is not pending any more: your answer arrived before the connection broke, or somebody else's did.",
};

/**
 * `list` is the list on the page, `answer(id, values)` puts an answer to the server, `onChange` is called when the
 * number of pending forms has changed.
 */
export class Queue {
  #list;
  #answer;
  #onChange;
  #cards = new Map();

  constructor(list, answer, onChange) {
    this.#list = list;
    this.#answer = answer;
    this.#onChange = onChange;
  }

  /** How many forms are pending. */
  get size() {
    return this.#cards.size;
  }

  /**
   * Start anew from what is pending: `remaining` has the milliseconds left of those that expire. What was here before
   * and still is keeps its place and what was typed.
   */
  begin(pending, remaining) {
    const ids = new Set(pending.map((form) => form.id));
    for (const [id, card] of this.#cards) {
      if (!ids.has(id) && !card.sending) this.#end(card, card.unconfirmed ? "unconfirmed" : "missed");
    }
    for (const form of pending) this.#put(form, remaining[form.id]);
    this.#settle();
  }

  /** A form was parked. */
  add(form, remaining) {
    if (!this.#cards.has(form.id)) announce(`A new form is waiting: ${this.#put(form, remaining).title}.`);
    this.#settle();
  }

  /** A form has ended. If it was by an answer from here, the answer's own result tells. */
  remove(id, reason) {
    const card = this.#cards.get(id);
    if (card === undefined || (card.sending && reason === "answered")) return;
    this.#end(card, reason);
    this.#settle();
  }

  #put(form, remaining) {
    let card = this.#cards.get(form.id);
    if (card === undefined) {
      const leave = (reason) => {
        if (this.#cards.get(form.id) !== card) return;
        this.#end(card, reason);
        this.#settle();
      };
      card = new FormCard(form, {
        send: (values) => this.#answer(form.id, values),
        onAnswered: () => leave("accepted"),
        onGone: leave,
      });
      this.#cards.set(form.id, card);
    }
    card.expireIn(remaining);
    return card;
  }

  /** Put a notice in the card's place: it tells what became of the form, and stays if something typed is lost. */
  #end(card, reason) {
    this.#cards.delete(card.form.id);
    const place = card.element.parentElement;
    const lost = card.changed && reason !== "accepted" && reason !== "unconfirmed";
    const text = `${REASONS[reason] ?? `has ended: ${reason}.`}${lost ? " What you had typed was not sent." : ""}`;
    announce(`${card.title} ${text}`);
    if (place === null) {
      card.dismantle();
      return;
    }
    const focused = place.contains(document.activeElement);
    const close = element("button", { type: "button", class: "quiet" }, "Dismiss");
    const notice = element("p", { class: "gone panel", "data-reason": reason, tabindex: "-1" });
    notice.append(element("span", {}, element("strong", { dir: "auto" }, card.title), ` ${text}`), close);
    card.dismantle();
    place.replaceChildren(notice);
    close.addEventListener("click", () => this.#clear(place));
    if (focused) this.#moveFocus(place, notice, reason);
    if (!lost) setTimeout(() => this.#clear(place), LINGER);
  }

  /** Who was in a form that has gone goes on with the next one if it was answered, else learns what happened. */
  #moveFocus(place, notice, reason) {
    const next = this.#cards.values().next().value;
    if (reason !== "accepted" || next === undefined) {
      notice.focus();
      return;
    }
    this.#settle();
    next.open();
    next.toggle.focus();
  }

  #clear(place) {
    const focused = place.contains(document.activeElement);
    place.remove();
    if (focused) (this.#cards.values().next().value?.toggle ?? byId("title")).focus();
  }

  /** Let the page show the oldest forms, one of them open. */
  #settle() {
    const oldest = [...this.#cards.values()].slice(0, SHOWN);
    for (const card of oldest) {
      if (!card.element.isConnected && card.element.parentElement === null) {
        this.#list.append(element("li", {}, card.element));
      }
    }
    if (!oldest.some((card) => card.isOpen)) oldest[0]?.open();
    const more = this.size - oldest.length;
    const note = byId("more");
    note.hidden = more <= 0;
    say(note, `and ${more} more; they come up as these are answered.`);
    this.#onChange();
  }
}
