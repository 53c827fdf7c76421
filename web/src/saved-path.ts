// SPDX-License-Identifier: MIT
// Critical paths of a saved page: the parts of all its threads are in one report; the one of a thread comes from its own parts.
import { big, type Json } from "./json";

type Row = { [key: string]: Json };
type Table = { [key: string]: Json };

/** The columns of table threads that a cause counts in. */
const COLUMNS: [cause: RegExp, column: string][] = [
  [/^(running|interrupted)/, "running"],
  [/^(preempted|waiting for a CPU)/, "cpu_wait"],
  [/^blocked/, "blocked"],
];
const DETAILS = ["process", "cause", "who", "irq", "disk", "syscall", "file", "futex"];

const textOf = (values: Json[]) => JSON.stringify(values, (_, value) => (typeof value === "bigint" ? `${value}n` : value));

/** A path ends at its own thread. */
function memberOf(parts: Row[], tid: number): number | null {
  for (let i = parts.length - 1; i >= 0; i--) {
    const isLast = i === parts.length - 1 || parts[i + 1].member !== parts[i].member;
    if (isLast && Number((parts[i].process as Row | null)?.tid ?? -1) === tid) return Number(parts[i].member);
  }
  return null;
}

function sumsOf(parts: Row[], key: (part: Row) => string, first: (part: Row) => Row, add: (sum: Row, part: Row, ns: number) => void): Row[] {
  const sums = new Map<string, Row>();
  for (const part of parts) {
    let sum = sums.get(key(part));
    if (!sum) sums.set(key(part), (sum = { ...first(part), time: 0 }));
    const ns = Number(part.duration);
    sum.time = Number(sum.time) + ns;
    add(sum, part, ns);
  }
  return [...sums.values()].sort((a, b) => Number(b.time) - Number(a.time));
}

function threadsOf(parts: Row[]): Row[] {
  const empty = { running: 0, cpu_wait: 0, blocked: 0, unknown: 0 };
  const whole: Row = { process: { tid: null, pid: null, name: "(the whole)" }, time: 0, share: 1, ...empty };
  const add = (sum: Row, part: Row, ns: number) => {
    const column = COLUMNS.find(([pattern]) => pattern.test(String(part.cause)))?.[1] ?? "unknown";
    sum[column] = Number(sum[column]) + ns;
    whole[column] = Number(whole[column]) + ns;
    whole.time = Number(whole.time) + ns;
  };
  const rows = sumsOf(parts, (part) => textOf([part.process]), (part) => ({ process: part.process, ...empty }), add);
  for (const row of rows) row.share = Number(whole.time) ? Number(row.time) / Number(whole.time) : 0;
  return rows.length ? [...rows, whole] : [];
}

function causesOf(parts: Row[]): Row[] {
  const whole = parts.reduce((sum, part) => sum + Number(part.duration), 0);
  const add = (sum: Row, _: Row, ns: number) => {
    sum.count = Number(sum.count) + 1;
    sum.longest = Math.max(Number(sum.longest), ns);
  };
  const first = (part: Row) => ({ ...Object.fromEntries(DETAILS.map((name) => [name, part[name]])), count: 0, longest: 0 });
  const rows = sumsOf(parts, (part) => textOf(DETAILS.map((name) => part[name])), first, add);
  for (const row of rows) row.share = whole ? Number(row.time) / whole : 0;
  return rows;
}

/** The report of one thread. @report: that of all. */
export function savedPath(report: Row, tid: number): Row {
  const tables = report.tables as Table[];
  const log = tables.find((table) => table.name === "log");
  const all = (log?.rows ?? []) as Row[];
  const member = memberOf(all, tid);
  // The path that the last rows belong to is cut where the page had no room.
  if (member === null || (Number(log?.omitted ?? 0) > 0 && big(all[all.length - 1].member as number) === BigInt(member)))
    throw new Error("the page has no path of this thread: it has those of the threads with the most CPU time; choose a shorter range to get more");
  const own = (rows: Json) => (rows as Row[]).filter((row) => Number(row.member) === member).map((row) => ({ ...row, member: 1 }));
  const parts = own(all);
  const rows: { [name: string]: (table: Table) => Row[] } = {
    threads: () => threadsOf(parts),
    parts: () => causesOf(parts),
    log: () => parts,
    arrows: (table) => own(table.rows),
  };
  return { ...report, tables: tables.map((table) => ({ ...table, omitted: 0, rows: rows[String(table.name)]?.(table) ?? [] })) };
}
