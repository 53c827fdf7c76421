// SPDX-License-Identifier: MIT
// What the server answers. Paths are relative: the secret token is in the page's own address.
import { Columns, type Fields } from "./answer-bytes";
import * as answers from "./answers";
import { big, parse, type Json } from "./json";
import { answer as savedAnswer, isSaved } from "./saved";
import { savedActivity, savedArea, savedMembersOf, savedRow, savedRowsOf, savedTree } from "./saved-answers";
import type { Range } from "./time";
import type {
  Area,
  Arrows,
  Cause,
  Curves,
  Density,
  Details,
  FieldCurve,
  Info,
  LatencyMap,
  Losses,
  Marks,
  Member,
  Moment,
  Note,
  Notes,
  Report,
  ReportWords,
  Rows,
  Stay,
  Timeline,
  Tree,
  Waker,
} from "./types";

export type * from "./types";

type Words = { [key: string]: string | number | bigint };

let asked = 0;

/** How many answers the page waits for, reports left out. */
export const pending = (): number => asked;

/** What makes no sense now makes none later, such as a wrong filter. */
export class Refused extends Error {}

const failure = ({ status }: Response, message: string): Error => (status >= 400 && status < 500 ? new Refused(message) : new Error(message));

/** The server takes as much of a filter, a statement or a note (KY_VIEW_FILTER_BYTES), and fewer of other words. */
const MOST_BYTES = 4095;

function addressOf(path: string, words: Words): string {
  for (const [key, value] of Object.entries(words))
    if (key !== "ids" && typeof value === "string" && new TextEncoder().encode(value).length > MOST_BYTES)
      throw new Refused(`The ${key} is too long: it may have ${MOST_BYTES} bytes`);
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(words)) if (value !== "" || key === "text") query.set(key, String(value));
  return `api/${path}?${String(query).replace(/%2C/g, ",")}`;
}

/** What an answer of JSON has. */
async function ask(path: string, words: Words, signal?: AbortSignal, method = "GET"): Promise<Fields> {
  if (isSaved) return savedAnswer(path, words);
  const one = method === "GET" ? 1 : 0;
  asked += one;
  try {
    const answer = await fetch(addressOf(path, words), { method, signal });
    const fields = parse(await answer.text()) as Fields;
    if (!answer.ok) throw failure(answer, String(fields.error ?? answer.statusText));
    return fields;
  } finally {
    asked -= one;
  }
}

/** An answer of columns, or the JSON of a saved page. */
async function askColumns<T>(path: string, words: Words, of: (columns: Columns) => T, saved: (fields: Fields) => T, signal?: AbortSignal): Promise<T> {
  if (isSaved) return saved(await savedAnswer(path, words));
  const answer = await fetch(addressOf(path, words), { signal });
  if (!answer.ok) throw failure(answer, ((await answer.json()) as { error?: string }).error ?? answer.statusText);
  return of(new Columns(new Uint8Array(await answer.arrayBuffer())));
}

/** The same, while pending() tells of it. */
async function counted<T>(asking: Promise<T>): Promise<T> {
  asked++;
  try {
    return await asking;
  } finally {
    asked--;
  }
}

const asIs = <T>(fields: Fields): T => fields as unknown as T;

export async function info(): Promise<Info> {
  const fields = await ask("info", {});
  const range = fields.begin === null ? null : { begin: big(fields.begin), end: big(fields.end) };
  return { ...(fields as unknown as Info), range };
}

export async function density(range: Range, count: number, filter: string, signal: AbortSignal): Promise<Density> {
  const of = (columns: Columns) => answers.densityOf(columns, count);
  return { ...(await counted(askColumns<Omit<Density, "range">>("density", { ...range, count, filter }, of, asIs, signal))), range };
}

export const tree = (signal: AbortSignal): Promise<Tree> => counted(askColumns("tree", {}, answers.treeOf, savedTree, signal));

/** How long each row was active, ns. Rows without states in the range are not there. */
export const activity = (range: Range, signal: AbortSignal): Promise<Map<number, number>> =>
  counted(askColumns("activity", { ...range }, answers.activityOf, savedActivity, signal));

