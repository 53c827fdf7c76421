// SPDX-License-Identifier: MIT
// What the server answers. Paths are relative: the secret token is in the page's own address.
import { big, parse, type Json } from "./json";
import { answer as savedAnswer, isSaved } from "./saved";
import type { Range } from "./time";
import { decode } from "./timeline-bytes";

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
  events: number[];
  lost: number[];
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
  rows: { id: number; runs: number[] }[];
}

/** Rows as curves. @runs has five numbers for each run of pixels: from, to, the least, the mean, the greatest value. */
export interface Curves extends Ready {
  range: Range;
  count: number;
  rows: { id: number; runs: number[] }[];
}

/** Events on rows. @marks: row, pixel, events, name; @triggers, on no row: pixel, events, name; and so on. */
export interface Marks {
  range: Range;
  count: number;
  until: number | null; // there are more after that
  marks: number[];
  triggers: number[];
  names: string[];
}

/** Lost events of streams. @rows are those that lack them; @runs: from, to, events, whether the stream is damaged. */
export interface Losses {
  range: Range;
  count: number;
  streams: { stream: string; rows: number[]; runs: number[] }[];
}

export interface FieldCurve {
  range: Range;
  count: number;
  values: number;
  runs: number[];
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
  threads: { id: number; tid: number; name: string; active: number; states: number[] }[]; // ns by kind of state
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

type Fields = { [key: string]: Json };
type Words = { [key: string]: string | number | bigint };

let asked = 0;

/** How many answers the page waits for, reports left out. */
export const pending = (): number => asked;

/** @exact: numbers may be larger than a double holds. The browser's own parser is quicker, for answers without such numbers. */
async function ask(path: string, words: Words, signal?: AbortSignal, method = "GET", exact = true): Promise<Fields> {
  if (isSaved) return savedAnswer(path, words);
  const query = new URLSearchParams();
  const one = method === "GET" ? 1 : 0;
  for (const [key, value] of Object.entries(words)) if (value !== "" || key === "text") query.set(key, String(value));
  asked += one;
  try {
    const answer = await fetch(`api/${path}?${query}`, { method, signal });
    const text = await answer.text();
    const fields = (exact ? parse(text) : JSON.parse(text)) as Fields;
    if (!answer.ok) throw new Error(String(fields.error ?? answer.statusText));
    return fields;
  } finally {
    asked -= one;
  }
}

const toRow = ([ns, trace, cpu, name, text]: Json[]): Row => ({
  ns: ns === null ? null : big(ns),
  trace: trace as number,
  cpu: cpu as number | null,
  name: name as string,
  text: text as string,
});

export async function info(): Promise<Info> {
  const fields = await ask("info", {});
  const range = fields.begin === null ? null : { begin: big(fields.begin), end: big(fields.end) };
  return { ...(fields as unknown as Info), range };
}

export async function density(range: Range, count: number, filter: string, signal: AbortSignal): Promise<Density> {
  const fields = await ask("density", { ...range, count, filter }, signal);
  return { ...(fields as unknown as Density), range };
}

export async function tree(signal: AbortSignal): Promise<Tree> {
  const fields = await ask("tree", {}, signal, "GET", false);
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

/** How long each row was active, ns. Rows without states in the range are not there. */
export async function activity(range: Range, signal: AbortSignal): Promise<Map<number, number>> {
  return new Map((await ask("activity", { ...range }, signal, "GET", false)).rows as unknown as [number, number][]);
}

/** Without times, numbers are small: the browser's own parser, which is faster. */
async function picture<T>(path: string, range: Range, count: number, words: Words): Promise<T & { range: Range }> {
  if (isSaved) return { ...((await savedAnswer(path, { ...range, count, ...words })) as unknown as T), range };
  const query = new URLSearchParams({ begin: String(range.begin), end: String(range.end), count: String(count) });
  for (const [key, value] of Object.entries(words)) if (value !== "") query.set(key, String(value));
  const answer = await fetch(`api/${path}?${String(query).replace(/%2C/g, ",")}`);
  const fields = (await answer.json()) as T & { error?: string };
  if (!answer.ok) throw new Error(fields.error ?? answer.statusText);
  return { ...fields, range };
}

/** The largest answer is in bytes. */
export async function timeline(range: Range, count: number, ids: number[]): Promise<Timeline> {
  if (isSaved) return picture("timeline", range, count, { ids: ids.join(",") });
  const answer = await fetch(`api/timeline?begin=${range.begin}&end=${range.end}&count=${count}&ids=${ids.join(",")}`);
  if (!answer.ok) throw new Error(((await answer.json()) as { error?: string }).error ?? answer.statusText);
  return { ...decode(new Uint8Array(await answer.arrayBuffer())), range };
}

export const curves = (range: Range, count: number, ids: number[]): Promise<Curves> =>
  picture("curves", range, count, { ids: ids.join(",") });

/** Of machines: how many threads wait for their CPUs. */
export const queues = (range: Range, count: number, ids: number[]): Promise<Curves> =>
  picture("curves", range, count, { ids: ids.join(","), name: "queues" });

export const marks = (range: Range, count: number, filter: string): Promise<Marks> => picture("marks", range, count, { filter });

/** Wake-ups of a thread. @arrows: the rows from and to which, and pixels of the waking and of the run after it, and so on. */
export interface Arrows {
  range: Range;
  count: number;
  arrows: number[];
  more: boolean; // than an answer has
}

export const arrows = (range: Range, count: number, row: number): Promise<Arrows> => picture("arrows", range, count, { row });

export const losses = (range: Range, count: number): Promise<Losses> => picture("losses", range, count, {});

/** A field of an event, "EVENT.FIELD". */
export async function field(range: Range, count: number, name: string, filter: string): Promise<FieldCurve> {
  return picture("field", range, count, { field: name, filter });
}

export async function fields(signal: AbortSignal): Promise<string[]> {
  return (await ask("fields", {}, signal)).fields as string[];
}

export async function moment(row: number, ns: bigint, signal?: AbortSignal): Promise<Moment> {
  const fields = await ask("moment", { row, ns }, signal);
  const time = (value: Json) => (value === null ? null : big(value));
  return { ...(fields as unknown as Moment), begin: time(fields.begin), end: time(fields.end) };
}

export async function rank(ns: bigint, filter: string, signal?: AbortSignal): Promise<number> {
  return (await ask("rank", { ns, filter }, signal)).row as number;
}

export async function rows(row: number, count: number, filter: string, signal?: AbortSignal): Promise<Rows> {
  const fields = await ask("rows", { row, count, filter }, signal);
  return { ...(fields as unknown as Rows), rows: (fields.rows as Json[][]).map(toRow) };
}

export async function event(row: number, filter: string, signal: AbortSignal): Promise<Details> {
  const fields = await ask("event", { row, filter }, signal);
  return { ...(fields as unknown as Details), line: toRow(fields.line as Json[]) };
}

export async function cause(row: number, ns: bigint, signal?: AbortSignal): Promise<Cause> {
  const fields = await ask("cause", { row, ns }, signal);
  const stay = (value: Json): Stay | null => {
    const one = value as Fields | null;
    return one && ({ ...one, begin: one.begin === null ? null : big(one.begin), end: big(one.end) } as unknown as Stay);
  };
  const waker = fields.waker as Fields | null;
  return {
    ...(fields as unknown as Cause),
    state: stay(fields.state),
    waited: stay(fields.waited),
    ready: stay(fields.ready),
    waker: waker && ({ ...waker, ns: big(waker.ns) } as unknown as Waker),
  };
}

export interface LatencyMap extends Ready {
  range: Range;
  n: number;
  columns: number;
  classes: number[]; // lower ends of durations, ns
  cells: [column: number, kind: number, count: number][];
  names: [name: string, n: number, ns: number][];
}

export interface Member {
  begin: bigint;
  end: bigint;
  row: number;
  name: string;
}

export async function latency(name: string, range: Range, columns: number, text: string, signal: AbortSignal): Promise<LatencyMap> {
  const fields = await ask("latency", { name, ...range, count: columns, text }, signal);
  return { ...(fields as unknown as LatencyMap), columns, range };
}

/** Those of @range with durations from @least to below @most, the longest first. */
export async function members(
  name: string,
  range: Range,
  [least, most]: [number, number],
  text: string,
  count: number,
  signal: AbortSignal,
): Promise<{ n: number; members: Member[] }> {
  const limit = Number.isFinite(most) ? BigInt(Math.ceil(most)) : 2n ** 63n - 1n;
  const fields = await ask("members", { name, ...range, least: Math.ceil(least), most: limit, text, count }, signal);
  const list = (fields.members as Json[][]).map(([begin, end, row, one]) => ({ begin: big(begin), end: big(end), row, name: one }));
  return { n: fields.n as number, members: list as Member[] };
}

async function notesFrom(path: string, words: Words): Promise<Notes> {
  const fields = await ask(path, words, undefined, path === "notes" ? "GET" : "POST");
  const list = (fields.notes as Fields[]).map(({ id, begin, end, text }) => ({ id, begin: big(begin), end: big(end), text }));
  return { ...(fields as unknown as Notes), notes: list as Note[] };
}

export const notes = (): Promise<Notes> => notesFrom("notes", {});

/** Add a note, or change one. An empty text is a bookmark. */
export const note = ({ id, begin, end, text }: Omit<Note, "id"> & { id: number | null }): Promise<Notes> =>
  notesFrom("note", id === null ? { begin, end, text } : { begin, end, text, row: id });

export const unnote = (id: number): Promise<Notes> => notesFrom("unnote", { row: id });

const toSum = ([name, n, ns, waiting, longest]: Json[]): AreaSum =>
  ({ name, n, ns: Number(ns), waiting: Number(waiting), longest: Number(longest) }) as AreaSum;

export async function area(range: Range, filter: string, signal: AbortSignal): Promise<Area> {
  const fields = await ask("area", { ...range, filter }, signal);
  const lists = ["names", "calls", "spans", "irqs", "requests"].map((key) => [key, (fields[key] as Json[][]).map(toSum)]);
  const threads = (fields.threads as Json[][]).map(([id, tid, name, active, states]) => ({ id, tid, name, active, states }));
  const counters = (fields.counters as Json[][]).map(([id, kind, number, name, low, mean, high]) => ({
    id,
    kind,
    number,
    name,
    low,
    mean,
    high,
  }));
  return { ...(fields as unknown as Area), ...Object.fromEntries(lists), threads, counters, range } as Area;
}

/** Other programs with reports, by their names. */
export async function programs(): Promise<string[]> {
  return (await ask("programs", {})).programs as string[];
}

/** The report of a program, by its place in the list. */
export async function program(place: number, range: Range, signal: AbortSignal): Promise<Report> {
  return (await ask("program", { row: place, ...range }, signal, "POST")) as unknown as Report;
}

/** A trace that is dropped on the page: its number, and how many bytes it can have. */
export const drop = async (signal: AbortSignal): Promise<{ drop: number; space: number }> =>
  (await ask("drop", {}, signal, "POST")) as unknown as { drop: number; space: number };

/** A file of it. */
export async function dropFile(number: number, path: string, file: Blob, signal: AbortSignal): Promise<void> {
  const query = new URLSearchParams({ row: String(number), text: path });
  const answer = await fetch(`api/drop-file?${query}`, { method: "POST", body: file, signal });
  if (!answer.ok) throw new Error(String(((await answer.json()) as Fields).error));
}

export const dropEnd = async (number: number): Promise<unknown> => ask("drop-end", { row: number }, undefined, "POST");
export const dropOpen = async (number: number, signal: AbortSignal): Promise<unknown> => ask("drop-open", { row: number }, signal, "POST");

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

export async function report(name: string, range: Range, filter: string, signal: AbortSignal, more: ReportWords): Promise<Report> {
  const given = Object.entries(more).filter(([, value]) => value !== undefined && value !== "") as [string, string | number | bigint][];
  return (await ask("report", { name, ...range, filter, ...Object.fromEntries(given) }, signal, "POST")) as unknown as Report;
}

/** A statement of SQL, as a report. */
export async function query(text: string, range: Range, signal: AbortSignal): Promise<Report> {
  return (await ask("query", { text, ...range }, signal, "POST")) as unknown as Report;
}
