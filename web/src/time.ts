// SPDX-License-Identifier: MIT
// Times: BigInt nanoseconds from the clock's origin. Doubles are for differences only, which are small.

const S = 1_000_000_000n;

export interface Range {
  begin: bigint;
  end: bigint; // inclusive
}

export const span = (range: Range): number => Number(range.end - range.begin);

/** "08:30:00.123456789", with @digits of the fraction; before the origin: seconds. */
export function clock(ns: bigint, digits = 9): string {
  const fraction = (rest: bigint) => (digits ? "." + rest.toString().padStart(9, "0").slice(0, digits) : "");
  if (ns < 0n) return `-${-ns / S}${fraction(-ns % S)}`;
  const date = new Date(Number(ns / S) * 1000);
  if (Number.isNaN(date.getTime())) return `${ns / S}${fraction(ns % S)}`;
  const two = (n: number) => n.toString().padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}${fraction(ns % S)}`;
}

/** "2026-11-21" */
export function day(ns: bigint): string {
  const date = new Date(Number(ns / S) * 1000);
  if (ns < 0n || Number.isNaN(date.getTime())) return "";
  const two = (n: number) => n.toString().padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** "1.250 ms" */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Number.isInteger(ns) ? ns : ns.toFixed(1)} ns`;
  if (size < 1e6) return `${(ns / 1e3).toFixed(3)} µs`;
  if (size < 1e9) return `${(ns / 1e6).toFixed(3)} ms`;
  return `${(ns / 1e9).toFixed(3)} s`;
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

/** "10ms" as ns; a number alone is ns. The function returns null for any other text. */
export function parseDuration(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|h)?$/.exec(text.trim());
  const ns = found ? Math.round(Number(found[1]) * UNITS[found[2] ?? "ns"]) : NaN;
  return Number.isSafeInteger(ns) ? ns : null;
}

/** "seconds[.fraction]" as ns, exactly. */
function seconds(text: string): bigint | null {
  const found = /^(\d{1,11})(?:\.(\d{1,9}))?$/.exec(text);
  return found ? BigInt(found[1]) * S + BigInt((found[2] ?? "").padEnd(9, "0")) : null;
}

/**
 * A time as a person writes it: "08:30:00.5" (of the day on which the trace begins), seconds from the origin,
 * "+2s" after the begin, "-500ms" before the end, "50%". The function returns null for any other text.
 */
export function parseTime(text: string, whole: Range): bigint | null {
  const words = text.trim();
  const percent = /^(\d{1,3}(?:\.\d+)?)%$/.exec(words);
  if (percent) return whole.begin + BigInt(Math.round((span(whole) * Number(percent[1])) / 100));
  const offset = /^([-+])(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|h)?$/.exec(words);
  if (offset) {
    const ns = BigInt(Math.round(Number(offset[2]) * UNITS[offset[3] ?? "s"]));
    return offset[1] === "+" ? whole.begin + ns : whole.end - ns;
  }
  const time = /^(?:(\d{4})-(\d\d)-(\d\d)[ T])?(\d\d):(\d\d)(?::(\d\d(?:\.\d{1,9})?))?$/.exec(words);
  if (!time) return seconds(words);
  const date = new Date(Number(whole.begin / S) * 1000);
  if (time[1]) date.setFullYear(Number(time[1]), Number(time[2]) - 1, Number(time[3]));
  date.setHours(Number(time[4]), Number(time[5]), 0, 0);
  return BigInt(Math.floor(date.getTime() / 1000)) * S + (seconds(time[6] ?? "0") ?? 0n);
}

/** The first of 1, 2, 5 times powers of ten, or of round minutes and hours, that is at least @ns. */
export function niceStep(ns: number): bigint {
  for (const large of [60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400])
    if (ns > 30e9 && ns <= large * 1e9) return BigInt(large) * S;
  const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
  const factor = [1, 2, 5, 10].find((f) => f * power >= ns * 0.999999) ?? 10;
  return BigInt(Math.round(factor * power));
}

/** Digits of a fraction of a second that tell multiples of @step apart. */
export function digitsOf(step: bigint): number {
  let digits = 9;
  while (digits && step % 10n ** BigInt(10 - digits) === 0n) digits--;
  return digits;
}

/** @range moved and cut so that it lies in @whole; at least @least ns long. */
export function clamp(range: Range, whole: Range, least = 20n): Range {
  let { begin, end } = range;
  if (end - begin < least) end = begin + least;
  if (end - begin >= whole.end - whole.begin) return whole;
  if (begin < whole.begin) [begin, end] = [whole.begin, end + (whole.begin - begin)];
  if (end > whole.end) [begin, end] = [begin - (end - whole.end), whole.end];
  return { begin, end };
}

/** Zoom by @factor around the place @at, from 0 to 1. */
export function zoom(range: Range, factor: number, at: number, whole: Range): Range {
  const old = span(range);
  const size = BigInt(Math.max(20, Math.min(Math.round(old * factor), span(whole))));
  const begin = range.begin + BigInt(Math.round((old - Number(size)) * at));
  return clamp({ begin, end: begin + size }, whole);
}

export function move(range: Range, part: number, whole: Range): Range {
  const ns = BigInt(Math.round(span(range) * part));
  return clamp({ begin: range.begin + ns, end: range.end + ns }, whole);
}

export const placeOf = (ns: bigint, range: Range): number => Number(ns - range.begin) / (span(range) + 1);

export function timeAt(place: number, range: Range): bigint {
  return range.begin + BigInt(Math.round(span(range) * Math.min(Math.max(place, 0), 1)));
}