/** What is drawn for a range. */
async function picture<T>(path: string, range: Range, count: number, words: Words, of: (columns: Columns) => T): Promise<T & { range: Range }> {
  return { ...(await askColumns<T>(path, { ...range, count, ...words }, of, asIs)), range };
}

export const timeline = (range: Range, count: number, ids: number[]): Promise<Timeline> =>
  picture("timeline", range, count, { ids: ids.join(",") }, answers.timelineOf);

export const curves = (range: Range, count: number, ids: number[]): Promise<Curves> =>
  picture("curves", range, count, { ids: ids.join(",") }, answers.curvesOf);

/** Of machines: how many threads wait for their CPUs. */
export const queues = (range: Range, count: number, ids: number[]): Promise<Curves> =>
  picture("curves", range, count, { ids: ids.join(","), name: "queues" }, answers.curvesOf);

export const marks = (range: Range, count: number, filter: string): Promise<Marks> => picture("marks", range, count, { filter }, answers.marksOf);

export const arrows = (range: Range, count: number, row: number): Promise<Arrows> => picture("arrows", range, count, { row }, answers.arrowsOf);

export const losses = (range: Range, count: number): Promise<Losses> => picture("losses", range, count, {}, answers.lossesOf);

/** A field of an event, "EVENT.FIELD". */
export const field = (range: Range, count: number, name: string, filter: string): Promise<FieldCurve> =>
  picture("field", range, count, { field: name, filter }, answers.fieldOf);

export async function fields(signal: AbortSignal): Promise<string[]> {
  return (await ask("fields", {}, signal)).fields as string[];
}

export async function moment(row: number, ns: bigint, signal?: AbortSignal): Promise<Moment> {
  const fields = await ask("moment", { row, ns }, signal);
  const time = (value: Json) => (value === null ? null : big(value));
  return { ...(fields as unknown as Moment), begin: time(fields.begin), end: time(fields.end) };
}

export async function rank(ns: bigint, filter: string, signal?: AbortSignal): Promise<number> {
  return (await rankOf(ns, filter, signal)).row;
}

/** @exact: else the events of the filter are still being counted up to there, and the row is about the right one. */
export async function rankOf(ns: bigint, filter: string, signal?: AbortSignal): Promise<{ row: number; exact: boolean }> {
  return (await ask("rank", { ns, filter }, signal)) as unknown as { row: number; exact: boolean };
}

export const rows = (row: number, count: number, filter: string, signal?: AbortSignal): Promise<Rows> =>
  counted(askColumns("rows", { row, count, filter }, answers.rowsOf, savedRowsOf, signal));

export async function event(row: number, filter: string, signal: AbortSignal): Promise<Details> {
  const fields = await ask("event", { row, filter }, signal);
  return { ...(fields as unknown as Details), line: savedRow(fields.line as Json[]) };
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

export async function latency(name: string, range: Range, columns: number, text: string, signal: AbortSignal): Promise<LatencyMap> {
  const of = (found: Columns) => answers.latencyOf(found, columns);
  const saved = (fields: Fields) => ({ ...asIs<LatencyMap>(fields), columns });
  const words = { name, ...range, count: columns, text };
  return { ...(await counted(askColumns<Omit<LatencyMap, "range">>("latency", words, of, saved, signal))), range };
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
  const words = { name, ...range, least: Math.ceil(least), most: limit, text, count };
  return counted(askColumns("members", words, answers.membersOf, savedMembersOf, signal));
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

export async function area(range: Range, filter: string, signal: AbortSignal): Promise<Area> {
  return { ...(await counted(askColumns("area", { ...range, filter }, answers.areaOf, savedArea, signal))), range };
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

export async function report(name: string, range: Range, filter: string, signal: AbortSignal, more: ReportWords): Promise<Report> {
  const given = Object.entries(more).filter(([, value]) => value !== undefined && value !== "") as [string, string | number | bigint][];
  return (await ask("report", { name, ...range, filter, ...Object.fromEntries(given) }, signal, "POST")) as unknown as Report;
}

/** A statement of SQL, as a report. */
export async function query(text: string, range: Range, signal: AbortSignal): Promise<Report> {
  return (await ask("query", { text, ...range }, signal, "POST")) as unknown as Report;
}
