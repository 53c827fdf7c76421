// SPDX-License-Identifier: MIT
// What the page shows, and its place in the address (the part after '#'), which restores it.
import { useEffect, useState } from "preact/hooks";
import type { Info, Note, Progress } from "./api";
import { compose, NO_COLUMNS, type Columns } from "./filters";
import type { ThreadPath } from "./path";
import { clamp, span, type Range } from "./time";
import type { Arrangement } from "./tree";

export interface State {
  view: Range; // what the graph shows
  selection: Range | null; // an area, for reports
  cursor: bigint | null; // the time of the selected event
  row: number | null; // the selected event, as the table counts
  top: number; // the first visible row; with a fraction while it scrolls
  shown: Range | null; // times of the visible rows
  filter: string; // what the server gets, of:
  base: string; // as it was typed
  columns: Columns;
  search: string; // as it was typed
  report: string; // "": the details of the event
  of: string | null; // the key of the thread that a report is about
  choice: Choice; // of reports
  follow: boolean; // a recording that goes on: the graph ends at the present
  wanted: { row: number; ns: bigint } | null; // an event that the table is to select
  rows: RowsState;
}

/** What the rows show. Rows have keys: tree.ts. */
export interface RowsState extends Arrangement {
  toggled: readonly string[]; // open ones that are closed at first, and the other way round
  pinned: readonly string[];
  selected: string | null;
  fields: readonly string[]; // of events, "EVENT.FIELD", as curves
}

/** What reports are about, as it was typed. */
export interface Choice {
  readonly about: string; // as --of
  readonly comm: string;
  readonly periods: string; // a definition in each line
  readonly least: string; // durations
  readonly most: string;
}

export const NO_CHOICE: Choice = { about: "", comm: "", periods: "", least: "", most: "" };

function choiceFrom(words: URLSearchParams): Choice {
  const text = (name: keyof Choice, most: number) => (words.get(name) ?? "").slice(0, most);
  const choice = { about: text("about", 200), comm: text("comm", 200), periods: text("periods", 1300), least: text("least", 30), most: text("most", 30) };
  return Object.values(choice).some(Boolean) ? choice : NO_CHOICE;
}

function choiceTo(choice: Choice, words: URLSearchParams): void {
  for (const [name, text] of Object.entries(choice)) if (text) words.set(name, text as string);
}

/** In the place of a report: statistics of the range. */
export const AREA = "area";
/** And durations. */
export const LATENCY = "latency";
/** And the list of notes. */
export const NOTES = "notes";
/** Before the name of another program. */
export const PROGRAM = "program/";

const MOST_KEYS = 256; // in the address
const MOST_FIELDS = 16;

function rowsFrom(words: URLSearchParams): RowsState {
  const keys = (name: string) => (words.get(name) ?? "").split("~").filter(Boolean).slice(0, MOST_KEYS);
  const sort = words.get("sort");
  return {
    sort: sort === "name" || sort === "number" ? sort : "cpu",
    filter: (words.get("rows") ?? "").slice(0, 200),
    active: words.get("active") === "1",
    low: words.get("low") === "1",
    toggled: keys("toggled"),
    pinned: keys("pin"),
    selected: words.get("track"),
    fields: words.getAll("field").slice(0, MOST_FIELDS),
  };
}

function rowsTo(rows: RowsState, words: URLSearchParams): void {
  if (rows.sort !== "cpu") words.set("sort", rows.sort);
  if (rows.filter) words.set("rows", rows.filter);
  if (rows.active) words.set("active", "1");
  if (rows.low) words.set("low", "1");
  if (rows.toggled.length) words.set("toggled", rows.toggled.slice(0, MOST_KEYS).join("~"));
  if (rows.pinned.length) words.set("pin", rows.pinned.slice(0, MOST_KEYS).join("~"));
  for (const field of rows.fields.slice(0, MOST_FIELDS)) words.append("field", field);
  if (rows.selected !== null) words.set("track", rows.selected);
}

const S = 1_000_000_000n;

