// SPDX-License-Identifier: MIT
// From columns to what the page works with. An answer whose columns do not fit together is refused.
import { Columns, fail, Runs } from "./answer-bytes";
import type { Area, AreaSum, Arrows, Curves, Density, FieldCurve, LatencyMap, Losses, Marks, Member, Numbers, Rows, Timeline, Tree } from "./types";

/** Without what the question says. */
type Told<T> = Omit<T, "range">;
/** The members that are no columns, as the server's own JSON. */
const headOf = <T>(columns: Columns): T => columns.head as unknown as T;

const KINDS = 256;
const MOST_IDS = 256;

export function timelineOf(columns: Columns): Told<Timeline> {
  const names = columns.texts("names");
  const kinds = columns.numbers("kind");
  const details = columns.numbers("detail", kinds.length);
  if (kinds.some((kind) => kind >= KINDS)) fail();
  const ids = columns.numbers("id");
  if (ids.length > MOST_IDS) fail();
  const lengths = columns.numbers("runs", ids.length);
  const all = new Runs(columns);
  const rows = Array.from(ids, (id, i) => {
    const runs = all.take(lengths[i], 4);
    for (let at = 2; at < runs.length; at += 4) {
      const place = runs[at];
      if (place >= kinds.length) fail();
      runs[at] = kinds[place];
      runs[at + 1] = details[place];
    }
    return { id, runs };
  });
  all.end();
  return { ...headOf<Told<Timeline>>(columns), names, rows };
}

/** Values of curves, one run after the other. */
class Heights {
  private at = 0;
  private readonly values: Float32Array | Float64Array;
  private readonly runs: Runs;

  constructor(columns: Columns) {
    this.values = columns.reals("value");
    this.runs = new Runs(columns);
  }

  get left(): number {
    return this.runs.left;
  }

  take(n: number): Float64Array {
    const found = this.runs.take(n, 5);
    for (let at = 2; at < found.length; at += 5) {
      const step = found[at];
      if (step > 1 || this.at + 2 * step >= this.values.length) fail();
      for (let k = 0; k < 3; k++) found[at + k] = this.values[this.at + k * step];
      this.at += 1 + 2 * step;
    }
    return found;
  }

  end(): void {
    if (this.at < this.values.length) fail();
    this.runs.end();
  }
}

export function curvesOf(columns: Columns): Told<Curves> {
  const ids = columns.numbers("id");
  const lengths = columns.numbers("runs", ids.length);
  const heights = new Heights(columns);
  const rows = Array.from(ids, (id, i) => ({ id, runs: heights.take(lengths[i]) }));
  heights.end();
  return { ...headOf<Told<Curves>>(columns), rows };
}

export function fieldOf(columns: Columns): Told<FieldCurve> {
  const heights = new Heights(columns);
  const runs = heights.take(heights.left);
  heights.end();
  return { ...headOf<Told<FieldCurve>>(columns), runs };
}

export function densityOf(columns: Columns, count: number): Told<Density> {
  const events = columns.numbers("events", count);
  const values = columns.numbers("lost");
  const lost = new Float64Array(count);
  const runs = new Runs(columns, count);
  const places = runs.take(values.length, 3);
  for (let i = 0; i < values.length; i++) lost.fill(values[i], places[3 * i], places[3 * i + 1]);
  runs.end();
  return { ...headOf<Told<Density>>(columns), events, lost };
}

export function marksOf(columns: Columns): Told<Marks> {
  const names = columns.texts("names");
  const rows = columns.numbers("row");
  const [pixels, events, numbers] = ["pixel", "events", "name"].map((name) => columns.numbers(name, rows.length));
  const [marks, triggers]: number[][] = [[], []];
  for (let i = 0; i < rows.length; i++) {
    if (pixels[i] < 0 || pixels[i] >= columns.count || !numbers[i] || numbers[i] > names.length) fail();
    if (rows[i]) marks.push(rows[i] - 1, pixels[i], events[i], numbers[i]);
    else triggers.push(pixels[i], events[i], numbers[i]);
  }
  return { ...headOf<Told<Marks>>(columns), marks, triggers, names };
}

export function arrowsOf(columns: Columns): Told<Arrows> {
  const from = columns.numbers("from");
  const to = columns.numbers("to", from.length);
  const [begin, end] = ["begin", "end"].map((name) => columns.reals(name, from.length));
  const arrows = new Float64Array(4 * from.length);
  for (let i = 0; i < from.length; i++) arrows.set([from[i], to[i], begin[i], end[i]], 4 * i);
  return { ...headOf<Told<Arrows>>(columns), arrows };
}

export function lossesOf(columns: Columns): Told<Losses> {
  const names = columns.texts("stream");
  const rowsOf = columns.numbers("rows", names.length);
  const runsOf = columns.numbers("runs", names.length);
  const rows = columns.numbers("row");
  const all = new Runs(columns);
  const events = columns.reals("events", all.left);
  let [row, run] = [0, 0];
  const streams = names.map((stream, i) => {
    if (rowsOf[i] > rows.length - row) fail();
    const runs = all.take(runsOf[i], 4);
    for (let at = 2; at < runs.length; at += 4) [runs[at], runs[at + 1]] = [events[run++], runs[at]];
    row += rowsOf[i];
    return { stream, rows: rows.subarray(row - rowsOf[i], row), runs };
  });
  all.end();
  return { ...headOf<Told<Losses>>(columns), streams };
}

