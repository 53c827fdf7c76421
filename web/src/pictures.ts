// SPDX-License-Identifier: MIT
// Pictures of rows from the server: only those in sight are asked for, one question at a time.
import { span, type Range } from "./time";
import type { Numbers } from "./types";

const MOST_PIXELS = 4096;
const MOST_IDS = 256;
const KEPT = 2000;
const TIMES: Range = { begin: -(2n ** 63n), end: 2n ** 63n - 1n };

/** One row in a range, as the server answered. */
export interface Picture {
  stale: boolean; // shown until the new one comes
  range: Range;
  count: number;
  names: string[];
  runs: Numbers;
  extra?: unknown; // what else the answer has
}

export interface Answer<K> {
  range: Range;
  count: number;
  names?: string[];
  rows: { id: K; runs: Numbers; extra?: unknown }[];
}

interface Wanted<K> {
  view: Range;
  width: number;
  ids: K[];
}

/** The view with as much on both sides as an answer can have, so that a small move needs no answer; a pixel stays as wide. */
function around(view: Range, width: number): { range: Range; count: number } {
  const side = Math.min(width, Math.max(0, MOST_PIXELS - width)) >> 1;
  const more = BigInt(Math.round(((span(view) + 1) * side) / width));
  const begin = view.begin - more;
  const end = view.end + more;
  if (begin < TIMES.begin || end > TIMES.end) return { range: view, count: width };
  return { range: { begin, end }, count: width + 2 * side };
}

export class Pictures<K> {
  error = ""; // of the last question
  readonly cache = new Map<K, Picture>();
  private wanted: Wanted<K> | null = null;
  private failed: Wanted<K> | null = null;
  private busy = false;

  constructor(
    private readonly question: (range: Range, count: number, ids: K[]) => Promise<Answer<K>>,
    private readonly changed: () => void,
    private readonly most = MOST_IDS, // of a question
  ) {}

  get(id: K): Picture | undefined {
    return this.cache.get(id);
  }

  /** Show @ids, with @width pixels for @view. */
  want(view: Range, width: number, ids: K[]): void {
    if (this.failed && this.failed.view === view && String(this.failed.ids) === String(ids)) return;
    this.wanted = { view, width, ids };
    void this.ask();
  }

  /** There is more in the history: all pictures are asked for again. @known: these rows are still what they were. */
  renew(known: (id: K) => boolean): void {
    for (const [id, picture] of this.cache) {
      picture.stale = true;
      if (!known(id)) this.cache.delete(id);
    }
  }

  private fits(id: K, { view, width }: Wanted<K>): boolean {
    const picture = this.cache.get(id);
    if (!picture || picture.stale || picture.range.begin > view.begin || picture.range.end < view.end) return false;
    // A pixel has at least a nanosecond.
    const wide = Math.max(1, (span(view) + 1) / width) / ((span(picture.range) + 1) / picture.count);
    return wide > 0.999 && wide < 1.001;
  }

  private async ask(): Promise<void> {
    if (this.busy || !this.wanted) return;
    const wanted = this.wanted;
    const ids = wanted.ids.filter((id) => !this.fits(id, wanted)).slice(0, this.most);
    if (!ids.length) return;
    this.busy = true;
    try {
      const { range, count } = around(wanted.view, wanted.width);
      this.take(await this.question(range, count, ids));
      this.busy = false;
      this.error = "";
      this.failed = null;
      this.changed();
      // A row that did not come now does not come next time.
      if (!ids.some((id) => this.fits(id, wanted))) this.failed = wanted;
      else void this.ask();
    } catch (error) {
      this.busy = false;
      this.failed = wanted;
      this.error = (error as Error).message;
      this.changed();
      if (this.wanted !== wanted) void this.ask();
    }
  }

  private take(found: Answer<K>): void {
    for (const { id, runs, extra } of found.rows) {
      this.cache.delete(id);
      this.cache.set(id, { range: found.range, count: found.count, names: found.names ?? [], runs, extra, stale: false });
    }
    for (const id of this.cache.keys()) {
      if (this.cache.size <= KEPT) break;
      this.cache.delete(id);
    }
  }
}
