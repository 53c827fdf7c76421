// SPDX-License-Identifier: MIT
// What the server's answers tell.
import type { Json } from "./json";
import type { Range } from "./time";

/** An array, or a typed one. */
export type Numbers = number[] | Float32Array | Float64Array;

export interface Trace {
  path: string;
  name: string;
  hostname?: string;
  domain?: string;
  procname?: string;
  vpid?: number;
  streams: number;
}

/** A recording that the server follows; null: the traces were complete from the begin. */
export interface Recording {
  generation: number; // of what can be seen; it grows
  running: boolean;
  error: string | null; // why it is not followed any more
}

export interface Info {
  kymo: string;
  recording: Recording | null;
  range: Range | null; // null: no event has a time
  lost: number;
  traces: Trace[];
  reports: ReportInfo[];
}

export interface ReportInfo {
  name: string;
  summary: string;
  of_thread: boolean; // it is about the selected thread
  asks: "" | "of" | "may" | "periods" | "two"; // what it must, or may, be about
  ignores: number; // enum ky_ignored
  choices?: string[]; // of a saved page: what it can be about there
}

/** How far counting is. */
export interface Progress {
  total: number;
  progress: number; // 1: it is over
  error: string | null;
}

export interface Density extends Progress {
  range: Range;
  exact: number; // the first pixels
  events: Numbers;
  lost: Numbers;
}

export interface Row {
  ns: bigint | null;
  trace: number;
  cpu: number | null;
  name: string;
  text: string;
}

export interface Rows extends Progress {
  row: number;
  exact: boolean;
  rows: Row[];
}

export interface Details {
  row: number;
  line: Row;
  event: { [key: string]: Json };
}

/** How far the pass is that builds the state history. */
export interface Ready {
  ready: boolean; // else @read events of the trace were read for it
  read: number;
}

/** A row of the state history. */
export interface TreeRow {
  id: number;
  parent: number | null;
  kind: string;
  number: number;
  name: string;
  origin: number; // of a process: who made it; 0: unknown
  states: boolean; // it has some
}

export interface Tree extends Ready {
  rows: TreeRow[];
  omitted: number;
}

/** Rows as pixels. @runs has four numbers for each run of pixels with the same state: from, to, kind, detail. */
export interface Timeline extends Ready {
  range: Range;
  count: number; // pixels
  names: string[]; // details of states with a name are numbers of them, from 1 on
  rows: { id: number; runs: Numbers }[];
}

/** Rows as curves. @runs has five numbers for each run of pixels: from, to, the least, the mean, the greatest value. */
export interface Curves extends Ready {
  range: Range;
  count: number;
  rows: { id: number; runs: Numbers }[];
}

/** Events on rows. @marks: row, pixel, events, name; @triggers, on no row: pixel, events, name; and so on. */
export interface Marks {
  range: Range;
  count: number;
  until: number | null; // there are more after that
  marks: Numbers;
  triggers: Numbers;
  names: string[];
}

/** Lost events of streams. @rows are those that lack them; @runs: from, to, events, whether the stream is damaged. */
export interface Losses {
  range: Range;
  count: number;
  streams: { stream: string; rows: Numbers; runs: Numbers }[];
}

export interface FieldCurve {
  range: Range;
  count: number;
  values: number;
  runs: Numbers;
}

/** What a row does at a time. */
export interface Moment {
  begin: bigint | null; // null: since ever
  end: bigint | null;
  kind: number;
  value: number;
  name: string;
}

export interface Stay {
  begin: bigint | null;
  end: bigint;
  kind: number;
  name: string;
}

/** What ended a wait: a thread, or an interrupt (row -1: of the idle CPU). */
export interface Waker {
  ns: bigint;
  cpu: number;
  event: string;
  handler: string; // of the interrupt that it was in; "": none
  row: number;
  tid: number;
  name: string;
}

/** What a thread waits or waited for at a time, and who woke it. */
export interface Cause {
  row: number;
  tid: number;
  name: string;
  state: Stay | null;
  waited: Stay | null;
  ready: Stay | null;
  waker: Waker | null;
}

/** What a person wrote about a time. */
export interface Note {
  id: number;
  begin: bigint;
  end: bigint;
  text: string;
}

export interface Notes {
  file: string;
  directory: string;
  notes: Note[];
}

export interface AreaSum {
  name: string;
  n: number;
  ns: number;
  waiting: number;
  longest: number;
}

/** Statistics of a range. */
export interface Area extends Ready {
  range: Range;
  exact: boolean; // else times are estimates
  counted: boolean; // else there are no names of events
  events: number;
  names: AreaSum[];
  threads: { id: number; tid: number; name: string; active: number; states: Numbers }[]; // ns by kind of state
  calls: AreaSum[];
  spans: AreaSum[];
  irqs: AreaSum[];
  requests: AreaSum[];
  counters: { id: number; kind: string; number: number; name: string; low: number; mean: number; high: number }[];
}

export interface Column {
  name: string;
  title: string;
  class: string;
  spare?: number; // what a narrow table leaves out: the highest numbers first
}

export interface Table {
  name: string;
  title: string;
  columns: Column[];
  rows: { [key: string]: Json }[];
  omitted: number;
}

export interface Report {
  events: number;
  reports: { name: string; summary: string; notes: string[]; tables: Table[] }[];
}

/** Wake-ups of a thread. @arrows: the rows from and to which, and pixels of the waking and of the run after it, and so on. */
export interface Arrows {
  range: Range;
  count: number;
  arrows: Numbers;
  more: boolean; // than an answer has
}

export interface LatencyMap extends Ready {
  range: Range;
  n: number;
  columns: number;
  classes: Numbers; // lower ends of durations, ns
  cells: [column: number, kind: number, count: number][];
  names: [name: string, n: number, ns: number][];
}

export interface Member {
  begin: bigint;
  end: bigint;
  row: number;
  name: string;
}

/** What a report is about; times in ns. */
export interface ReportWords {
  row?: number; // of a thread
  ns?: bigint; // where the range of the other traces begins
  of?: string;
  comm?: string;
  periods?: string;
  least?: number;
  most?: number;
  cell?: string;
}
