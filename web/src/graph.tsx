// SPDX-License-Identifier: MIT
// The overview strip and the graph: density of events over time, losses, the time axis.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { drawMatches, useMatches } from "./find";
import { useZoomGestures } from "./gestures";
import { isPaired, pair, relative } from "./pair";
import { drawNotes } from "./notes";
import { countTriggers, paintTriggers, triggerAt, useTriggers } from "./marks";
import { useLater, useStore, type Store } from "./store";
import { clock, day, digitsOf, duration, move, niceStep, placeOf, span, timeAt, type Range } from "./time";

const AXIS = 22;
const POLL_MS = 400;

/** The size of an element, followed. */
export function useWidth(): [preact.RefObject<HTMLDivElement>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current!;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

function useDensity(store: Store, range: Range, width: number, filter: string): api.Density | null {
  const [found, setFound] = useState<api.Density | null>(null);
  const [round, setRound] = useState(0);
  useLater(
    async (signal) => {
      if (!width) return;
      try {
        const density = await api.density(range, Math.min(width, 4096), filter, signal);
        setFound(density);
        if (filter === store.state.filter) store.setProgress(density);
        if (density.progress < 1) window.setTimeout(() => !signal.aborted && setRound((n) => n + 1), POLL_MS);
      } catch (error) {
        if (!signal.aborted) store.setProgress({ total: 0, progress: 1, error: (error as Error).message });
      }
    },
    [range.begin, range.end, width, filter, round, store.generation],
    30,
  );
  return found;
}

export const colour = (element: Element, name: string) => getComputedStyle(element).getPropertyValue(name).trim();

/** Bars as high as the square root of their events: rare events stay visible beside bursts. */
function drawDensity(context: CanvasRenderingContext2D, density: api.Density, range: Range, width: number, height: number) {
  const most = Math.max(1, ...density.events);
  const scale = (span(density.range) + 1) / (span(range) + 1) / density.events.length;
  const left = Number(density.range.begin - range.begin) / (span(range) + 1);
  const element = context.canvas;
  const place = (i: number) => Math.round((left + i * scale) * width);
  for (const [exact, name] of [[true, "--events"], [false, "--estimate"]] as const) {
    context.fillStyle = colour(element, name);
    for (let i = exact ? 0 : density.exact; i < (exact ? density.exact : density.events.length); i++) {
      if (!density.events[i]) continue;
      const bar = Math.max(2, Math.sqrt(density.events[i] / most) * (height - 4));
      context.fillRect(place(i), height - bar, Math.max(1, place(i + 1) - place(i)), bar);
    }
  }
  context.fillStyle = colour(element, "--lost");
  density.lost.forEach((lost, i) => {
    if (lost) context.fillRect(place(i), 0, Math.max(2, place(i + 1) - place(i)), Math.max(6, height / 5));
  });
}

function drawAxis(context: CanvasRenderingContext2D, range: Range, width: number, top: number) {
  const step = niceStep((span(range) / Math.max(width, 1)) * 130);
  const digits = digitsOf(step);
  context.fillStyle = context.strokeStyle = colour(context.canvas, "--ink");
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const origin = isPaired ? pair.origin : 0n;
  for (let ns = origin + ((range.begin - origin) / step - 1n) * step; ns <= range.end; ns += step) {
    if (ns < range.begin) continue;
    const x = Math.round(placeOf(ns, range) * width) + 0.5;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + 6);
    context.stroke();
    if (x + 4 < width) context.fillText(isPaired ? relative(ns, step) : clock(ns, digits), x + 3, top + 12);
  }
}

/** Where the times of two traces are the same. */
function drawOrigin(context: CanvasRenderingContext2D, range: Range, width: number, height: number) {
  context.fillStyle = colour(context.canvas, "--accent");
  const x = Math.round(placeOf(pair.origin, range) * width);
  for (let y = 0; y < height; y += 8) context.fillRect(x, y, 1, 4);
}

