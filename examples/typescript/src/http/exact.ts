// A JavaScript number holds 15 digits for sure. JSON.parse makes 9007199254740992 of
// 9007199254740993, in silence, and in an amount of money that is a mistake. So an
// integer that would lose a digit is read as a bigint here, and written as it was.
// A fraction stays a number: no agent keeps one in its state.

// Strings are matched first, so that digits in them are left alone.
const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

// U+0000 is in no text of the API's, so nothing else can look like this.
const mark = '\u0000';
const marked = '"\\u0000';

/** JSON.parse, but integers keep every digit. */
export function parse(text: string): unknown {
  const safe = text.replace(token, (t) => (/^-?\d+$/.test(t) && !Number.isSafeInteger(Number(t)) ? `${marked}${t}"` : t));
  return JSON.parse(safe, (_, value: unknown) => (typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(1)) : value));
}

/** JSON.stringify, but it takes bigints. */
export function stringify(value: unknown): string {
  const text = JSON.stringify(value, (_, v: unknown) => (typeof v === 'bigint' ? `${mark}${v}` : v));
  return text.replace(token, (t) => (t.startsWith(marked) ? t.slice(marked.length, -1) : t));
}
