// SPDX-License-Identifier: MIT
// The critical path of a thread, from the report of that name: a row under the thread's, and arrows between the threads that it goes over.
import type { Report, Table } from "./api";
import { big, type Json } from "./json";
import type { Picture } from "./pictures";
import { chosen } from "./row-keys";
import type { Range } from "./time";
import type { Track } from "./tree";

/** The report. */
export const PATH = "critical-path";
/** The key of its row. */
export const PATH_KEY = "path";

export interface ThreadPath {
  of: string; // the key of the thread's row
  parts: Picture;
  arrows: Picture;
}

type Row = { [key: string]: Json };

/** Causes as the states that have such colours. */
const KINDS: [cause: RegExp, kind: number][] = [
  [/^running in user space/, 3],
  [/^running/, 4],
  [/^interrupted/, 5],
  [/^(preempted|waiting for a CPU)/, 7],
  [/disk/, 9],
  [/: (lock|futex)/, 10],
  [/network/, 11],
  [/timer/, 12],
];
const UNKNOWN = 8;

const rowsOf = (report: Report, name: string): Row[] =>
  report.reports[0]?.tables.find((table: Table) => table.name === name)?.rows ?? [];

const nameOf = (process: Json): string => {
  const { name, tid } = process as Row;
  return `${name || "?"} (${tid})`;
};

const trackOf = (process: Json): number | null => {
  const tid = process === null ? null : (process as Row).tid;
  const key = tid === null ? null : chosen.find("thread", Number(tid));
  return key === null ? null : Number(key);
};

/** Pixels are nanoseconds: exact at any zoom. */
function picture(range: Range, runs: number[], names: string[]): Picture {
  return { stale: false, range, count: Number(range.end - range.begin) + 1, names, runs };
}

export function pathOf(report: Report, of: string, range: Range): ThreadPath {
  const numbers = new Map<string, number>();
  const parts: number[] = [];
  const after = (ns: Json) => Number(big(ns as number) - range.begin);
  for (const { begin, end, process, cause, syscall } of rowsOf(report, "log")) {
    const kind = KINDS.find(([pattern]) => pattern.test(String(cause)))?.[1] ?? UNKNOWN;
    const text = `${nameOf(process)}: ${cause}${syscall ? `, ${syscall}` : ""}`;
    if (!numbers.has(text)) numbers.set(text, numbers.size + 1);
    parts.push(after(begin), after(end), kind, numbers.get(text)!);
  }
  const arrows: number[] = [];
  for (const { time, waker, process } of rowsOf(report, "arrows")) {
    const [from, to] = [trackOf(waker), trackOf(process)];
    if (from !== null && to !== null) arrows.push(from, to, after(time), after(time));
  }
  return { of, parts: picture(range, parts, [...numbers.keys()]), arrows: picture(range, arrows, []) };
}

let attached: Track | null = null; // whose child the row of the path is

/** Put the row of a path below that of its thread; take away the one before. */
export function attachPath(keys: Map<string, Track>, path: ThreadPath | null): void {
  if (attached) attached.children = attached.children.filter((child) => child.key !== PATH_KEY);
  keys.delete(PATH_KEY);
  attached = path ? (keys.get(path.of) ?? null) : null;
  if (!attached) return;
  const { sources } = attached;
  const label = "critical path";
  const track = { key: PATH_KEY, id: null, own: null, sources, kind: "path", number: 0, label, curve: null, children: [], closed: false };
  attached.children = [track, ...attached.children];
  keys.set(PATH_KEY, track);
}
