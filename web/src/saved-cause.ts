// SPDX-License-Identifier: MIT
// What a thread of a saved page waited for and who woke it, as the server's (src/view/answers/cause.c).
import type { Json } from "./json";
import type { Source } from "./saved-marks";
import type { Row, SavedRows, State } from "./saved-rows";

type Fields = { [key: string]: Json };

const K = { runs: 2, ready: 7, blocked: 8, stopped: 13, active: 14 };
const MOST_STEPS = 20_000;
const isWait = ({ kind }: State): boolean => kind >= K.blocked && kind <= K.stopped;

interface Waking {
  at: number;
  cpu: number;
  event: string;
}

/** The event that woke a thread at a time. */
function waking(source: Source, tid: number, at: number): Waking | null {
  if (!Number.isFinite(at)) return null;
  const [first, last] = source.between(at, at + 1);
  for (let i = first; i < last; i++) {
    const { line, event } = source.event(i) as { line: Json[]; event: Fields };
    const name = String(line[3]);
    const fields = event.fields as Fields | undefined;
    if (name.startsWith("sched_wak") && (fields?.tid ?? fields?.pid) === tid && line[2] !== null)
      return { at, cpu: line[2] as number, event: name };
  }
  return null;
}

function topOf(rows: SavedRows, row: Row): Row {
  for (let i = 0; i < 16; i++) {
    const parent = rows.rows.get(row.head[1] as number);
    if (!parent) return row;
    row = parent;
  }
  return row;
}

/** A CPU, on the machine of the thread's row. */
export function cpuOf(rows: SavedRows, row: Row, cpu: number): [id: number, cpu: Row] | null {
  const machine = topOf(rows, row);
  for (const [id, one] of rows.rows) if (one.head[2] === "cpu" && one.head[3] === cpu && topOf(rows, one) === machine) return [id, one];
  return null;
}

/** The handler that began last, of those that run on a CPU. */
function handlerOn(rows: SavedRows, cpu: number, at: number): string {
  let [handler, since] = ["", -Infinity];
  for (const one of rows.rows.values()) {
    if (one.head[2] !== "irq" || one.head[1] !== cpu) continue;
    const active = rows.at(one, at);
    if (active.kind === K.active && active.begin >= since) [handler, since] = [String(one.head[4]), active.begin];
  }
  return handler;
}

function waker(rows: SavedRows, row: Row, found: Waking): Fields {
  const cpu = cpuOf(rows, row, found.cpu);
  const state = cpu && rows.at(cpu[1], found.at);
  const thread = state?.kind === K.runs ? rows.rows.get(state.detail) : undefined;
  return {
    ns: rows.time(found.at),
    cpu: found.cpu,
    event: found.event,
    handler: cpu ? handlerOn(rows, cpu[0], found.at) : "",
    row: thread ? thread.head[0] : -1,
    tid: thread ? thread.head[3] : -1,
    name: thread ? thread.head[4] : "",
  };
}

export function savedCause(rows: SavedRows, words: Fields, source: Source): Fields {
  const row = rows.rows.get(Number(words.row));
  if (!row) throw new Error("there is no such row");
  const [ns] = rows.range({ begin: words.ns, end: words.ns });
  const stay = (state: State | null): Json =>
    state && { begin: rows.time(state.begin), end: rows.time(state.end) ?? 2n ** 63n - 1n, kind: state.kind, name: rows.name(state) };
  let [waited, ready]: (State | null)[] = [null, null];
  for (let i = 0, at = ns; i < MOST_STEPS && !waited; i++) {
    const state = rows.at(row, at);
    if (isWait(state)) waited = state;
    else if (state.kind === K.ready) ready ??= state;
    if (!Number.isFinite(state.begin)) break;
    at = state.begin - 1;
  }
  const found = waited ? waking(source, row.head[3] as number, waited.end) : null;
  const now = rows.at(row, ns);
  return {
    row: Number(words.row),
    tid: row.head[3],
    name: row.head[4],
    state: stay(now.kind ? now : null),
    waited: stay(waited),
    ready: stay(ready),
    waker: found && waker(rows, row, found),
  };
}
