// SPDX-License-Identifier: MIT
// Wake-ups of a thread of a saved page, as the server's (src/view/answers/wakings.c).
import type { Json } from "./json";
import { cpuOf } from "./saved-cause";
import type { Source } from "./saved-marks";
import type { Row, SavedRows } from "./saved-rows";

type Fields = { [key: string]: Json };

const RUNS = 2;
const RUNNING = new Set([3, 4, 5, 6, 21]);
const MOST = 2000;
const MOST_STATES = 8;
const PAUSE = 8192; // events between times for others

/** When a row runs after a time; null: it does already, or that is unknown. */
function runOf(rows: SavedRows, row: Row, after: number): number | null {
  let at = after;
  for (let i = 0; i < MOST_STATES && Number.isFinite(at); i++) {
    const state = rows.at(row, at);
    if (RUNNING.has(state.kind)) return i ? state.begin : null;
    at = state.end;
  }
  return null;
}

export async function savedArrows(rows: SavedRows, words: Fields, source: Source): Promise<Fields> {
  const [from, to] = rows.range(words);
  const count = Math.min(Number(words.count), Math.max(1, to - from));
  const wanted = Number(words.row);
  const width = (to - from) / count;
  const arrows: number[] = [];
  let last = [-1, -1, -Infinity];
  const [first, end] = source.between(from, to);
  let i = first;
  for (; i < end && arrows.length < 4 * MOST; i++) {
    if (i % PAUSE === PAUSE - 1) await new Promise((next) => window.setTimeout(next));
    const { line, event } = source.event(i) as { line: Json[]; event: Fields };
    if (line[3] !== "sched_waking" && (line[3] !== "sched_wakeup" || rows.hasWaking)) continue;
    const fields = event.fields as Fields;
    const [at, id] = [source.times[i], source.thread(Number(fields.tid ?? fields.pid))];
    const target = id === undefined ? undefined : rows.rows.get(id);
    const cpu = target && line[2] !== null && cpuOf(rows, target, line[2] as number);
    const waker = cpu ? rows.at(cpu[1], at) : null;
    if (!target || waker?.kind !== RUNS || (waker.detail !== wanted && id !== wanted)) continue;
    if (waker.detail === last[0] && id === last[1] && at - last[2] < Math.floor(width)) continue;
    const run = runOf(rows, target, at);
    if (run === null) continue;
    arrows.push(waker.detail, id!, (at - from) / width, (run - from) / width);
    last = [waker.detail, id!, at];
  }
  return { count, arrows, more: i < end };
}
