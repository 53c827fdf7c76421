// SPDX-License-Identifier: MIT
// The map of report heatmap, and the members of one of its cells.
import { useState } from "preact/hooks";
import * as api from "./api";
import type { Json } from "./json";
import { HeatMap, type Cell } from "./latency";
import { ReportTable } from "./report-table";
import { isSaved } from "./saved";
import { useLater, type Store } from "./store";

type Row = { [key: string]: Json };

/** The map as one of durations; the tables map and axis have it. */
export function mapOf(tables: api.Table[]): api.LatencyMap | null {
  const rows = tables.find((table) => table.name === "map" && table.columns.some((column) => column.class === "heat"))?.rows as Row[] | undefined;
  const axis = tables.find((table) => table.name === "axis")?.rows[0] as Row | undefined;
  if (!rows?.length || !axis) return null;
  const classes: number[] = [];
  const cells: [number, number, number][] = [];
  for (const row of rows) {
    const kind = Number(row.row);
    classes[kind] = Number(row.from);
    classes[kind + 1] = Number(row.to);
    (row.counts as number[]).forEach((n, column) => n && cells.push([column, kind, n]));
  }
  const range = { begin: BigInt(axis.begin as number), end: BigInt(axis.end as number) };
  const n = cells.reduce((sum, [, , count]) => sum + count, 0);
  return { range, columns: Number(axis.columns), classes: Array.from(classes, (one) => one ?? 0), cells, n, names: [], ready: true, read: 0 };
}

interface Props {
  store: Store;
  map: api.LatencyMap;
  /** The report on the members of a cell, or of a class of durations. */
  ask: (words: api.ReportWords, signal: AbortSignal) => Promise<api.Report>;
}

export function ReportHeat({ store, map, ask }: Props) {
  const [cell, setCell] = useState<Cell | null>(null);
  const [found, setFound] = useState<api.Report | null>(null);
  const [error, setError] = useState("");
  useLater(
    async (signal) => {
      setFound(null);
      setError("");
      if (!cell) return;
      try {
        const words = cell.column < 0 ? { least: map.classes[cell.kind], most: map.classes[cell.kind + 1] - 1 } : { cell: `${cell.column + 1},${cell.kind}` };
        setFound(await ask(words, signal));
      } catch (reason) {
        if (!signal.aborted) setError((reason as Error).message);
      }
    },
    [map, cell?.column, cell?.kind],
    30,
  );
  return (
    <>
      <HeatMap map={map} chosen={cell} choose={setCell} />
      {error && <p class="note error" role="alert">{error}</p>}
      {cell && !found && !error && <p class="note">…</p>}
      {isSaved && found?.reports[0].notes.map((note) => <p class="note">{note}</p>)}
      {found?.reports[0].tables.filter((table) => table.name === "members" || table.name === "top").map((table) => (
        <ReportTable table={table} store={store} />
      ))}
    </>
  );
}
