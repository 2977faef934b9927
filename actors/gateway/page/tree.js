/** The live drawing of the actor tree: who is here, how everybody does, and who waits for whom. */

import { CallError } from "./connection.js";
import { arrange, byId, element, say } from "./display.js";
import { Poller, REST_FOR_EACH } from "./poller.js";
import { WaitArcs } from "./waits.js";

/** How many actors are drawn, how many of them beneath one other, and how many waits are told in words. */
const DRAWN = 400;
const SIBLINGS = 60;
const TOLD = 40;

/** How long to rest, in milliseconds, when the tree may not be read: a token may grant more some day. */
const REFUSED = 30_000;

const ROOT = "/";
const TERMINALS = "/terminals/";

export class TreeView {
  #connection;
  #poller = new Poller(() => this.#look(), { seen: 2_000, unseen: Infinity });
  #rows = new Map();
  #list = element("ul", { class: "actors" });
  #arcs;
  #last = "";
  #size = 0;

  constructor(connection) {
    this.#connection = connection;
    const box = byId("tree-box");
    if (matchMedia("(max-width: 68rem)").matches) box.open = false;
    box.addEventListener("toggle", () => this.now());
    byId("tree").append(this.#list);
    this.#arcs = new WaitArcs(byId("tree"));
  }

  /** Look at the tree now. */
  now() {
    this.#poller.now();
  }

  /** Something has changed: look before long. */
  soon() {
    this.#poller.soon();
  }

  async #look() {
    if (!byId("tree-box").open || document.hidden) return 0;
    let snapshot;
    try {
      snapshot = await this.#connection.call("system/tree");
    } catch (error) {
      if (!(error instanceof CallError)) return 0;
      this.#hide(error.message);
      return REFUSED;
    }
    const text = JSON.stringify(snapshot);
    if (text !== this.#last) this.#draw(snapshot);
    this.#last = text;
    return REST_FOR_EACH * this.#size;
  }

  /** Nothing can be drawn, and this is why. */
  #hide(why) {
    this.#last = "";
    byId("tree-drawn").hidden = true;
    say(byId("tree-count"), "");
    say(byId("tree-note"), why);
  }

