/**
 * Text from outside, on the page: as text, and as text that cannot pass for more than it is.
 *
 * Whatever is shown is made here, by `textContent` and `setAttribute`; nothing is ever parsed as markup.
 */

// ECMA-48: a control sequence, a control string up to its end, any other escape; ESC and a letter, or the one-byte form.
// A string that is never ended only loses its introducer, and is taken in one piece all the same, so that a text of
// nothing but introducers is not looked through from each of them.
const SEQUENCES =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])([^\x07\x1b\x9c]*)(\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]/g;
const CONTROL_SEQUENCE = /\x9b[0-?]*[ -/]*[@-~]/g;

// C0 but for what is white space to a page, DEL and C1; line and paragraph separators; embeddings, overrides and
// isolates of the bidirectional algorithm, by which a text could reorder what stands around it.
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

// What ends a line somewhere ends one here: joined, two lines might say something else.
const BREAKS = /\r\n?|[\x0b\x0c\x85\u2028\u2029]/g;

/** `text` as it may be shown. For what is read only: an answer, and what an input holds, never pass through here. */
export function shown(text) {
  const stripped = text.replace(SEQUENCES, (_, string, end) =>
    string === undefined || end !== undefined ? "" : string.replace(CONTROL_SEQUENCE, ""),
  );
  return stripped.replace(BREAKS, "\n").replace(CONTROLS, "");
}

/** The first of the texts (undefined ones left out) that has anything in it to see, or undefined. */
export function firstVisible(...texts) {
  return texts.find((text) => text !== undefined && shown(text).trim() !== "");
}

/** A paragraph of help, or null where there is none. */
export function helpText(text, attributes = {}) {
  return firstVisible(text) && element("p", { class: "help", dir: "auto", ...attributes }, text);
}

/**
 * An element. Attributes that are `undefined`, `null` or `false` are left out, `true` is an empty one; children are
 * nodes or texts.
 */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function drawn(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    node.setAttribute(name, value === true ? "" : shown(String(value)));
  }
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    node.append(typeof child === "string" ? shown(child) : child);
  }
  return node;
}

/** Let `node` hold `text` and nothing else; nothing happens if it does, so that it is not read out again. */
export function say(node, text) {
  const next = shown(text);
  if (node.textContent !== next) node.textContent = next;
}

/** Let `parent` hold just these children, in this order. Nothing is moved where they are in place, and the focus stays. */
export function arrange(parent, children) {
  if (parent.children.length === children.length && children.every((child, index) => parent.children[index] === child))
    return;
  const focused = document.activeElement;
  parent.replaceChildren(...children);
  if (parent.contains(focused)) focused.focus();
}

/** The element of that id, which the page has. */
export function byId(id) {
  return document.getElementById(id);
}

/** Read out by screen readers when they have finished what they say now. */
export function announce(text) {
  const line = byId("announcer");
  // The same words again are news again.
  line.textContent = "";
  requestAnimationFrame(() => say(line, text));
}
