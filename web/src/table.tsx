// SPDX-License-Identifier: MIT
// The table of events: only the visible rows exist. Rows come in chunks, which are kept for a while.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { Columns } from "./columns";
import { RowText } from "./row-text";
import { useStore, type Store } from "./store";
import { clock, span } from "./time";

const ROW_PX = 20;
const CHUNK = 256;
const KEPT_CHUNKS = 40;
const RETRY_MS = 2000;
const MOST_PX = 4_000_000; // browsers have no higher elements

interface Chunk {
  rows: api.Row[];
  exact: boolean;
  stale: boolean; // shown until the new one comes
}

/** Rows of one filter. */
class Source {
  total = 0;
  error: string | null = null;
  private readonly chunks = new Map<number, Chunk>();
  private readonly pending = new Map<number, AbortController>();
  private readonly failed = new Set<number>(); // chunks whose request failed: renew() or the timer allows the next request
  private timer = 0;
  private retrying = 0; // the timer for chunks whose request failed

  constructor(
    readonly filter: string,
    private readonly changed: (progress: api.Progress | null) => void,
  ) {}

  close(): void {
    window.clearTimeout(this.timer);
    window.clearTimeout(this.retrying);
    for (const abort of this.pending.values()) abort.abort();
    this.pending.clear();
  }

  row(number: number): api.Row | undefined {
    return this.chunks.get(Math.floor(number / CHUNK))?.rows[number % CHUNK];
  }

  /** Bring the rows from @first to @last; what is wanted no longer is aborted. */
  want(first: number, last: number): void {
    const from = Math.floor(first / CHUNK);
    const to = Math.floor(last / CHUNK);
    for (const [chunk, abort] of this.pending) {
      if (chunk >= from && chunk <= to) continue;
      abort.abort();
      this.pending.delete(chunk);
    }
    for (let chunk = from; chunk <= to; chunk++)
      if ((this.chunks.get(chunk)?.stale ?? true) && !this.pending.has(chunk) && !this.failed.has(chunk)) void this.bring(chunk);
  }

  /** There are more events: all chunks are asked for again when they are visible. */
  renew(): void {
    for (const chunk of this.chunks.values()) chunk.stale = true;
    this.failed.clear();
    this.changed(null);
  }

  /** After an error that may pass, such as a server that has too much to do. */
  private retry(): void {
    window.clearTimeout(this.retrying);
    this.retrying = window.setTimeout(() => this.renew(), RETRY_MS);
  }

  private async bring(chunk: number): Promise<void> {
    const abort = new AbortController();
    this.pending.set(chunk, abort);
    try {
      const found = await api.rows(chunk * CHUNK, CHUNK, this.filter, abort.signal);
      this.take(chunk, found);
      this.changed(found);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = (error as Error).message;
      this.failed.add(chunk);
      if (!(error instanceof api.Refused)) this.retry();
      this.changed(null);
    } finally {
      if (this.pending.get(chunk) === abort) this.pending.delete(chunk);
    }
  }

  private take(chunk: number, found: api.Rows): void {
    this.total = found.total;
    this.error = found.error;
    this.chunks.delete(chunk);
    this.chunks.set(chunk, { rows: found.rows, exact: found.exact && found.progress === 1, stale: false });
    for (const key of this.chunks.keys()) {
      if (this.chunks.size <= KEPT_CHUNKS) break;
      this.chunks.delete(key);
    }
    window.clearTimeout(this.timer);
    this.timer = 0;
    if ([...this.chunks.values()].every((one) => one.exact)) return;
    // Counting went on: what is not final is asked for again.
    this.timer = window.setTimeout(() => {
      for (const one of this.chunks.values()) if (!one.exact) one.stale = true;
      this.changed(null);
    }, 400);
  }
}

/** The name of a trace, where there are several. */
export function traceName(trace: api.Trace): string {
  const process = trace.procname ? `${trace.procname}${trace.vpid === undefined ? "" : `:${trace.vpid}`}` : trace.name;
  return [trace.hostname, process].filter(Boolean).join(" ") || trace.path;
}

