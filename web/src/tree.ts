// SPDX-License-Identifier: MIT
// The tree of rows: machines, CPUs, processes and threads, disks, data streams; which of them are visible, in which order.
import type { TreeRow } from "./api";
import { CURVES, type Curve } from "./curves";

export type Sort = "cpu" | "name" | "number";

/** A row of the page. Groups and processes with several threads have no states of their own. */
export interface Track {
  key: string; // the row's number; of groups a text
  id: number | null; // the row of the history whose states it shows
  own: number | null; // its row, even if that has no states
  sources: readonly number[]; // rows whose lost events it lacks: itself, its CPU or its process
  kind: string;
  number: number;
  label: string;
  curve: Curve | null; // else its states are shown
  children: Track[];
  closed: boolean; // at first
}

export const ROW = 18;
const LOW_ROW = 12;
const TALL = 34;
const LOW_TALL = 24;

const MEMORY = 5; // enum ky_counter

/** Curves need room; processes and their memory are many. */
export function heightOf(track: Track, low: boolean): number {
  const isOfProcess = track.kind === "process" || (track.kind === "counter" && track.number === MEMORY);
  if (track.curve && !isOfProcess) return low ? LOW_TALL : TALL;
  return low ? LOW_ROW : ROW;
}

/** A visible row, where it is, and its place among its brothers. */
export interface Line {
  track: Track;
  y: number;
  height: number;
  depth: number;
  open: boolean | null; // null: nothing is below it
  position: number;
  brothers: number;
}

/** Which rows, and in which order. */
export interface Arrangement {
  sort: Sort;
  filter: string;
  active: boolean; // only rows with states in the range
  low: boolean; // low rows
}

export interface Choice extends Arrangement {
  toggled: ReadonlySet<string>;
}

const GROUPS: [kinds: string[], label: string][] = [
  [["cpu"], "CPUs"],
  [["process", "thread"], "Processes"],
  [["disk"], "Disks"],
  [["counter"], "Network"],
  [["stream"], "Data streams"],
];
const RANKS = ["use", "queue", "counter", "irq", "spans", "requests", "thread", "process"];
const CLOSED = new Set(["cpu", "disk"]);

const LABELS: Record<string, (row: TreeRow) => string> = {
  cpu: (row) => `CPU ${row.number}`,
  thread: (row) => `${row.name || "?"} (${row.number})`,
  process: (row) => `${row.name || "?"} (${row.number})`,
  disk: (row) => row.name || `device ${row.number}`,
  requests: (row) => `requests, lane ${row.number + 1}`,
  spans: (row) => (row.number ? `spans, depth ${row.number + 1}` : "spans"),
};

function toTrack(row: TreeRow): Track {
  const label = LABELS[row.kind]?.(row) ?? (row.name || row.kind);
  const { id, kind, number } = row;
  const children: Track[] = [];
  if (kind === "cpu") children.push(useOf(`use${id}`, id, "use", "CPU use", []));
  const curve = CURVES[kind]?.(id, number) ?? null;
  const sources = row.parent === null ? [id] : [id, row.parent];
  return { key: String(id), id: row.states ? id : null, own: id, sources, kind, number, label, curve, children, closed: CLOSED.has(kind) };
}

/** How much a CPU, or all CPUs of a machine, ran. */
function useOf(key: string, id: number, kind: string, label: string, children: Track[]): Track {
  const curve = { source: id, unit: "%", scale: 100, most: 100, perSecond: false };
  return { key, id: null, own: null, sources: [id], kind, number: 0, label, curve, children, closed: false };
}

/** How many threads wait for any CPU of a machine. */
function queueOf(id: number, sources: number[]): Track {
  const curve = { source: id, unit: "threads", scale: 1, most: null, perSecond: false, queues: true };
  const label = "waiting threads";
  return { key: `queue${id}`, id: null, own: null, sources, kind: "queues", number: -1, label, curve, children: [], closed: false };
}

