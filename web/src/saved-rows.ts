// SPDX-License-Identifier: MIT
// The rows of a saved page: states as they are, and pictures of them.
import type { Json } from "./json";

type Fields = { [key: string]: Json };

export interface Row {
  head: Json[]; // id, parent, kind, number, name, origin
  states: number[]; // offset, duration, kind, detail, and so on
}

/** What a row did: times after the begin of the page; infinite ones are unknown. Kind 0: nothing is known. */
export interface State {
  begin: number;
  end: number;
  kind: number;
  detail: number;
}

/** KY_SAVED_FAR_NS */
const FAR = 2 ** 51;

const FIELDS = 4;
/** Kinds of states in which a row is active: history.h. */
const ACTIVE = new Set([2, 3, 4, 5, 6, 14, 15, 16, 17, 18, 21]);
/** Kinds of states whose detail is a number of a name. */
const NAMED = new Set([4, 5, 6, 8, 9, 10, 11, 12, 13, 15]);
const READY = { ready: true, read: 0 };

const KINDS = 22;
/** Kinds of rows that hold values. */
const VALUES = new Set(["queue", "disk", "counter"]);
const REQUESTS: { [kind: number]: string } = { 16: "read", 17: "write", 18: "other" };

type Sum = [name: string, n: number, ns: number, waiting: number, longest: number];
interface Sums {
  calls: Map<string, Sum>;
  spans: Map<string, Sum>;
  irqs: Map<string, Sum>;
  requests: Map<string, Sum>;
}

function add(sums: Map<string, Sum>, name: string, ns: number, waits: boolean): void {
  if (!name) return;
  const sum = sums.get(name) ?? [name, 0, 0, 0, 0];
  sum[1]++;
  sum[waits ? 3 : 2] += ns;
  sum[4] = Math.max(sum[4], ns);
  sums.set(name, sum);
}

const sorted = (sums: Map<string, Sum>): Sum[] => [...sums.values()].sort((a, b) => b[2] + b[3] - a[2] - a[3] || b[1] - a[1]);

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

/** A part of a curve: values times their durations, and durations. */
interface Heights {
  low: Float64Array;
  high: Float64Array;
  sum: Float64Array;
  wide: Float64Array;
}

/** Each pixel of a row. @value: of a state, by its kind and detail; null: it has none. */
function heights(states: number[], from: number, to: number, count: number, value: (kind: number, detail: number, ns: number) => number | null): Heights {
  const [low, high, sum, wide] = [0, 0, 0, 0].map(() => new Float64Array(count));
  const width = (to - from) / count;
  for (let i = first(states, from); i < states.length && states[i] < to; i += FIELDS) {
    const here = value(states[i + 2], states[i + 3], states[i + 1]);
    if (here === null) continue;
    const [a, b] = [Math.max(states[i], from), Math.min(states[i] + states[i + 1], to)];
    const last = Math.min(count - 1, Math.ceil((b - from) / width) - 1);
    for (let x = Math.max(0, Math.floor((a - from) / width)); x <= last; x++) {
      const share = Math.min(b, from + (x + 1) * width) - Math.max(a, from + x * width);
      if (share <= 0) continue;
      low[x] = wide[x] ? Math.min(low[x], here) : here;
      high[x] = wide[x] ? Math.max(high[x], here) : here;
      sum[x] += here * share;
      wide[x] += share;
    }
  }
  return { low, high, sum, wide };
}

/** From, to, low, mean, high: pixels with the same numbers. */
function flat(count: number, at: (x: number) => [number, number, number] | null): number[] {
  const found: number[] = [];
  for (let x = 0, next: number; x < count; x = next) {
    const here = at(x);
    for (next = x + 1; next < count && String(at(next)) === String(here); ) next++;
    if (here) found.push(x, next, ...here);
  }
  return found;
}

const EVENTS = 32; // of an interval of a stream that tells no number

export class SavedRows {
  readonly rows = new Map<number, Row>();
  hasWaking = false; // else a wake-up is the first that is known of it
  private readonly unknown: number; // the end of what does not end

  constructor(
    rows: Json[][],
    private readonly names: string[],
    private readonly begin: bigint,
    length: number, // of the range
  ) {
    this.unknown = Math.min(length, 2 ** 53 - 1 - 2 * FAR) + FAR;
    for (const row of rows) this.rows.set(row[0] as number, { head: row.slice(0, 6), states: row[6] as number[] });
  }

  /** The name in a state's detail. */
  name(state: State): string {
    return NAMED.has(state.kind) && state.detail ? (this.names[state.detail - 1] ?? "") : "";
  }

  private state(states: number[], i: number): State {
    const [begin, size, kind, detail] = states.slice(i, i + FIELDS);
    const end = begin + size;
    return { begin: begin <= -FAR ? -Infinity : begin, end: end >= this.unknown ? Infinity : end, kind, detail };
  }

  /** What a row does at a time. */
  at(row: Row, after: number): State {
    const { states } = row;
    const i = first(states, after);
    if (i < states.length && states[i] <= after) return this.state(states, i);
    // Nothing is known between two states.
    return { begin: i ? states[i - FIELDS] + states[i - FIELDS + 1] : -Infinity, end: states[i] ?? Infinity, kind: 0, detail: 0 };
  }

  /** The states of a row from a time on, with what is unknown between them. */
  *from(row: Row, after: number): Generator<State> {
    const { states } = row;
    let at = after;
    for (let i = first(states, after); i < states.length; i += FIELDS) {
      if (states[i] > at) yield { begin: at, end: states[i], kind: 0, detail: 0 };
      const state = this.state(states, i);
      yield state;
      at = state.end;
    }
  }

