// SPDX-License-Identifier: MIT
// A table of a report: its rows lead to what they are about, and a chart shows its distribution or series.
import { useState } from "preact/hooks";
import type { Column, Table } from "./api";
import { cellText, NUMERIC } from "./cells";
import { Chart } from "./chart";
import { show, type Json } from "./json";
import { chosen, showEvent } from "./row-keys";
import type { Store } from "./store";

const FIRST_ROWS = 50;

type Row = { [key: string]: Json };

const timesOf = (columns: Column[], row: Row): bigint[] =>
  columns
    .filter((column) => column.class === "timestamp" && (row[column.name] ?? null) !== null)
    .map((column) => BigInt(row[column.name] as number | bigint));

/** The row of the thread or CPU that a row of a table is about. */
function trackOf(columns: Column[], row: Row): string | null {
  for (const column of columns) {
    const value = row[column.name] ?? null;
    if (value === null) continue;
    const process = column.class === "process" ? (value as Row) : null;
    const found =
      process && process.tid !== null
        ? chosen.find("thread", Number(process.tid))
        : column.class === "cpu"
          ? chosen.find("cpu", Number(value))
          : null;
    if (found) return found;
  }
  return null;
}

/** Whether a click on a row leads anywhere. */
const leads = (columns: Column[], row: Row) => timesOf(columns, row).length > 0 || trackOf(columns, row) !== null;

/** Show what a row is about: its time, if it has one, and its thread or CPU. */
export function goToRow(store: Store, columns: Column[], row: Row): void {
  const track = trackOf(columns, row);
  const times = timesOf(columns, row).sort((a, b) => (a < b ? -1 : 1));
  if (track) store.setRows({ selected: track });
  if (!times.length) return;
  const [begin, end] = [times[0], times[times.length - 1]];
  const { view } = store.state;
  const size = view.end - view.begin;
  // All of it is in sight, with something around it.
  const around = end - begin > size / 2n ? end - begin : (size - (end - begin)) / 2n;
  store.go({ begin: begin - around, end: end + around });
  void showEvent(store, begin).catch(() => undefined); // the table tells of the error
}

export function ReportTable({ table, store }: { table: Table; store: Store }) {
  const [all, setAll] = useState(false);
  const rows = all ? table.rows : table.rows.slice(0, FIRST_ROWS);
  if (!table.rows.length) return null;
  const go = (row: Row) => goToRow(store, table.columns, row);
  return (
    <div class="report-table">
      <Chart table={table} store={store} />
      <table data-table={table.name}>
        <caption>{table.title}</caption>
        <thead>
          <tr>
            {table.columns.map((column) => (
              <th scope="col" class={NUMERIC.includes(column.class) ? "number" : ""}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const goes = leads(table.columns, row);
            return (
              <tr
                class={goes ? "goes" : ""}
                tabIndex={goes ? 0 : undefined}
                onClick={() => goes && go(row)}
                onKeyDown={(event) => goes && event.key === "Enter" && go(row)}
              >
                {table.columns.map((column) => {
                  const value = row[column.name] ?? null;
                  return (
                    <td class={NUMERIC.includes(column.class) ? "number" : ""} title={show(value)}>
                      {cellText(value, column.class)}
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length < table.rows.length && (
        <button onClick={() => setAll(true)}>Show all {table.rows.length} rows</button>
      )}
    </div>
  );
}