export function drawBand(context: CanvasRenderingContext2D, band: Range | null, range: Range, width: number, y: number, height: number) {
  if (!band || band.end < range.begin || band.begin > range.end) return;
  const from = Math.max(0, placeOf(band.begin, range) * width);
  const to = Math.min(width, placeOf(band.end, range) * width);
  context.fillRect(from, y, Math.max(2, to - from), height);
}

export function drawCursor(context: CanvasRenderingContext2D, cursor: bigint | null, range: Range, width: number, height: number) {
  if (cursor === null || cursor < range.begin || cursor > range.end) return;
  context.fillStyle = colour(context.canvas, "--cursor");
  context.fillRect(Math.round(placeOf(cursor, range) * width) - 1, 0, 2, height);
}

/** A canvas of CSS pixels, whatever the screen's are. */
export function begin(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  context.clearRect(0, 0, width, height);
  return context;
}

function describe(what: string, range: Range, density: api.Density | null): string {
  if (!density) return `${what}: loading`;
  const sum = Array.from(density.events).reduce((a, b) => a + b, 0);
  const lost = Array.from(density.lost).reduce((a, b) => a + b, 0);
  const most = density.events.indexOf(Math.max(...density.events));
  const peak = clock(timeAt(most / density.events.length, density.range), 6);
  return (
    `${what} from ${clock(range.begin)} to ${clock(range.end)}, ${duration(span(range))}: ` +
    `${density.exact < density.events.length ? "about " : ""}${sum} events, most at ${peak}; ` +
    (lost ? `events were lost` : "no lost events")
  );
}

