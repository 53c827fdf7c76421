// SPDX-License-Identifier: MIT
// Marks of a saved page: events of programs on the rows of their threads, as the server's (src/view/answers/marks.c).
import type { Json } from "./json";

type Fields = { [key: string]: Json };

const TRIGGER = "kymo:mark";
const MOST = 20_000;
const PAUSE = 8192; // events between times for others

/** What a saved page has. Times are after its begin. */
export interface Source {
  times: Float64Array;
  range(words: Fields): [from: number, to: number]; // times; the end is exclusive
  between(from: number, to: number): [first: number, last: number]; // numbers of events; the last is exclusive
  event(number: number): Fields;
  numbers(filter: string): Promise<Uint32Array | null>;
  isKernel(trace: number): boolean;
  thread(tid: number): number | undefined; // its row
}

function tidOf(event: Fields): number {
  for (const name of ["vtid", "tid"])
    for (const scope of ["event_context", "context"]) {
      const fields = event[scope];
      const tid = fields !== null && typeof fields === "object" && !Array.isArray(fields) ? fields[name] : undefined;
      if (typeof tid === "number") return tid;
    }
  return 0;
}

export async function savedMarks(words: Fields, source: Source): Promise<Fields> {
  const [from, to] = source.range(words);
  const count = Math.min(Number(words.count), Math.max(1, to - from));
  const filter = String(words.filter ?? "");
  const ofTriggers = filter === `$event == "${TRIGGER}"`;
  const chosen = ofTriggers ? null : await source.numbers(filter);
  const isChosen = chosen && new Set(chosen);
  const found = new Map<string, [row: number, pixel: number, events: number, name: number]>();
  const names: string[] = [];
  const numbers = new Map<string, number>();
  const add = (row: number, pixel: number, name: string) => {
    const before = found.get(`${row},${pixel}`);
    if (before) return void before[2]++;
    if (!numbers.has(name)) numbers.set(name, names.push(name));
    found.set(`${row},${pixel}`, [row, pixel, 1, numbers.get(name)!]);
  };
  const [first, last] = source.between(from, to);
  let i = first;
  for (; i < last && found.size < MOST; i++) {
    if (i % PAUSE === PAUSE - 1) await new Promise((next) => window.setTimeout(next));
    if (isChosen && !isChosen.has(i)) continue;
    const { line, event } = source.event(i) as { line: Json[]; event: Fields };
    const name = String(line[3]);
    const pixel = Math.min(count - 1, Math.floor(((source.times[i] - from) / (to - from)) * count));
    if (name === TRIGGER) add(-1, pixel, String((event.fields as Fields | undefined)?.name ?? name));
    else if (!ofTriggers && (isChosen || !source.isKernel(line[1] as number))) {
      const row = source.thread(tidOf(event));
      if (row !== undefined) add(row, pixel, name);
    }
  }
  const list = [...found.values()];
  return {
    count,
    until: i < last ? source.times[i] : null,
    marks: list.filter(([row]) => row >= 0).flat(),
    triggers: list.filter(([row]) => row < 0).flatMap(([, ...mark]) => mark),
    names,
  };
}