export class Store {
  state: State;
  progress: Progress = { total: 0, progress: 0, error: null };
  notes: Note[] = []; // by time
  path: ThreadPath | null = null; // which the rows show
  private readonly listeners = new Set<() => void>();
  private readonly views: Range[] = []; // for undo
  private saved = 0;
  private written = window.location.hash; // in the address, by this page
  private length: bigint | null = 10n * S; // of the graph while it follows a recording; null: all of it

  constructor(
    public info: Info,
    public whole: Range,
    readonly programs: string[], // others with reports
  ) {
    this.state = {
      view: whole,
      selection: null,
      cursor: null,
      row: null,
      top: 0,
      shown: null,
      filter: "",
      base: "",
      columns: NO_COLUMNS,
      search: "",
      report: "",
      of: null,
      choice: NO_CHOICE,
      follow: false,
      wanted: null,
      rows: rowsFrom(new URLSearchParams()),
    };
    this.restore();
    window.addEventListener("hashchange", () => {
      this.written = window.location.hash;
      if (window.location.hash.slice(1) !== this.address()) {
        this.restore();
        this.tell();
      }
    });
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(): void {
    for (const listener of this.listeners) listener();
  }

  set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    window.clearTimeout(this.saved);
    this.saved = window.setTimeout(() => this.save(), 200);
    this.tell();
  }

  /** Unless the user has just changed the address: that comes first. */
  private save(): void {
    if (window.location.hash !== this.written) return;
    window.history.replaceState(null, "", `#${this.address()}`);
    this.written = window.location.hash;
  }

  setRows(change: Partial<RowsState>): void {
    this.set({ rows: { ...this.state.rows, ...change } });
  }

  setFilter(base: string, columns: Columns): void {
    this.set({ base, columns, filter: compose(base, columns), row: null });
  }

  /** Select an area: its statistics are shown, if no report is. */
  select(selection: Range | null): void {
    const { report } = this.state;
    if (selection) this.set({ selection, report: report || AREA });
    else this.set({ selection, report: report === AREA ? "" : report });
  }

  /** Show a report; of a thread: the selected one, in a range that stays. */
  setReport(report: string, of: string | null = null): void {
    const { choice, report: before, selection } = this.state;
    // What a flame graph is of, no other report can be about.
    const isOther = choice.about !== "" && (report === "flame") !== (before === "flame");
    this.set({ report, of, selection: of === null ? selection : this.range, choice: isOther ? { ...choice, about: "" } : choice });
  }

  /** What was found of a thread. */
  setPath(path: ThreadPath | null): void {
    if (path === this.path) return;
    this.path = path;
    this.tell();
  }

  setNotes(notes: Note[]): void {
    this.notes = notes;
    this.tell();
  }

  setProgress(progress: Progress): void {
    this.progress = progress;
    this.tell();
  }

  /** The number of what can be seen of a recording: it changes when there is more. */
  get generation(): number {
    return this.info.recording?.generation ?? 0;
  }

  /** A later state of a recording. */
  renew(info: Info): void {
    this.info = info;
    this.whole = info.range ?? this.whole;
    const follow = this.state.follow && !!info.recording?.running;
    if (this.state.follow) this.state = { ...this.state, view: this.present() };
    this.set({ follow });
  }

  /** Follow a recording that goes on. */
  follow(): void {
    if (this.info.recording?.running) this.set({ follow: true, view: this.present() });
  }

  private present(): Range {
    const { begin, end } = this.whole;
    return this.length === null ? this.whole : clamp({ begin: end - this.length, end }, { begin, end });
  }

  /** While the graph follows a recording: zooming keeps its end at the present, other moves end that. */
  private stay(next: Range): Range | null {
    const { view } = this.state;
    const [size, before] = [span(next), span(view)];
    const is = (outer: Range, inner: Range) => outer.begin <= inner.begin && outer.end >= inner.end;
    if (next.begin === this.whole.begin && next.end === this.whole.end) this.length = null;
    else if (size !== before && size < 2.1 * before && before < 2.1 * size && (is(next, view) || is(view, next)))
      this.length = next.end - next.begin;
    else return null;
    return this.present();
  }

