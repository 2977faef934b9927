/** Countdowns: one clock ticks for all that are on the page. */

const TICK = 1000;
const CLOSE = 60_000;

const running = new Map();
let ticking;

/**
 * Let `node` tell how long it is until `due` (milliseconds since 1970, by this machine's clock) from now on.
 * `onClose` is called once, when a minute is left.
 */
export function startCountdown(node, due, onClose) {
  running.set(node, { due, onClose: due - Date.now() > CLOSE ? onClose : undefined });
  tick();
  ticking ??= setInterval(tick, TICK);
}

/** Let it stand still. */
export function stopCountdown(node) {
  running.delete(node);
  if (running.size === 0) {
    clearInterval(ticking);
    ticking = undefined;
  }
}

function tick() {
  for (const [node, countdown] of running) {
    const left = countdown.due - Date.now();
    node.textContent = left > 0 ? `${inWords(left)} left` : "Time is up";
    node.dataset.urgency = left > CLOSE ? "" : left > 10_000 ? "close" : "last";
    if (left <= CLOSE && countdown.onClose) {
      countdown.onClose();
      countdown.onClose = undefined;
    }
  }
}

/** A span of time, as exact as is of use: `2 d 4 h`, `3 h 12 min`, `4:32`. */
export function inWords(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days) return `${days} d ${hours % 24} h`;
  if (hours) return `${hours} h ${minutes % 60} min`;
  return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
}
