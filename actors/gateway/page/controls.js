/**
 * The twelve controls as native inputs.
 *
 * A built control is `{element, input, read}`: what goes into the field, what takes the focus (its id is the label's
 * `for`), and what is answered now: a value as it is sent, `undefined` for no answer, `INCOMPLETE` for an input that
 * somebody has begun to fill in and that gives no value yet. A text of white space only is no answer.
 */

import { element, firstVisible, helpText, say } from "./display.js";
import { exactNumber } from "./numbers.js";
import { holds } from "./rules.js";

export const INCOMPLETE = Symbol("incomplete");

/** The control of `field`; `id` is its input's, `described` the ids of what describes it. */
export function buildControl(field, id, described) {
  return BUILDERS[field.control](field, { id, "aria-describedby": described });
}

// With a last day that has four digits for the year, nobody can type in six.
const TEMPORAL = {
  date: { type: "date", max: "9999-12-31" },
  time: { type: "time" },
  datetime: { type: "datetime-local", max: "9999-12-31T23:59:59" },
};

const BUILDERS = {
  text: (field, attributes) => typed(field, "input", { ...attributes, type: "text" }),
  editor: (field, attributes) => typed(field, "textarea", { ...attributes, rows: 4 }),
  // A password's `mask` is for drivers that draw the input themselves; a browser hides it in its own way.
  password: (field, attributes) =>
    typed(field, "input", { ...attributes, type: "password", autocomplete: "new-password" }),
  number: buildNumber,
  date: (field, attributes) => buildTemporal(field, { ...attributes, ...TEMPORAL.date }, "YYYY-MM-DD"),
  time: (field, attributes) => buildTemporal(field, { ...attributes, ...TEMPORAL.time }, "HH:MM"),
  datetime: (field, attributes) => buildTemporal(field, { ...attributes, ...TEMPORAL.datetime }, "YYYY-MM-DDTHH:MM"),
  color: buildColor,
  confirm: buildConfirm,
  select: (field, attributes) => (field.open ? buildOpenSelect : buildSelect)(field, attributes),
  checkbox: buildCheckbox,
  file: buildFile,
};

/** An input whose text is the answer. */
function typed(field, tag, attributes) {
  const input = element(tag, { autocomplete: "off", placeholder: field.placeholder, dir: "auto", ...attributes });
  input.value = field.default ?? "";
  return { element: input, input, read: () => answered(input.value) };
}

function answered(text) {
  return text.trim() === "" ? undefined : text;
}

/**
 * A text input: one of type `number` would hide from the page what it cannot read, and the server is to say what is
 * wrong with it.
 */
function buildNumber(field, attributes) {
  // Keypads of digits have no sign.
  const inputmode = field.rule?.minimum >= 0 ? "decimal" : "text";
  const control = typed(field, "input", { ...attributes, type: "text", inputmode });
  const read = () => {
    const text = control.read();
    return text === undefined ? undefined : (exactNumber(text) ?? text);
  };
  return { ...control, read };
}

function buildTemporal(field, attributes, format) {
  // Limits are compared as texts: where one has seconds, 09:30 is earlier than 09:30:00.
  const exact = [field.default, field.rule?.minimum, field.rule?.maximum].some((text) => /:[0-9]{2}:/.test(text ?? ""));
  const control = typed(field, "input", { ...attributes, step: exact && 1 });
  const { input } = control;
  if (field.default !== undefined && input.value === "") {
    // A day that no calendar has (2026-02-31) is a date to the server, and to no date input.
    input.type = "text";
    input.placeholder = format;
    input.value = field.default;
  }
  const read = () => {
    if (input.validity.badInput) return INCOMPLETE;
    const value = control.read();
    // A browser leaves out seconds that are zero.
    return exact && /^(?:.*T)?[0-9]{2}:[0-9]{2}$/.test(value ?? "") ? `${value}:00` : value;
  };
  return { ...control, read };
}

