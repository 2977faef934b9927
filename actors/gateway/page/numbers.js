/** Numbers as they are typed: never rounded on the way to the server. */

const DECIMAL = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const RADIX = /^0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)$/;

/**
 * The number that `text` spells, or null: it spells none, or one that a double would change (9007199254740993).
 *
 * What counts as a number is what ECMAScript reads as one (StringToNumber), but for the empty text and Infinity.
 */
export function exactNumber(text) {
  const spelled = text.trim();
  const number = Number(spelled);
  if (!Number.isFinite(number)) return null;
  if (RADIX.test(spelled)) return BigInt(spelled) === BigInt(number) ? number : null;
  return DECIMAL.test(spelled) && isSame(digitsOf(spelled), digitsOf(String(number))) ? number : null;
}

function isSame(left, right) {
  return left.digits === right.digits && (left.digits === "" || left.point === right.point);
}

/** The number's magnitude as 0.DIGITS times ten to the POINT, with no zero at either end of the digits. */
function digitsOf(text) {
  const [mantissa, power = "0"] = text.replace(/^[+-]/, "").toLowerCase().split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  const point = digits.length - fraction.length + Number(power);
  return { digits: digits.replace(/0+$/, ""), point };
}