const NO_TIME = -(2n ** 63n);

export function rowsOf(columns: Columns): Rows {
  const times = columns.times("ns");
  const [traces, cpus] = ["trace", "cpu"].map((name) => columns.numbers(name, times.length));
  const names = columns.names("name", "names", times.length);
  const texts = columns.texts("text", times.length);
  const rows = texts.map((text, i) => ({
    ns: times[i] === NO_TIME ? null : times[i],
    trace: traces[i],
    cpu: cpus[i] ? cpus[i] - 1 : null,
    name: names[i],
    text,
  }));
  return { ...headOf<Rows>(columns), rows };
}

export function treeOf(columns: Columns): Tree {
  const ids = columns.numbers("id");
  const [parents, numbers, origins, states] = ["parent", "number", "origin", "states"].map((name) => columns.numbers(name, ids.length));
  const kinds = columns.names("kind", "kinds", ids.length);
  const names = columns.texts("name", ids.length);
  const rows = names.map((name, i) => ({
    id: ids[i],
    parent: parents[i] < 0 ? null : parents[i],
    kind: kinds[i],
    number: numbers[i],
    name,
    origin: origins[i],
    states: states[i] === 1,
  }));
  return { ...headOf<Tree>(columns), rows };
}

export function activityOf(columns: Columns): Map<number, number> {
  const ids = columns.numbers("id");
  const times = columns.numbers("ns", ids.length);
  return new Map(Array.from(ids, (id, i) => [id, times[i]]));
}

export function latencyOf(columns: Columns, count: number): Told<LatencyMap> {
  const classes = columns.reals("classes");
  const at = columns.numbers("column");
  const [kinds, counts] = ["class", "count"].map((name) => columns.numbers(name, at.length));
  if (at.some((column) => column < 0 || column >= count) || kinds.some((kind) => kind < 0 || kind >= classes.length)) fail();
  const names = columns.texts("name");
  const [ns, times] = ["n", "ns"].map((name) => columns.numbers(name, names.length));
  return {
    ...headOf<Told<LatencyMap>>(columns),
    columns: count,
    classes,
    cells: Array.from(at, (column, i) => [column, kinds[i], counts[i]]),
    names: names.map((name, i) => [name, ns[i], times[i]]),
  };
}

export function membersOf(columns: Columns): { n: number; members: Member[] } {
  const begins = columns.times("begin");
  const ends = columns.times("end", begins.length);
  const rows = columns.numbers("row", begins.length);
  const names = columns.names("name", "names", begins.length);
  return { n: columns.head.n as number, members: names.map((name, i) => ({ begin: begins[i], end: ends[i], row: rows[i], name })) };
}

function sumsOf(columns: Columns, title: string): AreaSum[] {
  const names = columns.texts(`${title}.name`);
  const [n, ns, waiting, longest] = ["n", "ns", "waiting", "longest"].map((name) => columns.numbers(`${title}.${name}`, names.length));
  return names.map((name, i) => ({ name, n: n[i], ns: ns[i], waiting: waiting[i], longest: longest[i] }));
}

function threadsOf(columns: Columns): Area["threads"] {
  const ids = columns.numbers("threads.id");
  const [tids, active] = ["tid", "active"].map((name) => columns.numbers(`threads.${name}`, ids.length));
  const names = columns.texts("threads.name", ids.length);
  const states = columns.numbers("threads.states");
  const kinds = ids.length ? states.length / ids.length : 0;
  if (!Number.isInteger(kinds)) fail();
  return names.map((name, i) => ({ id: ids[i], tid: tids[i], name, active: active[i], states: states.subarray(i * kinds, (i + 1) * kinds) as Numbers }));
}

function countersOf(columns: Columns): Area["counters"] {
  const ids = columns.numbers("counters.id");
  const numbers = columns.numbers("counters.number", ids.length);
  const kinds = columns.names("counters.kind", "counters.kinds", ids.length);
  const names = columns.texts("counters.name", ids.length);
  const [low, mean, high] = ["low", "mean", "high"].map((name) => columns.reals(`counters.${name}`, ids.length));
  return names.map((name, i) => ({ id: ids[i], kind: kinds[i], number: numbers[i], name, low: low[i], mean: mean[i], high: high[i] }));
}

export function areaOf(columns: Columns): Told<Area> {
  const [names, calls, spans, irqs, requests] = ["names", "calls", "spans", "irqs", "requests"].map((title) => sumsOf(columns, title));
  const counters = countersOf(columns);
  return { ...headOf<Told<Area>>(columns), names, calls, spans, irqs, requests, threads: threadsOf(columns), counters };
}
