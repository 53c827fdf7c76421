// SPDX-License-Identifier: MIT
// What keys do to rows, wherever the focus is.
import * as api from "./api";
import type { Store } from "./store";

export const ROW_HELP: [keys: string, what: string][] = [
  ["T", "go to the rows: up, down, Page Up, Page Down, Home, End select one; right and left open and close it"],
  ["N, P", "the next, the previous change of the selected row: the table shows its event"],
  ["X", "show the critical path of the selected thread, in the selected or visible range"],
  ["K", "keep the selected row at the top, or no longer"],
  ["R", "filter the rows by their names"],
  ["C", "show a field of an event as a curve: EVENT.FIELD; Delete removes the selected one"],
  ["-", "low rows, or high ones again"],
  ["[, ]", "close all rows, open all rows"],
];

export const ROWS_ID = "rows-tree";

/** The row of the selected track; set by the rows, which know the tree. */
export const chosen: {
  id: number | null;
  foldAll: (open: boolean) => void;
  find: (kind: string, number: number) => string | null; // the key of a row
} = { id: null, foldAll: () => undefined, find: () => null };

/** Show the first event at or after @ns: in the graph, and in the table. */
export async function showEvent(store: Store, ns: bigint): Promise<void> {
  store.set({ cursor: ns });
  const row = await api.rank(ns, store.state.filter);
  if (store.state.cursor === ns) store.set({ wanted: { row, ns } });
}

async function change(store: Store, forward: boolean): Promise<void> {
  if (chosen.id === null) return;
  const { view, cursor } = store.state;
  // Without a cursor: from the edge of what is in sight.
  const from = cursor ?? (forward ? view.begin : view.end);
  let found = await api.moment(chosen.id, from);
  if (!forward && (found.begin === null || found.begin >= from)) found = await api.moment(chosen.id, from - 1n);
  const ns = forward ? found.end : found.begin;
  if (ns !== null && store.state.cursor === cursor) await showEvent(store, ns);
}

export function togglePin(store: Store, key: string): void {
  const { pinned } = store.state.rows;
  store.setRows({ pinned: pinned.includes(key) ? pinned.filter((one) => one !== key) : [...pinned, key] });
}

export function rowKeys(store: Store): Record<string, () => void> {
  const go = (forward: boolean) => void change(store, forward).catch((error: Error) => console.info(error.message));
  return {
    x: () => {
      const { selected } = store.state.rows;
      if (selected !== null && store.info.reports.some((one) => one.of_thread)) store.setReport("critical-path", selected);
    },
    t: () => document.getElementById(ROWS_ID)?.focus(),
    n: () => go(true),
    p: () => go(false),
    k: () => {
      const { selected } = store.state.rows;
      if (selected !== null) togglePin(store, selected);
    },
    c: () => document.getElementById("row-field")?.focus(),
    r: () => document.getElementById("row-filter")?.focus(),
    "-": () => store.setRows({ low: !store.state.rows.low }),
    "[": () => chosen.foldAll(false),
    "]": () => chosen.foldAll(true),
  };
}
