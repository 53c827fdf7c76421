// SPDX-License-Identifier: MIT
// Durations of a saved page, as the server's (src/view/answers/latency.c).
import type { Json } from "./json";
import type { Row, SavedRows, State } from "./saved-rows";

type Fields = { [key: string]: Json };

/** Five classes of durations for each power of ten, from 1 ns on. */
const CLASSES = Array.from({ length: 64 }, (_, i) => {
  let ns = [1, 1.6, 2.5, 4, 6.3][i % 5];
  for (let k = 0; k < Math.floor(i / 5); k++) ns *= 10;
  return ns;
});
const MOST_BACK = 1000;
const MOST_NAMES = 100;
const MOST_MEMBERS = 1000;

const K = { syscall: 4, irq: 5, softirq: 6, ready: 7, blocked: 8, stopped: 13, active: 14, span: 15, read: 16, other: 18 };
const isWait = (kind: number): boolean => kind >= K.blocked && kind <= K.stopped;

/** Texts of states without a name, as ky_state_text(). */
const TEXTS: Record<number, string> = {
  8: "blocked",
  9: "disk",
  10: "lock",
  11: "network",
  12: "timer",
  13: "stopped",
  14: "active",
  15: "span",
  16: "read",
  17: "write",
  18: "other",
};

const KINDS: Record<string, [rows: string, has: (kind: number) => boolean]> = {
  calls: ["thread", () => false],
  waits: ["thread", isWait],
  ready: ["thread", (kind) => kind === K.ready],
  irqs: ["irq", (kind) => kind === K.active],
  requests: ["requests", (kind) => kind >= K.read && kind <= K.other],
  spans: ["spans", (kind) => kind === K.span],
};

interface Member {
  begin: number;
  end: number;
  row: number;
  name: string;
}

class Finder {
  constructor(
    private readonly rows: SavedRows,
    private readonly from: number,
    private readonly to: number, // exclusive
    private readonly take: (member: Member) => void,
  ) {}

  private name(row: Row, state: State): string {
    if (row.head[2] === "irq" || state.kind === K.ready) return String(row.head[4]);
    return this.rows.name(state) || (TEXTS[state.kind] ?? "");
  }

  /** What ended in the range counts. */
  private add(member: Member): void {
    if (Number.isFinite(member.begin) && member.end > this.from && member.end <= this.to) this.take(member);
  }

  states(id: number, row: Row, has: (kind: number) => boolean): void {
    for (const state of this.rows.from(row, this.from)) {
      if (state.begin >= this.to) return;
      if (has(state.kind)) this.add({ begin: state.begin, end: state.end, row: id, name: this.name(row, state) });
    }
  }

  /** 1: a piece of a call (0: of any); 0: what may lie between its pieces; -1: the call is over. */
  private piece({ kind, detail }: State, call: number): number {
    if (kind === K.irq || kind === K.softirq || kind === K.ready) return 0;
    if (kind !== K.syscall && !isWait(kind)) return -1;
    if (!detail) return isWait(kind) ? 0 : -1;
    return !call || detail === call ? 1 : -1;
  }

  /** Where the call began that the range begins in. */
  private begin(row: Row): number {
    let [at, call, begin] = [this.from, 0, this.from];
    for (let i = 0; i < MOST_BACK; i++) {
      const state = this.rows.at(row, at);
      const piece = this.piece(state, call);
      if (piece < 0) break;
      if (piece > 0) [call, begin] = [state.detail, state.begin];
      if (!Number.isFinite(state.begin)) break;
      at = state.begin - 1;
    }
    return Number.isFinite(begin) ? begin : this.from;
  }

  calls(id: number, row: Row): void {
    let call: Member | null = null;
    let detail = 0; // of the call
    for (const state of this.rows.from(row, this.begin(row))) {
      if (state.begin >= this.to && !call) return;
      let piece = this.piece(state, call ? detail : 0);
      if (piece < 0) {
        // The end of a call is unknown that a thread does not leave.
        if (call && state.kind) this.add(call);
        call = null;
        piece = this.piece(state, 0);
      }
      if (piece <= 0) continue;
      call ??= { begin: state.begin, end: state.end, row: id, name: this.name(row, state) };
      call.end = state.end;
      detail = state.detail;
    }
  }

  find(kind: string): void {
    if (!Object.hasOwn(KINDS, kind)) throw new Error("there are no durations of that name");
    const [rows, has] = KINDS[kind];
    for (const [id, row] of this.rows.rows) {
      if (row.head[2] !== rows) continue;
      if (kind === "calls") this.calls(id, row);
      else this.states(id, row, has);
    }
  }
}

function classOf(ns: number): number {
  let found = 0;
  while (found + 1 < CLASSES.length && ns >= CLASSES[found + 1]) found++;
  return found;
}

export function savedLatency(rows: SavedRows, words: Fields): Fields {
  const [from, to] = rows.range(words);
  const [count, wanted] = [Number(words.count), String(words.text ?? "")];
  const cells = new Map<number, number>();
  const names = new Map<string, [n: number, ns: number]>();
  let n = 0;
  new Finder(rows, from, to, ({ begin, end, name }) => {
    const sum = names.get(name) ?? [0, 0];
    names.set(name, [sum[0] + 1, sum[1] + end - begin]);
    if (wanted && name !== wanted) return;
    const column = Math.min(count - 1, Math.floor(((end - 1 - from) / (to - from)) * count));
    const cell = column * CLASSES.length + classOf(end - begin);
    cells.set(cell, (cells.get(cell) ?? 0) + 1);
    n++;
  }).find(String(words.name));
  const list = [...names].map(([name, [times, ns]]): Json[] => [name, times, ns]);
  list.sort((a, b) => (b[1] as number) - (a[1] as number) || (String(a[0]) < String(b[0]) ? -1 : 1));
  const sorted = [...cells].sort((a, b) => a[0] - b[0]);
  return {
    ready: true,
    read: 0,
    n,
    classes: CLASSES.map((ns) => Number(ns.toPrecision(3))),
    cells: sorted.map(([cell, times]) => [Math.floor(cell / CLASSES.length), cell % CLASSES.length, times]),
    names: list.slice(0, MOST_NAMES),
  };
}

export function savedMembers(rows: SavedRows, words: Fields): Fields {
  const [from, to] = rows.range(words);
  const [least, most, wanted] = [Number(words.least), Number(words.most), String(words.text ?? "")];
  const found: Member[] = [];
  new Finder(rows, from, to, (member) => {
    const ns = member.end - member.begin;
    if ((!wanted || member.name === wanted) && ns >= least && ns < most) found.push({ ...member });
  }).find(String(words.name));
  found.sort((a, b) => b.end - b.begin - (a.end - a.begin) || a.begin - b.begin);
  const members = found.slice(0, Math.min(Number(words.count), MOST_MEMBERS));
  return { ready: true, read: 0, n: found.length, members: members.map(({ begin, end, row, name }) => [rows.time(begin), rows.time(end), row, name]) };
}
