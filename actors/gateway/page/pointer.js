/** Whether a pointer is pressed: what moves on the page between press and release would take the click away. */

let pressed = false;

for (const type of ["pointerdown", "pointerup", "pointercancel"]) {
  addEventListener(type, () => (pressed = type === "pointerdown"), { capture: true });
}

/** Call `action` now, or, while a pointer is pressed, after the click that this becomes. */
export function afterPress(action) {
  if (!pressed) {
    action();
    return;
  }
  const released = new AbortController();
  const release = () => {
    released.abort();
    setTimeout(action);
  };
  for (const type of ["pointerup", "pointercancel"]) addEventListener(type, release, { signal: released.signal });
}