/** Fields of events that the user chose. */
export function fieldsOf(fields: readonly string[]): Track[] {
  const children = fields.map((field): Track => {
    const curve = { source: field, unit: "", scale: 1, most: null, perSecond: false };
    return { key: `field ${field}`, id: null, own: null, sources: [], kind: "field", number: 0, label: field, curve, children: [], closed: false };
  });
  if (!children.length) return [];
  return [{ key: "fields", id: null, own: null, sources: [], kind: "group", number: 0, label: "Fields", curve: null, children, closed: false }];
}

/** A process with one thread is this thread: what is below the process comes below it. */
function merge(process: Track): void {
  const threads = process.children.filter((child) => child.kind === "thread");
  if (threads.length !== 1 || threads[0].number !== process.number) {
    if (threads.length) process.label += `, ${threads.length} threads`;
    return;
  }
  const [thread] = threads;
  process.children = [...thread.children, ...process.children.filter((child) => child !== thread)];
  process.key = thread.key;
  process.id = thread.id;
  process.own = thread.own;
  process.label = thread.label;
  process.curve = null;
  process.sources = [...process.sources, ...thread.sources];
  process.kind = "thread";
}

/** So deep, a chain of processes begins again at the top. */
const DEEPEST = 64;

/** The processes of a machine below those that made them. Traces can say anything: what is in a circle is at the top. */
function family(processes: Track[], origins: ReadonlyMap<Track, number>): Track[] {
  const numbers = new Map(processes.map((process) => [process.number, process]));
  const depths = new Map<Track, number>(); // 0: at the top
  const parent = (child: Track) => {
    const found = numbers.get(origins.get(child) ?? 0);
    return found === child ? undefined : found;
  };
  const find = (track: Track) => {
    const path: Track[] = [];
    let at: Track | undefined = track;
    for (; at && !depths.has(at); at = parent(at)) {
      depths.set(at, 0);
      path.push(at);
    }
    let depth = at ? depths.get(at)! + 1 : 0;
    while (path.length) {
      const one = path.pop()!;
      if (one === at) depth = 0; // it closes a circle
      depths.set(one, depth++ % DEEPEST);
    }
  };
  processes.forEach(find);
  return processes.filter((process) => {
    if (!depths.get(process)) return true;
    parent(process)!.children.push(process);
    return false;
  });
}

function groups({ key, children: tracks }: Track): Track[] {
  const known = new Set(GROUPS.flatMap(([kinds]) => kinds));
  const rest = tracks.filter((track) => !known.has(track.kind));
  const made = GROUPS.map(([kinds, label]): Track => ({
    key: `${key}.${label}`,
    id: null,
    own: null,
    sources: [],
    kind: "group",
    number: 0,
    label,
    curve: null,
    children: tracks.filter((track) => kinds.includes(track.kind)),
    closed: false,
  }));
  if (made[0].children.length) {
    const cpus = made[0].children;
    // What one CPU lacks, all of them lack.
    const sources = cpus.flatMap((cpu) => cpu.sources);
    const hasQueues = cpus.some((cpu) => cpu.children.some((child) => child.kind === "queue"));
    const children = hasQueues ? [queueOf(Number(key), sources), ...cpus] : cpus;
    made[0] = { ...useOf(made[0].key, Number(key), "group", made[0].label, children), sources };
  }
  return [...made.filter((group) => group.children.length), ...rest];
}

/** All rows. One machine is not shown: what is below it is at the top. */
export function build(rows: TreeRow[]): Track[] {
  const tracks = new Map(rows.map((row) => [row.id, toTrack(row)]));
  const origins = new Map<Track, number>();
  const tops: Track[] = [];
  const processes = new Map<Track, Track[]>();
  for (const row of rows) {
    const track = tracks.get(row.id)!;
    const above = row.parent === null ? undefined : tracks.get(row.parent);
    if (row.kind === "process") {
      origins.set(track, row.origin);
      if (above) {
        const list = processes.get(above) ?? [];
        processes.set(above, list);
        list.push(track);
        continue;
      }
    }
    (above?.children ?? tops).push(track);
  }
  for (const [machine, list] of processes) {
    // Rows of processes of which no thread is known have nothing to show.
    const seen = list.filter((process) => process.children.length);
    const top = family(seen, origins);
    seen.forEach(merge);
    machine.children.push(...top);
  }
  const machines = tops.filter((track) => track.kind === "machine");
  for (const machine of machines) machine.children = groups(machine);
  return tops.length === 1 && machines.length === 1 ? machines[0].children : tops;
}

