/** Looking at the server again and again, at a pace that neither it nor anybody else feels. */

/** Milliseconds of pause for each thing that was looked at: what takes a server long is looked at less often. */
const EACH = 1;

const SOON = 150;

/**
 * Calls `look` with `seen` milliseconds in between, `unseen` while nobody sees the page (Infinity: not at all), and
 * less often where there is very much to see. `look` resolves with how many things it has seen, and must not reject.
 */
export class Poller {
  #look;
  #pauses;
  #timer;
  #least = 0;
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
    this.#least = EACH * (await this.#look());
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
    if (pause < Infinity) this.#timer = setTimeout(() => this.now(), Math.max(pause, this.#least));
  }
}
