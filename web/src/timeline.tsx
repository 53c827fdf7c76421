// SPDX-License-Identifier: MIT
// Rows of the state history under the graph: CPUs, the busiest threads, spans, disks.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { begin, colour, drawBand, drawCursor, useTheme, useWidth } from "./graph";
import { useLater, useStore, type Store } from "./store";
import { clock, move, placeOf, span, timeAt, zoom } from "./time";

const ROW = 18;

/** Text and colour of each state, indexed by its number. The colours are those of Okabe and Ito: colour-blind people can distinguish them. */
const STATES: [text: string, colour: string][] = [
  ["several short states", "#8a97a8"],
  ["idle", "#8a97a840"],
  ["runs", "#0072b2"],
  ["user space", "#009e73"],
  ["system call", "#0072b2"],
  ["interrupted", "#d55e00"],
  ["interrupted by a softirq", "#e69f00"],
  ["waits for a CPU", "#f0e442"],
  ["blocked", "#8a97a840"],
  ["waits for a disk", "#cc79a7"],
  ["waits for a lock", "#b05a8a"],
  ["waits for the network", "#7a6fbe"],
  ["waits for a time", "#8a97a840"],
  ["stopped", "#55606d"],
  ["active", "#d55e00"],
  ["span", "#56b4e9"],
  ["read request", "#009e73"],
  ["write request", "#d55e00"],
  ["request", "#8a97a8"],
  ["value", "#56b4e9"],
  ["events", "#56b4e9"],
  ["running", "#009e73"],
];

const NAMES: Record<string, (row: api.TimelineRow) => string> = {
  cpu: (row) => `CPU ${row.number}`,
  thread: (row) => `${row.name || "?"} (${row.number})`,
  spans: (row) => row.name || "spans",
};

/** CPUs by their numbers; the others as they come. */
function order([a, i]: readonly [api.TimelineRow, number], [b, k]: readonly [api.TimelineRow, number]): number {
  return a.kind === "cpu" && b.kind === "cpu" ? a.number - b.number : i - k;
}

const label = (row: api.TimelineRow) => NAMES[row.kind]?.(row) ?? `${row.kind} ${row.name}`;

function stateText([, , kind, name, value]: api.TimelineRow["runs"][0]): string {
  const text = STATES[kind]?.[0] ?? "";
  return name ? `${text}: ${name}` : kind === 19 || kind === 17 || kind === 16 ? `${text}: ${value}` : text;
}

/** "CPU 0: 40 % idle, 60 % runs" */
function describe(row: api.TimelineRow, count: number): string {
  const sums = new Map<string, number>();
  for (const [from, to, kind] of row.runs) {
    const text = STATES[kind]?.[0] ?? "";
    sums.set(text, (sums.get(text) ?? 0) + to - from);
  }
  const parts = [...sums].sort((a, b) => b[1] - a[1]).map(([text, n]) => `${Math.round((n / count) * 100)} % ${text}`);
  return `${label(row)}: ${parts.join(", ") || "unknown"}`;
}

function draw(context: CanvasRenderingContext2D, found: api.Timeline, store: Store, width: number) {
  const { view } = store.state;
  const left = Number(found.range.begin - view.begin) / (span(view) + 1);
  const scale = (span(found.range) + 1) / (span(view) + 1) / found.count;
  const place = (x: number) => Math.round((left + x * scale) * width);
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "middle";
  found.rows.forEach((row, i) => {
    const y = i * ROW;
    for (const run of row.runs) {
      const [from, to, kind, name] = run;
      const [x, wide] = [place(from), Math.max(1, place(to) - place(from))];
      if (x > width || x + wide < 0) continue;
      context.fillStyle = STATES[kind]?.[1] ?? "#8a97a8";
      const low = [1, 8, 12, 13].includes(kind);
      context.fillRect(x, y + (low ? 7 : 1), wide, low ? 4 : ROW - 2);
      if (!name || low || wide < 40) continue;
      context.fillStyle = kind === 7 || kind === 6 || kind === 15 ? "#000" : "#fff";
      context.save();
      context.beginPath();
      context.rect(x, y, wide, ROW);
      context.clip();
      context.fillText(name, Math.max(x, 0) + 3, y + ROW / 2);
      context.restore();
    }
  });
}

export function TimelineRows({ store }: { store: Store }) {
  const { view, cursor, selection } = useStore(store);
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [found, setFound] = useState<api.Timeline | null>(null);
  const [error, setError] = useState("");
  const [round, setRound] = useState(0);
  const [tip, setTip] = useState("");
  const drag = useRef<{ from: number; view: typeof view } | null>(null);
  const theme = useTheme();
  useLater(
    async (signal) => {
      if (!width) return;
      try {
        const timeline = await api.timeline(view, Math.min(width, 4096), signal);
        timeline.rows = timeline.rows.map((row, i) => [row, i] as const).sort(order).map(([row]) => row);
        setFound(timeline);
        if (!timeline.ready) window.setTimeout(() => !signal.aborted && setRound((n) => n + 1), 500);
      } catch (reason) {
        if (!signal.aborted) setError((reason as Error).message);
      }
    },
    [view.begin, view.end, width, round, store.generation],
    40,
  );
  const rows = found?.rows ?? [];
  const height = rows.length * ROW;
  useLayoutEffect(() => {
    const context = begin(canvas.current!, width, Math.max(height, 1));
    context.fillStyle = colour(canvas.current!, "--selection");
    drawBand(context, selection, view, width, 0, height);
    if (found) draw(context, found, store, width);
    drawCursor(context, cursor, view, width, height);
  }, [found, width, view, cursor, selection, theme]);
  useEffect(() => {
    const element = ref.current!;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey) return;
      const at = (event.clientX - element.getBoundingClientRect().left) / width;
      store.go(zoom(store.state.view, Math.exp(event.deltaY * 0.003), at, store.whole));
      event.preventDefault();
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [width]);
  const at = (event: PointerEvent) => (event.clientX - ref.current!.getBoundingClientRect().left) / width;
  const point = (event: PointerEvent) => {
    if (drag.current) store.go(move(drag.current.view, drag.current.from - at(event), store.whole));
    const row = rows[Math.floor((event.clientY - canvas.current!.getBoundingClientRect().top) / ROW)];
    if (!row || !found) return setTip("");
    const ns = timeAt(at(event), view);
    const pixel = placeOf(ns, found.range) * found.count;
    const run = row.runs.find(([from, to]) => from <= pixel && pixel < to);
    setTip(`${label(row)}, ${clock(ns)}: ${run ? stateText(run) : "unknown"}`);
  };
  return (
    <div
      ref={ref}
      class="timeline"
      id="timeline"
      role="group"
      aria-label="CPUs, threads, spans and disks"
      onPointerDown={(event) => {
        drag.current = { from: at(event), view };
      }}
      onPointerMove={point}
      onPointerUp={() => {
        drag.current = null;
      }}
      onPointerLeave={() => {
        drag.current = null;
        setTip("");
      }}
    >
      <canvas ref={canvas} style={{ height: `${height}px` }} aria-hidden="true" />
      <ul>
        {rows.map((row) => (
          <li key={row.id} aria-label={describe(row, found!.count)}>
            <span>{label(row)}</span>
          </li>
        ))}
      </ul>
      {found && !found.ready && <p class="tip">The states of CPUs and threads are being read: {found.read} events.</p>}
      {error && <p class="tip error">No states of CPUs and threads: {error}</p>}
      {rows.length > 0 && <div class="tip">{tip}</div>}
    </div>
  );
}
