// SPDX-License-Identifier: MIT
// From the JSON of a saved page to what the page works with.
import { big, type Json } from "./json";
import type { Area, AreaSum, Member, Row, Rows, Tree, TreeRow } from "./types";

type Fields = { [key: string]: Json };

export const savedRow = ([ns, trace, cpu, name, text]: Json[]): Row => ({
  ns: ns === null ? null : big(ns),
  trace: trace as number,
  cpu: cpu as number | null,
  name: name as string,
  text: text as string,
});

export const savedRowsOf = (fields: Fields): Rows => ({ ...(fields as unknown as Rows), rows: (fields.rows as Json[][]).map(savedRow) });

export function savedTree(fields: Fields): Tree {
  const rows = (fields.rows as Json[][]).map(
    ([id, parent, kind, number, name, origin, states]): TreeRow => ({
      id: id as number,
      parent: parent as number | null,
      kind: kind as string,
      number: Number(number as number),
      name: name as string,
      origin: Number(origin as number),
      states: states === 1,
    }),
  );
  return { ...(fields as unknown as Tree), rows };
}

export const savedActivity = (fields: Fields): Map<number, number> => new Map(fields.rows as unknown as [number, number][]);

export function savedMembersOf(fields: Fields): { n: number; members: Member[] } {
  const list = (fields.members as Json[][]).map(([begin, end, row, name]) => ({ begin: big(begin), end: big(end), row, name }));
  return { n: fields.n as number, members: list as Member[] };
}

const toSum = ([name, n, ns, waiting, longest]: Json[]): AreaSum =>
  ({ name, n, ns: Number(ns), waiting: Number(waiting), longest: Number(longest) }) as AreaSum;

export function savedArea(fields: Fields): Omit<Area, "range"> {
  const lists = ["names", "calls", "spans", "irqs", "requests"].map((key) => [key, (fields[key] as Json[][]).map(toSum)]);
  const threads = (fields.threads as Json[][]).map(([id, tid, name, active, states]) => ({ id, tid, name, active, states }));
  const counters = (fields.counters as Json[][]).map(([id, kind, number, name, low, mean, high]) => ({ id, kind, number, name, low, mean, high }));
  return { ...(fields as unknown as Area), ...Object.fromEntries(lists), threads, counters } as Area;
}
