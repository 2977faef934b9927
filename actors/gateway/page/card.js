/** One pending form: who asks what, how long there is, and its answer. */

import { CallError, Disconnected } from "./connection.js";
import { startCountdown, stopCountdown } from "./countdown.js";
import { announce, element, firstVisible, helpText, say } from "./display.js";
import { FieldView, isShown, lockedView, titleOf } from "./field.js";

/** The gateway takes messages of up to 1 MiB and closes the connection on a longer one. */
const LARGEST = 1_000_000;

let lastNumber = 0;

/** What to call a form: its label, else its name. */
export function titleOfForm(schema) {
  return firstVisible(schema.label, schema.name) ?? "Untitled form";
}

/**
 * A form on the page. `send(values)` puts an answer to the server and resolves with its result; `onAnswered` is called
 * when one was accepted, `onGone(reason)` when the server says that there is nothing to answer any more.
 */
export class FormCard {
  #number = ++lastNumber;
  #schema;
  #send;
  #onAnswered;
  #onGone;
  #body;
  #alert;
  #button;
  #views = new Map();
  #sending = false;
  #unconfirmed = false;
  #timer = element("span", { class: "countdown", role: "timer" });

  constructor(form, { send, onAnswered, onGone }) {
    this.form = form;
    this.title = titleOfForm(form.schema);
    this.#schema = form.schema;
    this.#send = send;
    this.#onAnswered = onAnswered;
    this.#onGone = onGone;
    this.#body = element("div", { id: this.#id("body"), class: "body", hidden: true });
    this.toggle = element(
      "button",
      { type: "button", class: "toggle", "aria-expanded": "false", "aria-controls": this.#body.id },
      element("span", { dir: "auto" }, this.title),
    );
    this.toggle.addEventListener("click", () => this.open(this.#body.hidden));
    this.element = element(
      "article",
      { class: "card panel", "aria-labelledby": this.#id("title"), "data-form": form.id },
      element("header", {}, element("h2", { id: this.#id("title") }, this.toggle), this.#origin()),
      this.#body,
    );
  }

  #id(part) {
    return `form-${this.#number}-${part}`;
  }

  #origin() {
    const asked = new Date(this.form.time);
    const when = element("time", { datetime: asked.toISOString(), title: asked.toLocaleString() });
    when.append(asked.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
    const from = this.form.from && element("span", {}, "from ", element("bdi", { class: "name" }, this.form.from));
    const kept =
      this.form.durable && element("span", { class: "durable", title: "It stays here if the server stops." }, "durable");
    return element("p", { class: "origin" }, from, element("span", {}, "asked at ", when), kept, this.#timer);
  }

  /** Whether an answer is under way. */
  get sending() {
    return this.#sending;
  }

  /** Whether an answer was sent of which nobody here knows what became of it. */
  get unconfirmed() {
    return this.#unconfirmed;
  }

  /** Whether somebody has begun to answer. */
  get changed() {
    return [...this.#views.values()].some((view) => view.changed);
  }

  get isOpen() {
    return !this.#body.hidden;
  }

  /** Show how long there is: `remaining` milliseconds from now, undefined for as long as one likes. */
  expireIn(remaining) {
    stopCountdown(this.#timer);
    if (remaining === undefined) {
      say(this.#timer, "no time limit");
      return;
    }
    startCountdown(this.#timer, Date.now() + remaining, () => announce(`One minute left to answer ${this.title}.`));
  }

  /** Show the fields, or the heading only. What was typed is kept. */
  open(wanted = true) {
    if (wanted && !this.#body.hasChildNodes()) this.#build();
    this.#body.hidden = !wanted;
    this.toggle.setAttribute("aria-expanded", String(wanted));
  }

  /** The card leaves the page. */
  dismantle() {
    stopCountdown(this.#timer);
    this.element.remove();
  }

  #build() {
    const fields = element("form", { novalidate: true, "aria-labelledby": this.#id("title") });
    this.#alert = element("div", { class: "refusal", role: "alert", tabindex: "-1" });
    this.#button = element("button", { type: "submit", class: "primary" }, "Send answer");
    fields.append(...this.#arrange(), this.#alert, element("p", { class: "actions" }, this.#button));
    fields.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#body.append(...[helpText(this.#schema.help), fields].filter(Boolean));
  }

  /** The fields in the order of the schema; neighbours of one group stand under its heading. */
  #arrange() {
    const groups = new Map((this.#schema.groups ?? []).map((group) => [group.name, group]));
    const parts = [];
    let current;
    this.#schema.fields.forEach((field, index) => {
      if (!isShown(field)) return;
      const id = this.#id(index);
      let view;
      if (field.locked) {
        view = lockedView(field, id);
      } else {
        this.#views.set(field.name, new FieldView(field, id));
        view = this.#views.get(field.name).element;
      }
      const group = groups.get(field.group);
      if (group === undefined) parts.push(view);
      else if (group === current) parts.at(-1).append(view);
      else parts.push(groupElement(group, view));
      current = group;
    });
    return parts;
  }

  async #submit() {
    if (this.#sending) return;
    const incomplete = [...this.#views.values()].filter((view) => view.incomplete);
    if (incomplete.length) {
      // The input gives no value, so there is nothing that the server could judge.
      incomplete.forEach((view) => view.visit());
      this.#complain(["An answer is filled in only in part."], incomplete[0]);
      return;
    }
    const values = this.#values();
    const broken = Object.keys(values).find((name) => [values[name]].flat().some(isBroken));
    if (broken !== undefined) {
      this.#complain(
        ["An answer holds half of a character, which no message can carry. Type it again."],
        this.#views.get(broken),
      );
    } else if (new TextEncoder().encode(JSON.stringify(values)).length > LARGEST) {
      this.#complain(["The answers are too long to be sent: together they may have a million bytes."]);
    } else {
      await this.#deliver(values);
    }
  }

  #values() {
    const entries = [...this.#views].map(([name, view]) => [name, view.entry]);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }

  async #deliver(values) {
    this.#alert.replaceChildren();
    this.#unconfirmed = false;
    this.#markSending(true);
    try {
      const result = await this.#send(values);
      if (result.success) this.#onAnswered();
      else if (result.error.reason === "rejected") this.#showErrors(result.error.errors);
      else this.#onGone(result.error.reason);
    } catch (error) {
      if (!(error instanceof CallError || error instanceof Disconnected)) throw error;
      this.#unconfirmed = error.unconfirmed ?? false;
      this.#complain([error.message]);
    } finally {
      this.#markSending(false);
    }
  }

  #markSending(sending) {
    this.#sending = sending;
    // Not `disabled`: the button would lose the focus.
    this.#button.setAttribute("aria-disabled", String(sending));
    say(this.#button, sending ? "Sending" : "Send answer");
  }

  /** Tell at each field what the server said of it, and above the button what no field on the page could tell. */
  #showErrors(errors) {
    const fields = new Map(this.#schema.fields.map((field) => [field.name, field]));
    const elsewhere = errors.filter((error) => !this.#views.has(error.field));
    let first;
    for (const [name, view] of this.#views) {
      const messages = errors.filter((error) => error.field === name).map((error) => error.message);
      view.refuse(messages);
      if (messages.length) first ??= view;
    }
    const refused = errors.length - elsewhere.length;
    const lines = elsewhere.map(
      ({ field, message }) => `${fields.has(field) ? titleOf(fields.get(field)) : field}: ${message}`,
    );
    if (refused === 1) lines.unshift("One answer was not accepted.");
    else if (refused > 1) lines.unshift(`${refused} answers were not accepted.`);
    this.#complain(lines, first);
  }

  #complain(lines, first) {
    this.#alert.replaceChildren(...lines.map((line) => element("p", { dir: "auto" }, line)));
    (first ?? this.#alert).focus();
  }
}

/** Half of a surrogate pair has no UTF-8. */
function isBroken(value) {
  return typeof value === "string" && !value.isWellFormed();
}

function groupElement(group, view) {
  const title = element("legend", { dir: "auto" }, firstVisible(group.label, group.name) ?? "More");
  return element("fieldset", { class: "group" }, title, helpText(group.help), view);
}