/** A colour input always has a colour, so the text beside it is what tells whether there is an answer. */
function buildColor(field, attributes) {
  const control = typed(field, "input", { ...attributes, type: "text", placeholder: "#rrggbb", spellcheck: "false" });
  const swatch = element("input", {
    type: "color",
    "aria-label": `Pick a colour for ${firstVisible(field.label, field.name)}`,
  });
  const follow = () => {
    if (holds(field, control.input.value)) swatch.value = control.input.value;
  };
  control.input.addEventListener("input", follow);
  swatch.addEventListener("input", () => {
    control.input.value = swatch.value;
  });
  follow();
  return { ...control, element: element("div", { class: "color" }, control.input, swatch) };
}

function buildConfirm(field, attributes) {
  const input = element("input", { ...attributes, type: "checkbox" });
  input.checked = field.default ?? false;
  return { element: input, input, read: () => input.checked };
}

function buildSelect(field, attributes) {
  const help = choiceHelp(attributes);
  const input = element("select", {
    ...attributes,
    "aria-describedby": `${attributes["aria-describedby"]} ${help.id}`,
  });
  if (field.default === undefined || !field.rule?.required) {
    input.append(element("option", { value: "" }, field.default === undefined ? "Choose one" : "No answer"));
  }
  // Options are told apart by their place: a value may be any text, and an empty one would look like no answer.
  field.choices.forEach((choice, index) => {
    input.append(element("option", { value: index, disabled: choice.disabled }, choiceTitle(choice)));
  });
  const chosen = () => (input.value === "" ? undefined : field.choices[Number(input.value)]);
  const explain = () => say(help, chosen()?.help ?? "");
  if (field.default !== undefined) input.value = field.choices.findIndex((choice) => choice.value === field.default);
  input.addEventListener("input", explain);
  explain();
  return { element: element("div", {}, input, help), input, read: () => chosen()?.value };
}

function choiceTitle(choice) {
  return firstVisible(choice.label, choice.value) ?? "(empty)";
}

function choiceHelp({ id }) {
  return element("p", { id: `${id}-choice`, class: "help", dir: "auto" });
}

function buildOpenSelect(field, attributes) {
  const list = element("datalist", { id: `${attributes.id}-list` });
  const offered = field.choices.filter((choice) => !choice.disabled);
  for (const choice of offered) {
    const option = element("option", { label: choice.label });
    option.value = choice.value;
    list.append(option);
  }
  const help = choiceHelp(attributes);
  const described = `${attributes["aria-describedby"]} ${help.id}`;
  const control = typed(field, "input", { ...attributes, type: "text", list: list.id, "aria-describedby": described });
  // An input of one line drops line ends: a choice that has some is known by what is left of it.
  const oneLine = (text) => text.replace(/[\r\n]/g, "");
  const chosen = () => offered.find((choice) => oneLine(choice.value) === control.input.value);
  const explain = () => say(help, [chosen()?.label, chosen()?.help].filter(Boolean).join(": "));
  control.input.addEventListener("input", explain);
  explain();
  return {
    element: element("div", {}, control.input, list, help),
    input: control.input,
    read: () => control.read() && (chosen()?.value ?? control.read()),
  };
}

function buildCheckbox(field, attributes) {
  const boxes = field.choices.map((choice, index) => {
    const id = `${attributes.id}-${index}`;
    const help = helpText(choice.help, { id: `${id}-help` });
    const box = element("input", { type: "checkbox", id, disabled: choice.disabled, "aria-describedby": help?.id });
    box.checked = field.default?.includes(choice.value) ?? false;
    const label = element("label", { for: id, dir: "auto" }, choiceTitle(choice));
    return { choice, box, row: element("div", { class: "tick" }, box, label, help) };
  });
  return {
    element: element("div", { class: "ticks" }, ...boxes.map(({ row }) => row)),
    input: boxes.find(({ box }) => !box.disabled)?.box,
    read: () => boxes.filter(({ box }) => box.checked).map(({ choice }) => choice.value),
  };
}

function buildFile(field, attributes) {
  const note = element(
    "p",
    { id: `${attributes.id}-note`, class: "help" },
    "Only the names are sent, not what is in the files.",
  );
  const input = element("input", {
    ...attributes,
    type: "file",
    multiple: field.multiple,
    accept: field.accept?.join(","),
    "aria-describedby": `${attributes["aria-describedby"]} ${note.id}`,
  });
  const read = () => (input.files.length ? Array.from(input.files, (file) => file.name) : undefined);
  return { element: element("div", {}, input, note), input, read };
}
