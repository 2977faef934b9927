/**
 * A field's rules, checked while somebody types: the server's own, in its own words.
 *
 * This is advice. The server decides, and what it refuses is shown in its words. One rule is left to it altogether:
 * `pattern`. Its sources come from outside, and a browser's RegExp may take minutes for one text; the server has a
 * matcher that cannot.
 */

import { RULES, TAKES } from "./wording.js";

const TEXTS = new Set(["text", "editor", "password"]);
const TEMPORAL = new Set(["date", "time", "datetime"]);
const LISTS = new Set(["checkbox", "file"]);
const STRINGS = new Set([...TEXTS, ...TEMPORAL, "color", "select"]);

const DATE = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])";
const TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?";
const SHAPES = {
  date: new RegExp(`^${DATE}$`),
  time: new RegExp(`^${TIME}$`),
  datetime: new RegExp(`^${DATE}T${TIME}$`),
  color: /^#[0-9A-Fa-f]{6}$/,
};

/** How far from a whole number of steps a value may be, since 0.3 / 0.1 is none exactly. */
const TOLERANCE = 1e-9;

/** The sentences that tell what is wrong with `value`, which is undefined where nothing was answered. */
export function failures(field, value) {
  if (value === undefined) return field.rule?.required ? [sentence(field, "required")] : [];
  if (!holds(field, value)) return [`Enter ${TAKES[field.control]}.`];
  return failedRules(field, value).map((rule) => sentence(field, rule));
}

function sentence(field, rule) {
  return RULES[field.control][rule].replaceAll("{limit}", String(field.rule[rule]));
}

/** Whether the field's control can hold the value, as far as an input of the page can give it another. */
export function holds(field, value) {
  switch (field.control) {
    case "number":
      return typeof value === "number";
    case "select":
      return !field.choices.some((choice) => choice.disabled && choice.value === value);
    default:
      return SHAPES[field.control]?.test(value) ?? true;
  }
}

/** The names of the rules that the value fails, in the server's order, `pattern` left out. */
export function failedRules(field, value) {
  const { control, rule = {} } = field;
  const measured = LISTS.has(control) || TEXTS.has(control) ? value.length : value;
  const bounded = control !== "color" && control !== "confirm" && control !== "select";
  const fits = (limit) => bounded && typeof limit === (TEMPORAL.has(control) ? "string" : "number");
  const checks = {
    minimum: fits(rule.minimum) && measured < rule.minimum,
    maximum: fits(rule.maximum) && measured > rule.maximum,
    step: control === "number" && rule.step !== undefined && isBetween(value, rule.step, rule.minimum ?? 0),
    email: Boolean(rule.email) && STRINGS.has(control) && !isEmail(value),
    url: Boolean(rule.url) && STRINGS.has(control) && !/^https?:\/\/\S+$/.test(value),
    alphanumeric: Boolean(rule.alphanumeric) && STRINGS.has(control) && !/^[0-9A-Za-z]+$/.test(value),
    integer: Boolean(rule.integer) && !isWhole(control, value),
  };
  return Object.keys(checks).filter((name) => checks[name]);
}

function isBetween(value, step, base) {
  const steps = (value - base) / step;
  return !Number.isFinite(steps) || Math.abs(steps - Math.round(steps)) > TOLERANCE;
}

function isEmail(value) {
  // One expression would try every dot of a long domain for itself.
  const [local, domain, ...more] = value.split("@");
  return (
    local !== "" && domain !== undefined && more.length === 0 && domain.slice(1, -1).includes(".") && !/\s/.test(value)
  );
}

function isWhole(control, value) {
  if (control === "number") return Number.isInteger(value);
  return !STRINGS.has(control) || /^[+-]?[0-9]+$/.test(value);
}