  range(words: { [key: string]: Json }): [number, number] {
    return [Number((words.begin as bigint) - this.begin), Number((words.end as bigint) - this.begin) + 1];
  }

  /** The row of a thread; of several, the first. */
  thread(tid: number): number | undefined {
    for (const [id, { head }] of this.rows) if (head[2] === "thread" && head[3] === tid) return id;
    return undefined;
  }

  /** The thread of a row. */
  tidOf(id: number): number | null {
    const head = this.rows.get(id)?.head;
    return head?.[2] === "thread" ? Number(head[3]) : null;
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

  /** As the server's statistics of a range, without those of events. */
  area(words: { [key: string]: Json }): Fields {
    const [from, to] = this.range(words);
    const sums: Sums = { calls: new Map(), spans: new Map(), irqs: new Map(), requests: new Map() };
    const threads: Json[][] = [];
    const counters: Json[][] = [];
    for (const [id, { head, states }] of this.rows) {
      const [, , kind, number, name] = head;
      const times = new Array<number>(KINDS).fill(0);
      let [low, high, sum, known] = [Infinity, -Infinity, 0, 0];
      for (let i = first(states, from); i < states.length && states[i] < to; i += FIELDS) {
        const ns = Math.min(to, states[i] + states[i + 1]) - Math.max(from, states[i]);
        const [state, detail] = [states[i + 2], states[i + 3]];
        const text = NAMED.has(state) && detail ? this.names[detail - 1] : "";
        times[state] += ns;
        [low, high, sum, known] = [Math.min(low, detail), Math.max(high, detail), sum + detail * ns, known + ns];
        if (kind === "spans") add(sums.spans, text, ns, false);
        else if (kind === "irq") add(sums.irqs, String(name), ns, false);
        else if (kind === "requests") add(sums.requests, REQUESTS[state] ?? "", ns, false);
        else if (kind === "thread" && (state === 4 || (state >= 8 && state <= 13))) add(sums.calls, text, ns, state !== 4);
      }
      if (!known) continue;
      if (kind === "thread") threads.push([id, number, name, active(states, from, to) ?? 0, times]);
      else if (VALUES.has(String(kind))) counters.push([id, kind, number, name, low, sum / known, high]);
    }
    threads.sort((a, b) => (b[3] as number) - (a[3] as number));
    const lists = Object.entries(sums).map(([key, map]) => [key, sorted(map)]);
    return { ...READY, exact: true, threads, counters, ...(Object.fromEntries(lists) as Fields) };
  }

  /** How much of each pixel the rows were active, together. */
  private use(rows: Row[], from: number, to: number, count: number, parts: number): number[] {
    const width = (to - from) / count;
    const sums = new Float64Array(count);
    for (const { states } of rows) {
      const { sum } = heights(states, from, to, count, (kind) => (ACTIVE.has(kind) ? 1 : null));
      for (let x = 0; x < count; x++) sums[x] += sum[x] / width / parts;
    }
    return flat(count, (x) => [sums[x], sums[x], sums[x]]);
  }

  private curve(id: number, row: Row, from: number, to: number, count: number): number[] {
    const kind = String(row.head[2]);
    const below = (wanted: string) => [...this.rows.values()].filter(({ head }) => head[1] === id && head[2] === wanted);
    if (kind === "machine") return this.use(below("cpu"), from, to, count, Math.max(1, below("cpu").length));
    if (kind === "process") return this.use(below("thread"), from, to, count, 1);
    if (kind === "stream") {
      // Events for each ns, which become events of a pixel.
      const { sum } = heights(row.states, from, to, count, (_, detail, ns) => (detail || EVENTS) / Math.max(1, ns));
      return flat(count, (x) => (sum[x] > 0 ? [sum[x], sum[x], sum[x]] : null));
    }
    if (!VALUES.has(kind)) return this.use([row], from, to, count, 1);
    const { low, high, sum, wide } = heights(row.states, from, to, count, (_, detail) => detail);
    return flat(count, (x) => (wide[x] ? [low[x], sum[x] / wide[x], high[x]] : null));
  }

  /** How many threads wait for the CPUs of a machine. */
  private queues(machine: number, from: number, to: number, count: number): number[] {
    const width = (to - from) / count;
    const sums = new Float64Array(count);
    for (const { head, states } of this.rows.values()) {
      if (head[2] !== "queue" || this.rows.get(head[1] as number)?.head[1] !== machine) continue;
      const { sum } = heights(states, from, to, count, (_, detail) => detail);
      for (let x = 0; x < count; x++) sums[x] += sum[x] / width;
    }
    return flat(count, (x) => [sums[x], sums[x], sums[x]]);
  }

  curves(words: { [key: string]: Json }): Fields {
    const [from, to] = this.range(words);
    const count = Math.min(Number(words.count), Math.max(1, to - from));
    const ids = String(words.ids).split(",").map(Number);
    const rows = ids.flatMap((id) => {
      const row = this.rows.get(id);
      if (!row) return [];
      const isQueue = words.name === "queues" && row.head[2] === "machine";
      return [{ id, runs: isQueue ? this.queues(id, from, to, count) : this.curve(id, row, from, to, count) }];
    });
    return { ...READY, count, rows };
  }

  moment(words: { [key: string]: Json }): Fields {
    const row = this.rows.get(Number(words.row));
    const after = Number((words.ns as bigint) - this.begin);
    const state = row ? this.at(row, after) : { begin: -Infinity, end: Infinity, kind: 0, detail: 0 };
    return { begin: this.time(state.begin), end: this.time(state.end), kind: state.kind, value: state.detail, name: this.name(state) };
  }

  /** A time of the trace; null: unknown. */
  time(after: number): bigint | null {
    return Number.isFinite(after) ? this.begin + BigInt(after) : null;
  }
}
