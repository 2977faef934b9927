/** Looking at the server again and again, at a pace that neither it nor anybody else feels. */

/** The share of its time that the server may be kept busy with what one page looks at. */
const SHARE = 0.05;

const SOON = 150;

/**
 * Calls `look` with `seen` milliseconds in between, `unseen` while nobody sees the page (Infinity: not at all), and
 * less often where looking takes long. `look` must not raise.
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
    const began = performance.now();
    await this.#look();
    this.#looking = false;
    this.#least = (performance.now() - began) / SHARE;
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
