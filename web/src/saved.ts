// SPDX-License-Identifier: MIT
// A page of kymo view --save: its data are in it, and this is the server. src/view/save/save.h has the format.
import { big, parse, type Json } from "./json";
import { splitText } from "./filters";
import { savedArrows } from "./saved-arrows";
import { savedCause } from "./saved-cause";
import { savedField } from "./saved-fields";
import { savedLatency, savedMembers } from "./saved-latency";
import { savedLosses } from "./saved-losses";
import { savedMarks, type Source } from "./saved-marks";
import { SavedReports } from "./saved-reports";
import { SavedRows } from "./saved-rows";

type Fields = { [key: string]: Json };
type Words = { [key: string]: string | number | bigint };

interface Head {
  info: Fields;
  begin: number | bigint;
  end: number | bigint;
  n: number;
  block: number;
  lost: Json[][];
  damage: string | null;
  notes: Fields;
  sections: { [name: string]: [number, number] };
}

const KEPT_BLOCKS = 64;

const element = document.getElementById("saved");

export const isSaved = element !== null;

async function unpack(text: string): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** "sched_*" as a pattern for all of a name. */
function pattern(glob: string): RegExp {
  const escaped = glob.replace(/\\(.)/g, "$1").replace(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/\*/g, ".*").replace(/\?/g, ".")}$`);
}

/** What the columns filter; any other filter is a text. */
function matcher(filter: string): (line: Json[]) => boolean {
  const [expression, contains] = splitText(filter);
  const texts = [contains.toLowerCase()];
  const tests: ((line: Json[]) => boolean)[] = [];
  for (const part of expression.split(" && ")) {
    const name = /^\$event =~ "(.*)"$/.exec(part);
    const cpus = /^\$cpu (?:==|in) \(?([\d, ]+)\)?$/.exec(part);
    if (name) {
      const glob = pattern(name[1]);
      tests.push(([, , , event]) => glob.test(String(event)));
    } else if (cpus) {
      const wanted = new Set(cpus[1].split(",").map(Number));
      tests.push(([, , cpu]) => cpu !== null && wanted.has(Number(cpu)));
    } else texts.push((/^\((.*)\)$/.exec(part)?.[1] ?? part).toLowerCase());
  }
  return (line) => {
    const text = `${String(line[3])} ${String(line[4])}`.toLowerCase();
    return texts.every((one) => text.includes(one)) && tests.every((test) => test(line));
  };
}

class Saved {
  private readonly times: Float64Array; // after the begin: exact up to 104 days
  private readonly blocks = new Map<number, Fields[]>();
  private readonly found = new Map<string, Promise<Uint32Array>>(); // by text: numbers of events
  private rowsOf: SavedRows | null = null;
  private streams: Fields[] = []; // with losses
  private readonly reports = new SavedReports((name) => (this.head.sections[name] ? this.json(name) : null));
  readonly begin: bigint;
  readonly end: bigint;

  constructor(
    private readonly head: Head,
    private readonly data: Uint8Array,
  ) {
    this.begin = big(head.begin);
    this.end = big(head.end);
    const bytes = this.section("times");
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.times = Float64Array.from({ length: head.n }, (_, i) => Number(view.getBigUint64(8 * i, true)));
  }

  private section(name: string): Uint8Array {
    const [at, length] = this.head.sections[name] ?? [0, 0];
    return this.data.subarray(at, at + length);
  }

  private json(name: string): Json {
    return parse(new TextDecoder().decode(this.section(name)));
  }

  /** The first event at or after a time. */
  private rank(ns: bigint): number {
    const after = Number(ns - this.begin);
    let [low, high] = [0, this.head.n];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < after) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private event(number: number): Fields {
    const at = Math.floor(number / this.head.block);
    let block = this.blocks.get(at);
    if (!block) {
      block = this.json(`events/${at}`) as Fields[];
      if (this.blocks.size >= KEPT_BLOCKS) this.blocks.delete(this.blocks.keys().next().value!);
      this.blocks.set(at, block);
    }
    return block[number % this.head.block];
  }

  /** The events that contain a text, in any case. */
  private search(text: string): Promise<Uint32Array> {
    const known = this.found.get(text);
    if (known) return known;
    const looking = (async () => {
      const numbers: number[] = [];
      const matches = matcher(text);
      for (let i = 0; i < this.head.n; i++) {
        if (i % 8192 === 8191) await new Promise((next) => window.setTimeout(next));
        if (matches(this.event(i).line as Json[])) numbers.push(i);
      }
      return Uint32Array.from(numbers);
    })();
    this.found.set(text, looking);
    return looking;
  }

  private get source(): Source {
    const traces = this.head.info.traces as Fields[];
    return {
      times: this.times,
      range: (words) => [Number(big(words.begin) - this.begin), Number(big(words.end) - this.begin) + 1],
      between: (from, to) => [this.rank(this.begin + BigInt(from)), this.rank(this.begin + BigInt(to))],
      event: (number) => this.event(number),
      numbers: (filter) => this.numbers(filter),
      isKernel: (trace) => traces[trace]?.domain === "kernel",
      thread: (tid) => this.history.thread(tid),
    };
  }

  /** Numbers of the events of a filter; null: all. */
  private async numbers(filter: string): Promise<Uint32Array | null> {
    return filter ? await this.search(filter) : null;
  }

  private static first(numbers: Uint32Array, least: number): number {
    let [low, high] = [0, numbers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[middle] < least) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private async density(words: Words): Promise<Fields> {
    const [begin, end, count] = [words.begin as bigint, words.end as bigint, Number(words.count)];
    const numbers = await this.numbers(String(words.filter ?? ""));
    const events = new Array<number>(count).fill(0);
    const lost = new Array<number>(count).fill(0);
    const width = (Number(end - begin) + 1) / count;
    const from = Number(begin - this.begin);
    const pixel = (after: number) => Math.min(Math.max(Math.floor((after - from) / width), 0), count - 1);
    const [first, last] = [this.rank(begin), this.rank(end + 1n)];
    if (!numbers) for (let i = first; i < last; i++) events[pixel(this.times[i])]++;
    else for (let k = Saved.first(numbers, first); numbers[k] < last; k++) events[pixel(this.times[numbers[k]])]++;
    for (const [lostBegin, lostEnd, n] of this.head.lost) {
      if (big(lostEnd) < begin || big(lostBegin) > end) continue;
      const [a, b] = [pixel(Number(big(lostBegin) - this.begin)), pixel(Number(big(lostEnd) - this.begin))];
      for (let x = a; x <= b; x++) lost[x] += Math.max(1, Number(n) / (b - a + 1));
    }
    return { exact: count, events, lost: lost.map(Math.round), ...this.state(numbers) };
  }

  private state(numbers: Uint32Array | null): Fields {
    return { total: numbers ? numbers.length : this.head.n, progress: 1, error: this.head.damage };
  }

  private async rows(words: Words): Promise<Fields> {
    const numbers = await this.numbers(String(words.filter ?? ""));
    const total = numbers ? numbers.length : this.head.n;
    const [row, count] = [Number(words.row), Number(words.count)];
    const rows: Json[] = [];
    for (let i = row; i < Math.min(row + count, total); i++) rows.push(this.event(numbers ? numbers[i] : i).line);
    return { row, exact: true, rows, ...this.state(numbers) };
  }

  private async one(words: Words): Promise<Fields> {
    const numbers = await this.numbers(String(words.filter ?? ""));
    const row = Number(words.row);
    if (row >= (numbers ? numbers.length : this.head.n)) throw new Error("there is no such event");
    return { row, ...this.event(numbers ? numbers[row] : row) };
  }

  private async area(words: Words): Promise<Fields> {
    const [first, last] = [this.rank(words.begin as bigint), this.rank((words.end as bigint) + 1n)];
    const numbers = await this.numbers(String(words.filter ?? ""));
    const names = new Map<string, number>();
    let n = 0;
    for (let k = numbers ? Saved.first(numbers, first) : first; (numbers ? numbers[k] : k) < last; k++, n++) {
      if (n % 8192 === 8191) await new Promise((next) => window.setTimeout(next));
      const [, , , name] = this.event(numbers ? numbers[k] : k).line as Json[];
      names.set(String(name), (names.get(String(name)) ?? 0) + 1);
    }
    const list = [...names].sort((a, b) => b[1] - a[1]).map(([name, count]) => [name, count, 0, 0, 0]);
    return { ...this.history.area(words), counted: true, events: n, names: list };
  }

  private get history(): SavedRows {
    if (!this.rowsOf) {
      const found = this.json("rows") as unknown as { rows: Json[][]; names: string[]; streams: Fields[] };
      this.rowsOf = new SavedRows(found.rows, found.names, this.begin, Number(this.end - this.begin) + 1);
      this.streams = found.streams;
      this.rowsOf.hasWaking = ((this.json("fields") as Fields).fields as string[]).some((name) => name.startsWith("sched_waking."));
    }
    return this.rowsOf;
  }

  private info(): Fields {
    const lost = this.head.lost.reduce((sum, [, , n]) => sum + Number(n), 0);
    const reports = this.reports.listed(this.head.info.reports as Fields[]);
    return { ...this.head.info, begin: this.head.begin, end: this.head.end, lost, reports, recording: null };
  }

  async answer(path: string, words: Words): Promise<Fields> {
    const numbers = await this.numbers(path === "rank" ? String(words.filter ?? "") : "");
    const rank = path === "rank" ? this.rank(words.ns as bigint) : 0;
    switch (path) {
      case "info":
        return this.info();
      case "density":
        return this.density(words);
      case "rank":
        return { row: numbers ? Saved.first(numbers, rank) : rank, exact: true };
      case "rows":
        return this.rows(words);
      case "event":
        return this.one(words);
      case "tree":
        return this.history.tree();
      case "activity":
        return this.history.activity(words);
      case "timeline":
        return this.history.timeline(words);
      case "curves":
        return this.history.curves(words);
      case "arrows":
        return savedArrows(this.history, words, this.source);
      case "cause":
        return savedCause(this.history, words, this.source);
      case "latency":
        return savedLatency(this.history, words);
      case "members":
        return savedMembers(this.history, words);
      case "marks":
        return savedMarks(words as Fields, this.source);
      case "losses":
        return this.history && savedLosses(this.streams, words);
      case "fields":
        return this.json("fields") as Fields;
      case "field":
        return savedField(words, this.source);
      case "moment":
        return this.history.moment(words);
      case "programs":
        return { programs: [] };
      case "notes":
        return this.head.notes;
      case "note":
      case "unnote":
        throw new Error("a saved page cannot keep notes");
      case "area":
        return this.area(words);
      case "report":
        return this.reports.report(words, (row) => this.history.tidOf(row));
      default:
        throw new Error("a saved page does not have that");
    }
  }
}

let opening: Promise<Saved> | null = null;

async function open(): Promise<Saved> {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old for the page");
  const bytes = await unpack(element!.textContent!);
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as unknown as Head;
  return new Saved(head, bytes.subarray(4 + length));
}

/** As the server would answer, from the data in the page; words keep the types that the page gave them. */
export async function answer(path: string, words: Words): Promise<Fields> {
  opening ??= open();
  return (await opening).answer(path, words);
}
