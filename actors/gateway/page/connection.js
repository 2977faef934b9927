/** The page's connection to the gateway: JSON-RPC calls and notifications over one WebSocket that comes back by itself. */

import { tokenHeaders, tokenProtocols } from "./token.js";

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;

/** How long a handshake may take. */
const OPENING = 10_000;

/** How long a call may take. One without an answer tells that the connection is dead, however open it looks. */
const ANSWERING = 20_000;

/** A connection that has lasted this long begins with the first delay again when it breaks. */
const STEADY = 5_000;

/** What the gateway refused a call with; `code` is greenroom's, not JSON-RPC's number. */
export class CallError extends Error {
  constructor({ message, data }) {
    super(message);
    this.code = data?.code;
  }
}

/** There was no connection, or (`unconfirmed`) it ended before the call was answered: nobody knows what became of it. */
export class Disconnected extends Error {
  constructor(unconfirmed) {
    super(
      unconfirmed
        ? "The connection broke before the server had answered. If the form is still here when it is back, send it again."
        : "There is no connection, so nothing was sent. Send it again when there is one.",
    );
    this.unconfirmed = unconfirmed;
  }
}

/**
 * Events: `state` whenever the state changes, `notification` with `{method, params}` as its detail.
 *
 * The state is `connecting`, `open`, `waiting` (until `retryAt`, milliseconds since 1970) or `refused` (the gateway
 * wants a token, or another one).
 */
export class Connection extends EventTarget {
  #url;
  #socket = null;
  #calls = new Map();
  #lastId = 0;
  #failures = 0;
  #openedAt = Infinity;
  #timer;

  constructor(url) {
    super();
    this.#url = url;
    this.state = "connecting";
    this.retryAt = 0;
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => document.hidden || this.retry());
  }

  /** Connect; from then on the connection keeps coming back. */
  connect() {
    clearTimeout(this.#timer);
    const url = new URL(this.#url);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url, tokenProtocols());
    this.#socket = socket;
    this.#timer = setTimeout(() => this.#lose(socket), OPENING);
    socket.addEventListener("open", () => this.#onOpen(socket));
    socket.addEventListener("message", (event) => socket === this.#socket && this.#take(JSON.parse(event.data)));
    socket.addEventListener("close", () => this.#lose(socket));
    this.#become("connecting");
  }

  /** Try again now instead of later. */
  retry() {
    if (this.state === "waiting") this.connect();
  }

  /** Call a method. Rejects with CallError or Disconnected; the wait ends after 20 s at the latest. */
  call(method, params = {}) {
    const socket = this.#socket;
    // Between the server's close and the event that tells of it, the socket is neither open nor lost.
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Disconnected(false));
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#lose(socket), ANSWERING);
      this.#calls.set(id, { resolve, reject, timer });
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  #onOpen(socket) {
    if (socket !== this.#socket) return;
    clearTimeout(this.#timer);
    this.#openedAt = Date.now();
    this.#become("open");
  }

  #take(message) {
    if (message.method !== undefined) {
      this.dispatchEvent(new CustomEvent("notification", { detail: message }));
      return;
    }
    const call = this.#calls.get(message.id);
    if (call === undefined) {
      if (message.error) console.error("The gateway could not read a message:", message.error.message);
      return;
    }
    this.#calls.delete(message.id);
    clearTimeout(call.timer);
    if (message.error) call.reject(new CallError(message.error));
    else call.resolve(message.result);
  }

  /** The socket is gone, or as good as gone. */
  #lose(socket) {
    if (socket !== this.#socket) return;
    clearTimeout(this.#timer);
    this.#socket = null;
    socket.close();
    const wasOpen = this.state === "open";
    if (Date.now() - this.#openedAt > STEADY) this.#failures = 0;
    this.#openedAt = Infinity;
    for (const call of this.#calls.values()) {
      clearTimeout(call.timer);
      call.reject(new Disconnected(true));
    }
    this.#calls.clear();
    this.#wait();
    if (!wasOpen) this.#askWhy();
  }

  #wait() {
    // Half of the delay is chance, so that not all pages come back to a restarted server at the same moment.
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.#failures) * (0.5 + Math.random() / 2);
    this.#failures += 1;
    this.retryAt = Date.now() + delay;
    this.#timer = setTimeout(() => this.connect(), delay);
    this.#become("waiting");
  }

  /** A browser tells no script why a handshake failed; a plain request to the same place does. */
  async #askWhy() {
    try {
      const response = await fetch(this.#url, { cache: "no-store", headers: tokenHeaders() });
      if (response.status !== 401 || this.state !== "waiting") return;
    } catch {
      return;
    }
    clearTimeout(this.#timer);
    this.#become("refused");
  }

  #become(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}
