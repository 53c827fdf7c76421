// SPDX-License-Identifier: MIT
// A table of a report: its rows lead to what they are about, and a chart shows its distribution or series.
import { useState } from "preact/hooks";
import type { Column, Table } from "./api";
import { cellText, NUMERIC } from "./cells";
import { Chart } from "./chart";
import { show, type Json } from "./json";
import { useWidth } from "./graph";
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
    const inText = column.class === "text" ? / \(tid (\d{1,10})\)/.exec(String(value)) : null; // "work (tid 323) waited ..."
    const found =
      process && process.tid !== null
        ? chosen.find("thread", Number(process.tid))
        : column.class === "cpu"
          ? chosen.find("cpu", Number(value))
          : inText
            ? chosen.find("thread", Number(inText[1]))
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

const LETTER_PX = 6.8;
const PADDING_PX = 14;
const MOST_LETTERS = 60; // longer texts have several lines

/** The columns that have room, as in a terminal: what can be spared goes first. */
function fitting({ columns, rows }: Table, width: number): Column[] {
  const letters = (column: Column) =>
    rows.slice(0, FIRST_ROWS).reduce((most, row) => Math.max(most, cellText(row[column.name] ?? null, column.class).length), column.title.length);
  const widths = new Map(columns.map((column) => [column, PADDING_PX + LETTER_PX * Math.min(MOST_LETTERS, letters(column))]));
  let shown = columns;
  const total = () => shown.reduce((sum, column) => sum + widths.get(column)!, 0);
  while (total() > width) {
    const worst = shown.reduce((a, b) => ((b.spare ?? 0) > (a.spare ?? 0) ? b : a));
    if (!worst.spare) break;
    shown = shown.filter((column) => column !== worst);
  }
  return shown;
}

export function ReportTable(props: { table: Table; store: Store }) {
  return props.table.rows.length ? <Filled {...props} /> : null;
}

function Filled({ table, store }: { table: Table; store: Store }) {
  const [all, setAll] = useState(false);
  const [wide, setWide] = useState(false);
  const [ref, width] = useWidth();
  const columns = wide || !width ? table.columns : fitting(table, width);
  const rows = all ? table.rows : table.rows.slice(0, FIRST_ROWS);
  const go = (row: Row) => goToRow(store, table.columns, row);
  return (
    <div class="report-table" ref={ref}>
      <Chart table={table} store={store} />
      <table data-table={table.name}>
        <caption>{table.title}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
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
                {columns.map((column) => {
                  const value = row[column.name] ?? null;
                  const text = cellText(value, column.class);
                  return (
                    <td class={NUMERIC.includes(column.class) ? "number" : text.length > MOST_LETTERS ? "long" : ""} title={show(value)}>
                      {text}
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
      {(wide || columns.length < table.columns.length) && (
        <button onClick={() => setWide(!wide)} title={table.columns.filter((one) => !columns.includes(one)).map((one) => one.title).join(", ")}>
          {wide ? "Only columns that have room" : `Show all ${table.columns.length} columns`}
        </button>
      )}
      {rows.length < table.rows.length && (
        <button onClick={() => setAll(true)}>Show all {table.rows.length} rows</button>
      )}
    </div>
  );
}
