/** The line that tells how the connection is. */

import { byId, say } from "./display.js";

const WORDS = {
  connecting: "Connecting",
  open: "Connected",
  waiting: "Not connected",
  refused: "A token is needed",
};

let ticking;

/** Tell the state, and, until the next attempt, when that is. */
export function showState(connection) {
  const { state } = connection;
  const line = byId("connection");
  line.parentElement.dataset.state = state;
  byId("retry").hidden = state !== "waiting";
  say(line, WORDS[state]);
  clearInterval(ticking);
  const count = () => {
    const seconds = Math.ceil((connection.retryAt - Date.now()) / 1000);
    say(byId("retry-in"), state === "waiting" && seconds > 0 ? `again in ${seconds} s` : "");
  };
  count();
  if (state === "waiting") ticking = setInterval(count, 1000);
}
