/** The runs of workflows: which there are, and of those that are unfolded every phase and task. */

import { CallError } from "./connection.js";
import { arrange, byId, element, firstVisible, say } from "./display.js";
import { Poller, REST_FOR_EACH } from "./poller.js";

/** How many runs are listed, how many tasks of a phase are shown, and how many runs unfold by themselves. */
const LISTED = 30;
const SHOWN = 60;
const UNFOLDED = 3;

export class RunsView {
  #connection;
  #poller = new Poller(() => this.#look(), { seen: 2_000, unseen: Infinity });
  #rows = new Map();

  constructor(connection) {
    this.#connection = connection;
    byId("runs-box").addEventListener("toggle", () => this.now());
  }

  /** Look at the runs now. */
  now() {
    this.#poller.now();
  }

  /** Something has changed: look before long. */
  soon() {
    this.#poller.soon();
  }

  async #look() {
    if (!byId("runs-box").open || document.hidden) return 0;
    try {
      const { runs } = await this.#connection.call("run/list");
      this.#list(runs);
      const rows = [...this.#rows.values()].filter((row) => row.unfolded);
      const sizes = await Promise.all(rows.map((row) => this.#show(row)));
      return REST_FOR_EACH * sizes.reduce((sum, size) => sum + size, runs.length);
    } catch (error) {
      if (error instanceof CallError) say(byId("runs-note"), error.message);
      return 0;
    }
  }

  #list(runs) {
    // Those under way come first, and of the others those that changed last.
    const sorted = [...runs].sort((a, b) => Number(b.live ?? false) - Number(a.live ?? false) || b.updated - a.updated);
    const listed = sorted.slice(0, LISTED);
    this.#rows = new Map(listed.map((run, place) => [run.id, this.#rows.get(run.id) ?? this.#row(run, place)]));
    listed.forEach((run) => this.#rows.get(run.id).say(run));
    arrange(
      byId("runs"),
      [...this.#rows.values()].map((row) => row.item),
    );
    byId("runs-box").hidden = runs.length === 0;
    say(byId("runs-count"), String(runs.length));
    say(byId("runs-note"), runs.length > LISTED ? `and ${runs.length - LISTED} more` : "");
  }

  #row(run, place) {
    return new Row(run.id, Boolean(run.live) && place < UNFOLDED, () => this.soon());
  }

  /** Fetch a run and show it; how many tasks it has. */
  async #show(row) {
    try {
      const picture = await this.#connection.call("run/show", { run: row.id });
      row.show(picture);
      return picture.run.phases.reduce((sum, { tasks }) => sum + tasks.length, 0);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      return 0; // it was forgotten in between: the next list does not have it
    }
  }
}

/** One run in the list. */
class Row {
  id;
  item = element("li");
  #name = element("span", { class: "name", dir: "auto" });
  #status = element("span", { class: "kind" });
  #facts = element("span", { class: "facts" });
  #phases = element("ol", { class: "phases" });
  #box;
  #last = "";

  constructor(id, open, onUnfold) {
    this.id = id;
    const summary = element("summary", {}, this.#name, this.#status, this.#facts);
    this.#box = element("details", { class: "run", open }, summary, this.#phases);
    this.#box.addEventListener("toggle", () => this.#box.open && onUnfold());
    this.item.append(this.#box);
  }

  get unfolded() {
    return this.#box.open;
  }

  say({ id, name, status, live = false, tasks, over = 0 }) {
    const cutOff = !live && (status === "pending" || status === "running");
    this.#box.dataset.status = status;
    say(this.#name, firstVisible(name, id) ?? "(no name)");
    say(this.#status, status);
    say(this.#facts, cutOff ? "cut off, to be resumed" : tasks === undefined ? "" : `${over} of ${tasks} tasks are over`);
  }

  show({ run, waits = [] }) {
    const text = JSON.stringify([run, waits]);
    if (text === this.#last) return;
    this.#last = text;
    this.#phases.replaceChildren(...run.phases.map((phase) => phaseItem(phase, `${run.id}/${phase.id}`, waits)));
  }
}

function phaseItem({ name, status, tasks }, key, waits) {
  const items = tasks.slice(0, SHOWN).map((task) => {
    const awaited = waits.filter((wait) => wait.task === `${key}/${task.id}`).map(({ to }) => to);
    return line(task.name, task.status, factsOf(task, awaited));
  });
  if (tasks.length > SHOWN) items.push(element("li", { class: "note" }, `and ${tasks.length - SHOWN} more`));
  const item = line(name, status, []);
  item.append(element("ul", {}, ...items));
  return item;
}

function line(name, status, facts) {
  return element(
    "li",
    { "data-status": status },
    element("span", { class: "name", dir: "auto" }, name),
    element("span", { class: "kind" }, status),
    element("span", { class: "facts", dir: "auto" }, facts.join(", ")),
  );
}

/** What is to be said of a task besides its status. */
function factsOf({ status, attempts, retries = 0, recovered = 0, activity, result }, awaited) {
  const facts = [];
  if (attempts > 1) facts.push(`attempt ${attempts} of ${retries + 1 + recovered}`);
  if (status === "running") {
    if (activity?.note) facts.push(activity.note);
    if (activity?.progress) facts.push(progressText(activity.progress));
    facts.push(...awaited.map((party) => `waits for ${party}`));
  }
  if (result?.result.error) facts.push(result.result.error.message);
  return facts;
}

function progressText({ current, total, unit = "" }) {
  return `${current}${total === undefined ? "" : ` of ${total}`} ${unit}`.trim();
}