  #draw({ root, waits = [] }) {
    byId("tree-drawn").hidden = false;
    say(byId("tree-note"), "");
    const known = indexOf(root);
    // Who waits is told first; a task outside of the tree that asks in nobody's name has no name either.
    const parties = waits.map(({ from: [waiter], to, message }) => ({
      from: waiter && known.find(waiter),
      to: known.find(to),
      message,
    }));
    const named = parties.flatMap(({ from, to }) => [from, to]).filter((party) => party !== undefined);
    const busy = new Set(named.flatMap(lineOf));
    const rows = new Map();
    const items = [this.#item(root, rows, busy)];
    const names = new Set(named.filter((party) => !known.actors.has(party)));
    for (const name of [...names].slice(0, SIBLINGS)) {
      items.push(this.#item({ path: name, kind: "name", state: "named" }, rows, busy));
    }
    arrange(this.#list, items);
    this.#rows = rows;
    this.#size = known.actors.size;
    say(byId("tree-count"), `${this.#size} ${this.#size === 1 ? "actor" : "actors"}`);
    arrange(byId("waits"), tell(parties));
    const drawable = parties.filter(({ from }) => from !== undefined);
    this.#arcs.draw(drawable.map(({ from, to }) => [this.#rowOf(from), this.#rowOf(to)]));
  }

  /** The row of a party, or of the nearest actor above it that is drawn. */
  #rowOf(party) {
    const drawn = lineOf(party).find((path) => this.#rows.has(path));
    return this.#rows.get(drawn)?.line;
  }

  /** The list item of an actor with those beneath it; its row, and theirs, are added to `rows`. */
  #item(actor, rows, busy) {
    const row = this.#rows.get(actor.path) ?? new Row(() => this.#arcs.redraw());
    rows.set(actor.path, row);
    row.show(actor);
    const all = actor.children ?? [];
    const chosen = all.length > SIBLINGS ? mostTelling(all, busy) : all;
    const room = Math.max(0, DRAWN - rows.size);
    const children = chosen.slice(0, room);
    row.beneath(
      children.map((child) => this.#item(child, rows, busy)),
      all.length - children.length,
    );
    return row.item;
  }
}

/** One actor in the list. */
class Row {
  #onToggle;
  #twist = element("button", { type: "button", class: "twist", "aria-expanded": "true" });
  #name = element("span", { class: "name", dir: "auto" });
  #kind = element("span", { class: "kind" });
  #facts = element("span", { class: "facts" });
  #list = element("ul");
  #more = element("li", { class: "note" });
  item = element("li");
  line = element(
    "div",
    { class: "actor" },
    element("span", { class: "dot", "aria-hidden": "true" }),
    this.#name,
    this.#kind,
    this.#facts,
  );

  constructor(onToggle) {
    this.#onToggle = onToggle;
    this.item.append(this.line);
    this.#twist.addEventListener("click", () => this.#toggle());
  }

  show({ path, kind, state, mailbox = 0, restarts = 0, operates }) {
    const facts = [
      state !== "running" && state !== "named" && state,
      mailbox > 0 && (mailbox === 1 ? "1 message waits" : `${mailbox} messages wait`),
      restarts > 0 && (restarts === 1 ? "began anew once" : `began anew ${restarts} times`),
      operates != null && `answers for ${operates}`,
    ];
    const name = state === "named" ? path : nameOf(path);
    this.line.dataset.state = state;
    say(this.#name, name);
    say(this.#kind, path === ROOT || kind === name ? "" : kind.replace(/actor$/, "") || kind);
    say(this.#facts, facts.filter(Boolean).join(", "));
    this.#twist.setAttribute("aria-label", `Beneath ${name}`);
  }

  beneath(items, left) {
    if (left > 0) {
      say(this.#more, `and ${left} more`);
      items.push(this.#more);
    }
    arrange(this.#list, items);
    if (items.length === 0) {
      this.#list.remove();
      this.#twist.remove();
    } else if (this.#list.parentElement === null) {
      this.line.prepend(this.#twist);
      this.item.append(this.#list);
    }
  }

  #toggle() {
    this.#list.hidden = !this.#list.hidden;
    this.#twist.setAttribute("aria-expanded", String(!this.#list.hidden));
    this.#onToggle();
  }
}

/** All actors by path, and how to find one by the word that a wait has for it: a path, or the name of a terminal. */
function indexOf(root) {
  const actors = new Map();
  const operators = new Map();
  const visit = (actor) => {
    actors.set(actor.path, actor);
    if (actor.operates != null) operators.set(actor.operates, actor.path);
    actor.children?.forEach(visit);
  };
  visit(root);
  const find = (word) => {
    const place = `${TERMINALS}${word.replaceAll("%", "%25").replaceAll("/", "%2F")}`;
    return [word, place, operators.get(word)].find((path) => actors.has(path)) ?? word;
  };
  return { actors, find };
}

/** A party and all above it. */
function lineOf(party) {
  const line = [party];
  if (!party.startsWith(ROOT)) return line;
  for (let end = party.lastIndexOf("/"); end > 0; end = party.lastIndexOf("/", end - 1)) line.push(party.slice(0, end));
  return [...line, ROOT];
}

function mostTelling(actors, busy) {
  const chosen = new Set([...actors.filter(({ path }) => busy.has(path)), ...actors].slice(0, SIBLINGS));
  return actors.filter((actor) => chosen.has(actor));
}

/** What a row calls the actor at that path, or the party that is a name only. */
function nameOf(path) {
  if (path === ROOT) return "greenroom";
  return path.startsWith(TERMINALS) ? terminalAt(path) : path.slice(path.lastIndexOf("/") + 1);
}

/** The name of the terminal whose actor is at that path. */
function terminalAt(path) {
  return path.slice(TERMINALS.length).replaceAll("%2F", "/").replaceAll("%25", "%");
}

function tell(parties) {
  const items = parties.slice(0, TOLD).map(({ from, to, message }) => {
    const name = (party) => element("b", { dir: "auto" }, party.startsWith(TERMINALS) ? terminalAt(party) : party);
    const waiter = from === undefined ? "Somebody outside" : name(from);
    return element("li", {}, waiter, " waits for ", name(to), element("span", { class: "kind" }, message));
  });
  if (parties.length > TOLD) items.push(element("li", { class: "note" }, `and ${parties.length - TOLD} more`));
  if (parties.length === 0) items.push(element("li", { class: "note" }, "Nobody waits for anybody."));
  return items;
}