  /** Move the graph; undo() returns. */
  go(view: Range): void {
    let next = clamp(view, this.whole);
    if (this.state.follow) {
      const stays = this.stay(next);
      if (!stays && next.end < this.whole.end) this.state = { ...this.state, follow: false };
      next = stays ?? next;
    }
    if (next.begin === this.state.view.begin && next.end === this.state.view.end) return;
    this.views.push(this.state.view);
    if (this.views.length > 200) this.views.shift();
    this.set({ view: next });
  }

  undo(): void {
    const view = this.views.pop();
    if (view) this.set({ view, follow: false });
  }

  /** What reports are about. */
  get range(): Range {
    return this.state.selection ?? this.state.view;
  }

  address(): string {
    const { view, selection, row, top, base, columns, search, report, of, choice, cursor, rows } = this.state;
    const words = new URLSearchParams({ b: String(view.begin), e: String(view.end) });
    if (selection) words.set("s", `${selection.begin},${selection.end}`);
    if (this.state.follow) words.set("live", "1");
    if (base) words.set("f", base);
    for (const [name, text] of Object.entries(columns)) if (text) words.set(name, text as string);
    if (search) words.set("q", search);
    if (report) words.set("r", report);
    if (of !== null) words.set("of", of);
    choiceTo(choice, words);
    if (row !== null) words.set("row", String(row));
    if (cursor !== null) words.set("c", String(cursor));
    if (top >= 1) words.set("top", String(Math.floor(top)));
    rowsTo(rows, words);
    return words.toString();
  }

  private hasReport(name: string): boolean {
    if (name.startsWith(PROGRAM)) return this.programs.includes(name.slice(PROGRAM.length));
    return [AREA, LATENCY, NOTES].includes(name) || this.info.reports.some((one) => one.name === name);
  }

  private restore(): void {
    const words = new URLSearchParams(window.location.hash.slice(1));
    const time = (text: string | null | undefined) => (text && /^-?\d{1,19}$/.test(text) ? BigInt(text) : null);
    const number = (text: string | null) => (text && /^\d{1,15}$/.test(text) ? Number(text) : null);
    const range = (begin: bigint | null, end: bigint | null) =>
      begin !== null && end !== null && begin <= end ? clamp({ begin, end }, this.whole, 0n) : null;
    const [from, to] = (words.get("s") ?? "").split(",");
    const report = words.get("r") ?? "";
    const base = words.get("f") ?? "";
    const columns = { cpu: words.get("cpu") ?? "", event: words.get("event") ?? "", text: words.get("text") ?? "" };
    const follow = !!this.info.recording?.running && (!words.has("b") || words.get("live") === "1");
    const view = range(time(words.get("b")), time(words.get("e")));
    if (follow && view) this.length = view.end - view.begin;
    this.state = {
      view: follow ? this.present() : clamp(view ?? this.whole, this.whole),
      follow,
      selection: range(time(from), time(to)),
      cursor: time(words.get("c")),
      row: number(words.get("row")),
      top: number(words.get("top")) ?? 0,
      shown: null,
      filter: compose(base, columns),
      base,
      columns,
      search: words.get("q") ?? "",
      report: this.hasReport(report) ? report : "",
      of: words.get("of"),
      choice: choiceFrom(words),
      wanted: null,
      rows: rowsFrom(words),
    };
  }
}

/** The state, and a new picture of the component when it changes. */
export function useStore(store: Store): State {
  const [, draw] = useState(0);
  useEffect(() => store.listen(() => draw((n) => n + 1)), [store]);
  return store.state;
}

/** Call @run some time after the last change of @inputs; what it began is aborted at the next change. */
export function useLater(run: (signal: AbortSignal) => Promise<void>, inputs: unknown[], delayMs: number): void {
  useEffect(() => {
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      run(abort.signal).catch((error: Error) => {
        if (!abort.signal.aborted) throw error;
      });
    }, delayMs);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, inputs);
}