/** Redraw on a change of colours, too. */
export function useTheme(): number {
  const [n, setN] = useState(0);
  useEffect(() => {
    const observer = new MutationObserver(() => setN((old) => old + 1));
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, []);
  return n;
}

interface Drag {
  from: number; // place, 0 to 1
  view: Range;
  selects: boolean;
}

/** The whole trace, with the part that the graph shows. */
export function Overview({ store }: { store: Store }) {
  const { view, cursor, selection } = useStore(store);
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<number | null>(null);
  const density = useDensity(store, store.whole, width, "");
  const triggers = useTriggers(store, store.whole, width);
  const matches = useMatches(store, store.whole, width);
  const theme = useTheme();
  const height = 56;
  const whole = store.whole;
  useLayoutEffect(() => {
    const context = begin(canvas.current!, width, height);
    if (density) drawDensity(context, density, whole, width, height);
    context.fillStyle = colour(canvas.current!, "--selection");
    drawBand(context, selection, whole, width, 0, height);
    const from = placeOf(view.begin, whole) * width;
    const to = Math.max(from + 3, placeOf(view.end, whole) * width);
    context.fillStyle = colour(canvas.current!, "--shade");
    context.fillRect(0, 0, from, height);
    context.fillRect(to, 0, width - to, height);
    context.strokeStyle = colour(canvas.current!, "--accent");
    context.lineWidth = 2;
    context.strokeRect(from + 1, 1, Math.max(1, to - from - 2), height - 2);
    paintTriggers(context, triggers, whole, width, height, colour(canvas.current!, "--mark"));
    drawMatches(context, matches, whole, width, height);
    drawNotes(context, store.notes, whole, width, height, false);
    drawCursor(context, cursor, whole, width, height);
  }, [density, matches, triggers, width, view, cursor, selection, theme, store.notes]);
  const at = (event: PointerEvent) => (event.clientX - ref.current!.getBoundingClientRect().left) / width;
  const centre = (place: number) => {
    const half = (view.end - view.begin) / 2n;
    const ns = timeAt(place, whole);
    store.go({ begin: ns - half, end: ns + half });
  };
  return (
    <div
      ref={ref}
      class="strip"
      id="overview"
      onPointerDown={(event) => {
        drag.current = at(event);
        ref.current!.setPointerCapture(event.pointerId);
      }}
      onPointerUp={(event) => {
        const from = drag.current;
        drag.current = null;
        if (from === null) return;
        const to = at(event);
        if (Math.abs(to - from) * width < 4) centre(to);
        else store.go({ begin: timeAt(Math.min(from, to), whole), end: timeAt(Math.max(from, to), whole) });
      }}
    >
      <canvas ref={canvas} role="img" aria-label={describe("Overview of the trace", whole, density) + countTriggers(triggers)} />
    </div>
  );
}

export function Graph({ store }: { store: Store }) {
  const { view, cursor, selection, shown, filter } = useStore(store);
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<Drag | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  const density = useDensity(store, view, width, filter);
  const triggers = useTriggers(store, view, width);
  const matches = useMatches(store, view, width);
  const theme = useTheme();
  const height = 150;
  const bars = height - AXIS;
  useLayoutEffect(() => {
    const context = begin(canvas.current!, width, height);
    context.fillStyle = colour(canvas.current!, "--selection");
    drawBand(context, selection, view, width, 0, bars);
    context.save();
    context.beginPath();
    context.rect(0, 0, width, bars);
    context.clip();
    if (density) drawDensity(context, density, view, width, bars);
    context.restore();
    context.fillStyle = colour(canvas.current!, "--accent");
    drawBand(context, shown, view, width, bars - 3, 3);
    drawAxis(context, view, width, bars);
    paintTriggers(context, triggers, view, width, bars, colour(canvas.current!, "--mark"));
    if (isPaired) drawOrigin(context, view, width, bars);
    drawMatches(context, matches, view, width, bars);
    drawNotes(context, store.notes, view, width, bars, true);
    drawCursor(context, cursor, view, width, bars);
  }, [density, matches, triggers, width, view, cursor, selection, shown, theme, store.notes, pair.origin]);
  const at = (event: MouseEvent) => (event.clientX - ref.current!.getBoundingClientRect().left) / width;
  useZoomGestures(store, ref, () => (drag.current = null));
  const pointerMove = (event: PointerEvent) => {
    setHover(at(event));
    const one = drag.current;
    if (!one) return;
    const ends = [timeAt(one.from, view), timeAt(at(event), view)].sort((a, b) => (a < b ? -1 : 1));
    if (one.selects) store.select({ begin: ends[0], end: ends[1] });
    else store.go(move(one.view, one.from - at(event), store.whole));
  };
  const i = hover !== null && density ? Math.floor(hover * density.events.length) : -1;
  const trigger = hover === null ? "" : triggerAt(triggers, view, width, hover * width);
  const number = i >= 0 && density!.range.begin === view.begin && density!.range.end === view.end ? density!.events[i] : null;
  return (
    <div
      ref={ref}
      class="graph"
      id="graph"
      tabIndex={0}
      role="group"
      aria-label="Graph: W and S zoom, A and D move, F shows the whole trace, question mark shows help"
      onPointerDown={(event) => {
        drag.current = { from: at(event), view, selects: event.shiftKey };
        ref.current!.setPointerCapture(event.pointerId);
      }}
      onPointerMove={pointerMove}
      onPointerUp={(event) => {
        if (drag.current && Math.abs(at(event) - drag.current.from) * width < 3) store.select(null);
        drag.current = null;
      }}
      onPointerCancel={() => (drag.current = null)}
      onPointerLeave={() => setHover(null)}
    >
      <canvas ref={canvas} role="img" aria-label={describe("Events", view, density) + countTriggers(triggers)} />
      <div class="legend">
        <span>
          {day(view.begin)} {clock(view.begin)} – {clock(view.end)} ({duration(span(view))})
        </span>
        {hover !== null && (
          <span>
            {clock(timeAt(hover, view))}
            {number !== null && `: ${number} events`}
            {number !== null && density!.lost[i] > 0 && ", lost events"}
            {trigger && `, ${trigger}`}
          </span>
        )}
        <span class="key">
          <i class="events" /> events <i class="estimate" /> estimate <i class="lost" /> lost
          {matches && (
            <>
              {" "}
              <i class="match" /> found
            </>
          )}
        </span>
      </div>
    </div>
  );
}