/** "web*1" as a pattern that matches anywhere; other characters are themselves. */
function pattern(text: string): RegExp | null {
  const words = text.trim();
  if (!words) return null;
  const escaped = words.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  return new RegExp(escaped, "i");
}

export const isOpen = (track: Track, toggled: ReadonlySet<string>) => track.closed === toggled.has(track.key);

/** What is to be seen of @tracks, from top to bottom. @active: ns, by the rows' numbers. */
export function lines(tracks: Track[], choice: Choice, active: ReadonlyMap<number, number>): Line[] {
  const found: Line[] = [];
  let y = 0;
  const sums = new Map<Track, number>();
  const wanted = pattern(choice.filter);
  const shown = new Map<Track, boolean>();

  const measure = (track: Track): number => {
    let sum = track.id === null || track.kind === "irq" || track.kind === "spans" ? 0 : (active.get(track.id) ?? 0);
    if (track.kind === "irq" && track.id !== null) sum = active.get(track.id) ?? 0;
    for (const child of track.children) {
      const below = measure(child);
      if (child.kind === "thread" || child.kind === "process") sum += below;
    }
    sums.set(track, sum);
    return sum;
  };
  const isThere = (track: Track) => !choice.active || track.id === null || active.has(track.id) || !TIMED.has(track.kind);
  const mark = (track: Track, chosen: boolean): boolean => {
    const here = chosen || !wanted || (track.kind !== "group" && wanted.test(track.label));
    let any = false;
    for (const child of track.children) any = mark(child, here) || any;
    const itself = here && track.kind !== "group" && isThere(track) && (track.id !== null || !!track.curve || !track.children.length);
    shown.set(track, itself || any);
    return itself || any;
  };
  const order = (a: Track, b: Track): number => {
    const rank = RANKS.indexOf(a.kind) - RANKS.indexOf(b.kind);
    const isTask = (track: Track) => track.kind === "thread" || track.kind === "process";
    if (rank && !(isTask(a) && isTask(b))) return rank;
    if (isTask(a) || a.kind === "irq") {
      if (choice.sort === "cpu") {
        const busier = (sums.get(b) ?? 0) - (sums.get(a) ?? 0);
        if (busier) return busier;
      }
      if (choice.sort === "name" && a.label !== b.label) return a.label < b.label ? -1 : 1;
    }
    return a.number - b.number || (a.label < b.label ? -1 : a.label > b.label ? 1 : 0);
  };
  const add = (brothers: Track[], depth: number) => {
    const visible = brothers.filter((track) => shown.get(track));
    if (visible.length > 1 && visible[0].kind !== "group") visible.sort(order);
    visible.forEach((track, i) => {
      const below = track.children.some((child) => shown.get(child));
      // What matches is in sight.
      const open = below ? isOpen(track, choice.toggled) || (wanted !== null && !wanted.test(track.label)) : null;
      const height = heightOf(track, choice.low);
      found.push({ track, y, height, depth, open, position: i + 1, brothers: visible.length });
      y += height;
      if (open) add(track.children, depth + 1);
    });
  };
  for (const track of tracks) {
    measure(track);
    mark(track, false);
  }
  add(tracks, 0);
  return found;
}

const TIMED = new Set(["cpu", "irq", "thread", "requests", "spans"]);

/** All tracks by their keys. */
export function byKey(tracks: Track[], found = new Map<string, Track>()): Map<string, Track> {
  for (const track of tracks) {
    found.set(track.key, track);
    byKey(track.children, found);
  }
  return found;
}
