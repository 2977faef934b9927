/** One field of a form: its label, help, control and what is wrong with its answer. */

import { INCOMPLETE, buildControl } from "./controls.js";
import { element, firstVisible, helpText, say } from "./display.js";
import { afterPress } from "./pointer.js";
import { failures } from "./rules.js";

/** What to call a field: its label, else its name. */
export function titleOf(field) {
  return firstVisible(field.label, field.name) ?? "Unnamed field";
}

/** Whether a person is shown the field at all. */
export function isShown(field) {
  return !field.hidden && !field.disabled;
}

/** A field that can be answered. */
export class FieldView {
  #control;
  #message;
  #changed = false;
  #visited = false;
  #refusals = [];

  constructor(field, id) {
    this.field = field;
    const help = helpText(field.help, { id: `${id}-help` });
    this.#message = element("p", { id: `${id}-message`, class: "message" });
    const described = [help?.id, this.#message.id].filter(Boolean).join(" ");
    this.#control = buildControl(field, id, described);
    const attributes = { class: "field", "data-control": field.control, "data-name": field.name };
    // A tick that is missing is an answer, so only what can stay without one is called required.
    const required = field.rule?.required && field.control !== "confirm" && field.control !== "checkbox";
    const title = [
      element("span", { dir: "auto" }, titleOf(field)),
      required && element("span", { class: "tag" }, "required"),
    ];
    this.element =
      field.control === "checkbox"
        ? element("fieldset", { ...attributes, "aria-describedby": described }, element("legend", {}, ...title))
        : element("div", attributes, element("label", { for: id }, ...title));
    this.element.append(...[help, this.#control.element, this.#message].filter(Boolean));
    this.element.addEventListener("input", () => this.#onInput());
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget)) afterPress(() => this.visit());
    });
    if (field.default !== undefined) this.#judge();
  }

  /** Whether somebody has been at the answer. */
  get changed() {
    return this.#changed;
  }

  /** Whether the input is filled in only in part, so that there is nothing yet that could be sent. */
  get incomplete() {
    return this.#answer === INCOMPLETE;
  }

  /**
   * What to send: nothing (undefined) for an untouched answer, which the server has, and for none; null to take away
   * the answer that the field began with.
   */
  get entry() {
    if (this.#isUntouched) return undefined;
    return this.#answer ?? (this.field.default === undefined ? undefined : null);
  }

  get #isUntouched() {
    return !this.#changed && this.field.default !== undefined;
  }

  /** An untouched answer is what it began with, also where an input would spell it in another way. */
  get #answer() {
    return this.#isUntouched ? this.field.default : this.#control.read();
  }

  /** Show what the server said of the answer, until it is changed. */
  refuse(messages) {
    this.#refusals = messages;
    this.visit();
  }

  /** Show what is wrong from now on: somebody has passed by. */
  visit() {
    this.#visited = true;
    this.#judge();
  }

  focus() {
    this.#control.input?.focus();
  }

  #onInput() {
    this.#changed = true;
    this.#refusals = [];
    this.#judge();
  }

  /** While somebody types for the first time, what is wrong is a hint; after that it is an error. */
  #judge() {
    const value = this.#answer;
    const found = value === INCOMPLETE ? ["Complete this, or clear it."] : failures(this.field, value);
    const messages = this.#refusals.length ? this.#refusals : found;
    const failing = messages.length > 0 && (this.#visited || !this.#changed);
    say(this.#message, messages.join(" "));
    this.element.dataset.state = failing ? "error" : messages.length ? "hint" : "";
    for (const input of this.element.querySelectorAll("input, textarea, select")) {
      if (failing) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }
}

/** A field that is shown and cannot be answered. */
export function lockedView(field, id) {
  const title = element(
    "span",
    { id: `${id}-label`, class: "label" },
    element("span", { dir: "auto" }, titleOf(field)),
  );
  title.append(element("span", { class: "tag" }, "locked"));
  return element(
    "div",
    {
      class: "field locked",
      "data-control": field.control,
      "data-name": field.name,
      role: "group",
      "aria-labelledby": title.id,
    },
    title,
    helpText(field.help),
    element("p", { class: "held", dir: "auto" }, heldText(field)),
  );
}

function heldText(field) {
  const held = field.default;
  if (held === undefined) return "No answer";
  if (typeof held === "boolean") return held ? "Yes" : "No";
  const labelOf = (value) => field.choices?.find((choice) => choice.value === value)?.label || value;
  return Array.isArray(held) ? held.map(labelOf).join(", ") || "None" : String(labelOf(held));
}
