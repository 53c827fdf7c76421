// SPDX-License-Identifier: MIT
// The rows of a saved page: states as they are, and pictures of them.
import type { Json } from "./json";

type Fields = { [key: string]: Json };

interface Row {
  head: Json[]; // id, parent, kind, number, name, origin
  states: number[]; // offset, duration, kind, detail, and so on
}

const FIELDS = 4;
/** Kinds of states in which a row is active: history.h. */
const ACTIVE = new Set([2, 3, 4, 5, 6, 14, 15, 16, 17, 18, 21]);
/** Kinds of states whose detail is a number of a name. */
const NAMED = new Set([4, 5, 6, 8, 9, 10, 11, 12, 13, 15]);
const READY = { ready: true, read: 0 };

/** The first state that ends after a time, as an index. */
function first(states: number[], after: number): number {
  let [low, high] = [0, states.length / FIELDS];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (states[middle * FIELDS] + states[middle * FIELDS + 1] <= after) low = middle + 1;
    else high = middle;
  }
  return low * FIELDS;
}

function active(states: number[], from: number, to: number): number | null {
  let sum = 0;
  let any = false;
  for (let i = first(states, from); i < states.length && states[i] < to; i += FIELDS) {
    any = true;
    if (ACTIVE.has(states[i + 2])) sum += Math.min(to, states[i] + states[i + 1]) - Math.max(from, states[i]);
  }
  return any ? sum : null;
}

/** Of each pixel the state that fills most of it (its index, or -1), and whether it has others. */
function pixels(states: number[], from: number, to: number, count: number): [Int32Array, Uint8Array] {
  const best = new Int32Array(count).fill(-1);
  const most = new Float64Array(count);
  const known = new Float64Array(count);
  const more = new Uint8Array(count);
  const width = (to - from) / count;
  for (let i = first(states, from); i < states.length && states[i] < to; i += FIELDS) {
    const [a, b] = [Math.max(states[i], from), Math.min(states[i] + states[i + 1], to)];
    const last = Math.min(count - 1, Math.ceil((b - from) / width) - 1);
    for (let x = Math.max(0, Math.floor((a - from) / width)); x <= last; x++) {
      const share = Math.min(b, from + (x + 1) * width) - Math.max(a, from + x * width);
      if (share <= 0) continue;
      known[x] += share;
      if (best[x] >= 0) more[x] = 1;
      if (share > most[x]) [best[x], most[x]] = [i, share];
    }
  }
  // Mostly unknown.
  for (let x = 0; x < count; x++)
    if (best[x] >= 0 && width - known[x] > most[x]) [best[x], more[x]] = [-1, 1];
  return [best, more];
}

/** From, to, kind, detail: pixels with the same state. */
function runs(states: number[], from: number, to: number, count: number): number[] {
  const [best, more] = pixels(states, from, to, count);
  const found: number[] = [];
  const same = (a: number, b: number) =>
    best[a] < 0 || best[b] < 0
      ? best[a] === best[b] && more[a] === more[b]
      : states[best[a] + 2] === states[best[b] + 2] && states[best[a] + 3] === states[best[b] + 3];
  for (let x = 0, next: number; x < count; x = next) {
    for (next = x + 1; next < count && same(x, next); ) next++;
    if (best[x] >= 0) found.push(x, next, states[best[x] + 2], states[best[x] + 3]);
    else if (more[x]) found.push(x, next, 0, 0);
  }
  return found;
}

export class SavedRows {
  private readonly rows = new Map<number, Row>();

  constructor(
    rows: Json[][],
    private readonly names: string[],
    private readonly begin: bigint,
  ) {
    for (const row of rows) this.rows.set(row[0] as number, { head: row.slice(0, 6), states: row[6] as number[] });
  }

  private range(words: { [key: string]: Json }): [number, number] {
    return [Number((words.begin as bigint) - this.begin), Number((words.end as bigint) - this.begin) + 1];
  }

  tree(): Fields {
    return { ...READY, rows: [...this.rows.values()].map(({ head, states }) => [...head, states.length ? 1 : 0]), omitted: 0 };
  }

  activity(words: { [key: string]: Json }): Fields {
    const [from, to] = this.range(words);
    const rows: Json[] = [];
    for (const [id, { states }] of this.rows) {
      const sum = active(states, from, to);
      if (sum !== null) rows.push([id, sum]);
    }
    return { ...READY, rows };
  }

  timeline(words: { [key: string]: Json }): Fields {
    const [from, to] = this.range(words);
    const count = Math.min(Number(words.count), Math.max(1, to - from));
    const ids = String(words.ids).split(",").map(Number);
    const rows = ids.flatMap((id) => {
      const row = this.rows.get(id);
      return row ? [{ id, runs: runs(row.states, from, to, count) }] : [];
    });
    return { ...READY, count, names: this.names, rows };
  }

  moment(words: { [key: string]: Json }): Fields {
    const states = this.rows.get(Number(words.row))?.states ?? [];
    const after = Number((words.ns as bigint) - this.begin);
    const at = first(states, after);
    const time = (ns: number | undefined) => (ns === undefined ? null : this.begin + BigInt(ns));
    if (at < states.length && states[at] <= after) {
      const [begin, size, kind, detail] = states.slice(at, at + FIELDS);
      const name = NAMED.has(kind) && detail ? this.names[detail - 1] : "";
      return { begin: time(begin), end: time(begin + size), kind, value: detail, name };
    }
    // Nothing is known between two states.
    const before = at ? states[at - FIELDS] + states[at - FIELDS + 1] : undefined;
    return { begin: time(before), end: time(states[at]), kind: 0, value: 0, name: "" };
  }
}
