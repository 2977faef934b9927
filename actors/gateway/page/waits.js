/** Who waits for whom, as arcs beside the tree: from the row of who waits to the row of what is waited for. */

import { drawn } from "./display.js";

const WIDTH = 64;
const NARROWEST = 14;
const GAP = 7;

/** How many arcs there may be before none of them could be followed. */
const MOST = 60;

export class WaitArcs {
  #container;
  #arcs = drawn("g");
  #svg;
  #pairs = [];

  constructor(container) {
    this.#container = container;
    const tip = drawn("path", { d: "M 6 0 L 0 3 L 6 6", class: "tip" });
    const marker = {
      id: "arrow",
      viewBox: "-1 -1 8 8",
      refX: 0,
      refY: 3,
      markerWidth: 8,
      markerHeight: 8,
      markerUnits: "userSpaceOnUse",
    };
    this.#svg = drawn("svg", { class: "arcs", width: WIDTH, "aria-hidden": "true" });
    this.#svg.append(drawn("defs", {}, drawn("marker", marker, tip)), this.#arcs);
    container.append(this.#svg);
    new ResizeObserver(() => this.redraw()).observe(container);
  }

  /** Draw an arc for each pair of rows; a row that is folded away is drawn as the one that it is folded into. */
  draw(pairs) {
    this.#pairs = pairs.filter(([from, to]) => from && to).slice(0, MOST);
    this.redraw();
  }

  /** The rows have moved. */
  redraw() {
    const box = this.#container.getBoundingClientRect();
    this.#svg.setAttribute("height", Math.round(box.height));
    const lines = this.#pairs.map((pair) => pair.map((row) => middleOf(row, box.top)));
    // Short arcs lie within long ones.
    lines.sort(([a, b], [c, d]) => Math.abs(a - b) - Math.abs(c - d));
    const step = Math.min(GAP, (WIDTH - NARROWEST) / Math.max(1, lines.length));
    this.#arcs.replaceChildren(...lines.map(([from, to], index) => arc(from, to, NARROWEST + step * (index + 1))));
  }
}

function middleOf(row, top) {
  let seen = row;
  while (seen.getClientRects().length === 0 && seen.parentElement) {
    // From a row's item to the list that it is in, and to the row of the item above.
    seen = seen.closest("ul")?.parentElement.firstElementChild ?? seen.parentElement;
  }
  const box = seen.getBoundingClientRect();
  return Math.round(box.top + box.height / 2 - top);
}

function arc(from, to, width) {
  const end = from === to ? to + 6 : to;
  return drawn("path", {
    class: "wait",
    d: `M 2 ${from} C ${width} ${from}, ${width} ${end}, 5 ${end}`,
    "marker-end": "url(#arrow)",
  });
}
