/** The page: which terminal is looked at, and what comes and goes there. */

import { CallError, Connection } from "./connection.js";
import { byId, element, firstVisible, say, shown } from "./display.js";
import { Poller, REST_FOR_EACH } from "./poller.js";
import { Queue } from "./queue.js";
import { RunsView } from "./runs.js";
import { showState } from "./state.js";
import { TerminalList, chosenTerminal } from "./terminals.js";
import { askForTokens } from "./token.js";
import { TreeView } from "./tree.js";

const connection = new Connection(new URL("rpc", document.baseURI));
const terminals = new TerminalList(choose);
const tree = new TreeView(connection);
const runs = new RunsView(connection);
// Looking at the terminals also tells whether the connection still lives, so it never stops altogether.
const listing = new Poller(list, { seen: 4_000, unseen: 20_000 });

/** One for each terminal that was looked at: what was typed there is kept while another one is. */
const queues = new Map();

let current = null;
let attached = false;
let problem = "";

function choose(name) {
  // With a connection that has ended the attachment has, too.
  if (attached) connection.call("terminal/detach", { terminal: current }).catch(() => {});
  current = name;
  attached = false;
  problem = "";
  byId("queue").replaceChildren(...(name === null ? [] : [queueOf(name).list]));
  describe();
  attach();
}

function queueOf(name) {
  if (!queues.has(name)) {
    const list = element("ol", { class: "queue" });
    const answer = (id, values) => connection.call("terminal/answer", { terminal: name, id, values });
    queues.set(name, { list, forms: new Queue(list, answer, describe) });
  }
  return queues.get(name);
}

async function attach() {
  const name = current;
  if (name === null || connection.state !== "open") return;
  try {
    const { pending, remaining = {} } = await connection.call("terminal/attach", { terminal: name });
    if (name !== current) return;
    attached = true;
    problem = "";
    queueOf(name).forms.begin(pending, remaining);
  } catch (error) {
    if (name !== current || !(error instanceof CallError)) return;
    problem =
      error.code === "TARGET"
        ? "There is no terminal of this name. When there is one, it is shown at once."
        : error.message;
  }
  describe();
}

async function list() {
  try {
    const { terminals: known } = await connection.call("terminal/list");
    terminals.show(known);
    if (!attached && terminals.has(current)) attach();
    return REST_FOR_EACH * known.length;
  } catch (error) {
    if (error instanceof CallError) terminals.fail(error.message);
    return 0;
  }
}

/** Say at the top what is shown, and what there is to do. */
function describe() {
  const pending = current === null ? 0 : queueOf(current).forms.size;
  const name = current === null ? undefined : (firstVisible(current) ?? "(no name)");
  say(byId("title"), name ?? "Choose a terminal");
  say(byId("subtitle"), subtitle(pending));
  document.title = name === undefined ? "greenroom" : `${pending ? `(${pending}) ` : ""}${shown(name)} · greenroom`;
}

const CHOOSE = "A terminal is a person, a program or an agent that can be asked. Choose one to see what it is asked.";

const UNATTACHED = {
  connecting: "Connecting. What you type is kept.",
  open: "Looking for forms.",
  waiting: "Not connected. What you type is kept until the connection is back.",
  refused: "A token is needed to see what is asked here.",
};

function subtitle(pending) {
  if (current === null) return CHOOSE;
  if (problem) return problem;
  if (!attached) return UNATTACHED[connection.state];
  if (pending === 0) return "Nothing is waiting for an answer. New forms appear here by themselves.";
  return pending === 1 ? "One form is waiting for an answer." : `${pending} forms are waiting for an answer.`;
}

const HEARD = {
  "terminal/pending": (forms, { form, remaining }) => forms.add(form, remaining),
  "terminal/answered": (forms, { id }) => forms.remove(id, "answered"),
  "terminal/expired": (forms, { id, reason }) => forms.remove(id, reason),
  "terminal/withdrawn": (forms, { id }) => forms.remove(id, "withdrawn"),
};

connection.addEventListener("notification", ({ detail: { method, params } }) => {
  // What was told before the attachment's own answer is part of that.
  if (!attached || params?.terminal !== current) return;
  HEARD[method]?.(queueOf(current).forms, params);
  tree.soon();
  runs.soon();
  listing.soon();
});

connection.addEventListener("state", () => {
  attached = false;
  problem = "";
  if (connection.state === "open") {
    attach();
    listing.now();
    tree.now();
    runs.now();
  }
  showState(connection);
  describe();
});

byId("retry").addEventListener("click", () => connection.retry());
askForTokens(connection);
choose(chosenTerminal());
connection.connect();