export function EventTable({ store }: { store: Store }) {
  const { filter, row: selected, top, view, follow, wanted } = useStore(store);
  const body = useRef<HTMLDivElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const source = useRef<Source | null>(null);
  const [, draw] = useState(0);
  const [height, setHeight] = useState(200);
  const following = useRef<AbortController | null>(null); // the graph; the user's own moves come first
  const mine = useRef<string>(""); // the view that the table itself brought about
  if (source.current?.filter !== filter) {
    source.current?.close();
    source.current = new Source(filter, (progress) => {
      if (progress) store.setProgress(progress);
      draw((n) => n + 1);
    });
  }
  const rows = source.current;
  const visible = Math.max(1, Math.floor(height / ROW_PX));
  const most = Math.max(0, rows.total - visible);
  const first = Math.floor(follow ? most : rows.total ? Math.min(top, most) : top);
  const last = rows.total ? Math.min(first + visible, rows.total - 1) : first; // the first answer has the total
  const pixels = Math.min(rows.total * ROW_PX, MOST_PX);

  useEffect(() => () => source.current?.close(), []);
  useEffect(() => source.current?.renew(), [store.generation]);
  useEffect(() => rows.want(first, last + 1));
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setHeight(body.current!.clientHeight));
    observer.observe(body.current!);
    setHeight(body.current!.clientHeight);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const place = most ? (first / most) * (bar.current!.scrollHeight - bar.current!.clientHeight) : 0;
    if (Math.abs(bar.current!.scrollTop - place) > 1) bar.current!.scrollTop = place;
  });

  // The table follows the graph: its first row is the first event of the graph.
  const viewKey = `${view.begin},${view.end}`;
  const wasFilter = useRef(filter);
  useEffect(() => {
    const isNewFilter = wasFilter.current !== filter;
    wasFilter.current = filter;
    if ((mine.current === viewKey && !isNewFilter) || follow) return;
    if (!mine.current && (selected !== null || top)) {
      mine.current = viewKey; // as the address says
      return;
    }
    mine.current = viewKey;
    const abort = new AbortController();
    following.current = abort;
    const timer = window.setTimeout(() => {
      if (abort.signal.aborted) return;
      api.rank(view.begin, filter, abort.signal).then(
        (found) => !abort.signal.aborted && store.set({ top: found }),
        () => undefined, // the rows tell of the error
      );
    }, 100);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [viewKey, filter, follow]);

  // And the graph shows which part of it the table has.
  const begin = rows.row(first)?.ns;
  const end = rows.row(last)?.ns ?? begin;
  useEffect(() => {
    if (begin !== undefined && begin !== null && end) store.set({ shown: { begin, end } });
  }, [begin, end]);

  /** Show row @next at the top; the graph moves when it does not have it. */
  const scroll = (next: number) => {
    following.current?.abort();
    const to = Math.max(0, Math.min(next, most));
    if (follow) mine.current = viewKey;
    store.set({ top: to, follow: follow && to >= most });
  };
  const select = (number: number, at: bigint | null = null) => {
    if (number < 0 || number >= rows.total) return;
    following.current?.abort();
    const ns = at ?? rows.row(number)?.ns ?? null;
    let { view: now } = store.state;
    if (ns !== null && (ns < now.begin || ns > now.end)) {
      const half = BigInt(Math.floor(span(now) / 2));
      now = { begin: ns - half, end: ns + half };
    }
    store.set({ follow: false, top: first });
    store.go(now);
    mine.current = `${store.state.view.begin},${store.state.view.end}`;
    store.set({ row: number, cursor: ns });
    if (number < first) scroll(number);
    else if (number >= first + visible) scroll(number - visible + 1);
  };
  // Another part of the page wants an event to be selected.
  useEffect(() => {
    if (!wanted || !rows.total) return;
    store.set({ wanted: null });
    select(wanted.row, wanted.ns);
  }, [wanted, rows.total]);
  // The selected event came later than its selection.
  const late = selected !== null && store.state.cursor === null ? (rows.row(selected)?.ns ?? null) : null;
  useEffect(() => {
    if (late !== null) store.set({ cursor: late });
  }, [late]);
  // The table became lower: the selected event stays in sight.
  const before = useRef(visible);
  useEffect(() => {
    if (selected !== null && selected >= first + visible && selected <= first + before.current)
      scroll(selected - visible + 1);
    before.current = visible;
  }, [visible]);
  const keys = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: visible, PageUp: -visible };
    const now = selected ?? first - 1;
    if (event.key in steps) select(Math.max(0, Math.min(now + steps[event.key], rows.total - 1)));
    else if (event.key === "Home") select(0);
    else if (event.key === "End") select(rows.total - 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const several = store.info.traces.length > 1;
  const numbers = Array.from({ length: rows.total ? last - first + 1 : 0 }, (_, i) => first + i);
  return (
    <section class={several ? "events several" : "events"} aria-label="Events">
      <div class="line head" role="presentation">
        <span>Row</span>
        <span>Time</span>
        {several && <span>Trace</span>}
        <span>CPU</span>
        <span>Event</span>
        <span>Fields</span>
      </div>
      <Columns store={store} several={several} />
      <div class="rows">
        <div
          ref={body}
          class="body"
          role="grid"
          aria-label="Table of events"
          aria-rowcount={rows.total}
          tabIndex={0}
          onKeyDown={keys}
          onWheel={(event) => {
            if (event.ctrlKey) return;
            scroll((follow ? first : store.state.top) + event.deltaY / (event.deltaMode ? 1 : ROW_PX));
            event.preventDefault();
          }}
        >
          {numbers.map((number) => {
            const row = rows.row(number);
            return (
              <div
                key={number}
                class="line"
                role="row"
                aria-rowindex={number + 1}
                aria-selected={number === selected}
                onClick={() => select(number)}
              >
                <span role="gridcell">{number + 1}</span>
                <span role="gridcell">{row ? (row.ns === null ? "" : clock(row.ns)) : "…"}</span>
                {several && <span role="gridcell">{row && traceName(store.info.traces[row.trace])}</span>}
                <span role="gridcell">{row?.cpu}</span>
                <span role="gridcell">{row?.name}</span>
                <RowText text={row?.text} />
              </div>
            );
          })}
          {rows.total === 0 && !rows.error && <p class="note">No events.</p>}
          {rows.error && (
            <p class="note error" role="alert">
              {rows.error}
            </p>
          )}
        </div>
        <div
          ref={bar}
          class="bar"
          aria-hidden="true"
          onScroll={() => {
            const room = bar.current!.scrollHeight - bar.current!.clientHeight;
            const place = room ? (bar.current!.scrollTop / room) * most : 0;
            // Where a pixel is many rows, only a real move counts.
            if (Math.abs(place - first) > Math.max(0.5, most / Math.max(room, 1))) scroll(place);
          }}
        >
          <div style={{ height: `${pixels}px` }} />
        </div>
      </div>
    </section>
  );
}
