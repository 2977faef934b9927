/** Looking at the server again and again, at a pace that neither it nor anybody else feels. */

/** Milliseconds of rest for each thing that was looked at: what takes a server long is looked at less often. */
export const REST_FOR_EACH = 1;

const SOON = 150;

/**
 * Calls `look` with `seen` milliseconds in between, `unseen` while nobody sees the page (Infinity: not at all).
 * `look` resolves with the milliseconds for which it is to rest at least, and must not reject.
 */
export class Poller {
  #look;
  #pauses;
  #timer;
  #rest = 0;
  #looking = false;
  #hurried = false;

  constructor(look, { seen, unseen }) {
    this.#look = look;
    this.#pauses = { seen, unseen };
    document.addEventListener("visibilitychange", () => document.hidden || this.now());
  }

  /** Look now. */
  async now() {
    if (this.#looking) return;
    clearTimeout(this.#timer);
    this.#looking = true;
    this.#hurried = false;
    this.#rest = await this.#look();
    this.#looking = false;
    this.#wait(this.#hurried ? SOON : document.hidden ? this.#pauses.unseen : this.#pauses.seen);
  }

  /** Something has changed: look before long. */
  soon() {
    if (this.#hurried || document.hidden) return;
    this.#hurried = true;
    if (!this.#looking) this.#wait(SOON);
  }

  #wait(pause) {
    clearTimeout(this.#timer);
    if (pause < Infinity) this.#timer = setTimeout(() => this.now(), Math.max(pause, this.#rest));
  }
}
