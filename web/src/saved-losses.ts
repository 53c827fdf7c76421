// SPDX-License-Identifier: MIT
// Lost events and damage of a saved page, by stream, as the server's (src/view/answers/losses.c).
import { big, type Json } from "./json";

type Fields = { [key: string]: Json };

/** Of packets that nobody counted: more than none. */
const UNKNOWN = 1e-9;

/** @streams: {"stream", "rows", "lost": begin, end, events and so on, "broken"}, as src/view/save/save-losses.c writes them. */
export function savedLosses(streams: Fields[], words: Fields): Fields {
  const [begin, end, count] = [words.begin as bigint, words.end as bigint, Number(words.count)];
  const size = Number(end - begin) + 1;
  const pixel = (ns: bigint) => Math.min(Math.max(Math.floor((Number(ns - begin) / size) * count), 0), count - 1);
  const found: Fields[] = [];
  for (const { stream, rows, lost, broken } of streams) {
    const events = new Float64Array(count);
    const damage = new Uint8Array(count);
    const list = lost as (number | bigint)[];
    for (let i = 0; i < list.length; i += 3) {
      const [from, to] = [big(list[i]), big(list[i + 1])];
      if (to < begin || from > end) continue;
      const [a, b] = [pixel(from), pixel(to)];
      for (let x = a; x <= b; x++) events[x] += Number(list[i + 2]) / (b - a + 1) || UNKNOWN;
    }
    if (broken !== null && big(broken) <= end) damage.fill(1, pixel(big(broken)));
    const runs: number[] = [];
    for (let x = 0, to: number; x < count; x = to) {
      for (to = x + 1; to < count && events[x] === events[to] && damage[x] === damage[to]; ) to++;
      if (events[x] || damage[x]) runs.push(x, to, events[x], damage[x]);
    }
    if (runs.length) found.push({ stream, rows, runs });
  }
  return { count, streams: found };
}
