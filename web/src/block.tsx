// SPDX-License-Identifier: MIT
// A block of consecutive rows: their names, and a canvas with their states.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { arrowsInWords, paintArrows } from "./arrows";
import { useZoomGestures } from "./gestures";
import { begin, colour, drawBand, drawCursor, useTheme, useWidth } from "./graph";
import { paintCurve, quantity, values, type CurvePlace } from "./curves";
import { countMarks, lossAt, markAt, paintLosses, paintMarks } from "./marks";
import { paint, scaleOf, type Place } from "./paint";
import { PATH_KEY, type ThreadPath } from "./path";
import type { Picture, Pictures } from "./pictures";
import { showEvent } from "./row-keys";
import { KIND, STATES } from "./states";
import type { Spot } from "./tip";
import { useStore, type Store } from "./store";
import { move, timeAt, type Range } from "./time";
import type { Line, Track } from "./tree";

export interface AllPictures {
  states: Pictures<number>;
  curves: Pictures<number>;
  queues: Pictures<number>;
  fields: Pictures<string>;
  marks: Pictures<string>; // by the filter
  losses: Pictures<string>;
  arrows: Pictures<string>; // by the number of a thread's row
  path: ThreadPath | null;
}

/** The picture of a row: of its curve, or of its states. */
export function pictureOf(all: AllPictures, { curve, id, key }: Track): Picture | undefined {
  if (key === PATH_KEY) return all.path?.parts;
  if (typeof curve?.source === "string") return all.fields.get(curve.source);
  if (curve) return (curve.queues ? all.queues : all.curves).get(curve.source);
  return id === null ? undefined : all.states.get(id);
}

interface Props {
  store: Store;
  pictures: AllPictures;
  tracks: ReadonlyMap<number, Track>; // by the numbers of their rows
  list: Line[];
  top: number; // pixels: what is at the upper edge
  height: number;
  prefix: string; // of the elements' ids
  selected: string | null;
  waker: string | null; // the selected thread, whose wake-ups are arrows
  middles: ReadonlyMap<number, number> | null; // of rows; null: arrows have no place here
  pinned: readonly string[];
  setSpot: (spot: Spot | null) => void; // where the pointer is
  fold: (line: Line) => void;
  pin: (line: Line) => void;
  remove: (line: Line) => void; // a row that the user added
}

/** What pixels of rows with one kind of state are like that have it at times. */
const SPARSE: Record<string, number> = { irq: KIND.active, spans: KIND.span, requests: KIND.request };

/** What a state is about: a call, a thread, a number. */
function detailText(tracks: Props["tracks"], names: string[], kind: number, detail: number): string {
  if (kind === KIND.runs) return tracks.get(detail)?.label ?? "";
  if (kind === KIND.active) return detail ? (tracks.get(detail - 1)?.label ?? "") : "";
  if (kind >= 16 && kind <= 19) return String(detail);
  return kind === KIND.events || !detail ? "" : (names[detail - 1] ?? "");
}

/** The run at a place of the canvas, as an index. */
function runAt(picture: Picture, view: Range, width: number, x: number): number {
  const { left, scale } = scaleOf(picture, view, width);
  const pixel = (x - left) / scale;
  for (let i = 0; i < picture.runs.length; i += 4)
    if (picture.runs[i] <= pixel && pixel < picture.runs[i + 1]) return i;
  return -1;
}

/** "40 % idle, 60 % runs", "mean 1.2 MB/s, at most 7 MB/s", of the view. */
function describe({ curve }: Track, picture: Picture | undefined, view: Range, width: number): string {
  if (!picture || !width) return "";
  if (curve) {
    const all = values(curve, picture, view, width, 0, width);
    return all ? `: mean ${quantity(all.mean, curve.unit)}, at most ${quantity(all.high, curve.unit)}` : ": no values here";
  }
  const { left, scale } = scaleOf(picture, view, width);
  const sums = new Map<string, number>();
  for (let i = 0; i < picture.runs.length; i += 4) {
    const from = Math.max(0, left + picture.runs[i] * scale);
    const wide = Math.min(width, left + picture.runs[i + 1] * scale) - from;
    const text = STATES[picture.runs[i + 2]]?.[0] ?? "";
    if (wide > 0) sums.set(text, (sums.get(text) ?? 0) + wide);
  }
  const parts = [...sums].sort((a, b) => b[1] - a[1]).map(([text, n]) => `${Math.round((n / width) * 100)} % ${text}`);
  return `: ${parts.join(", ") || "no states here"}`;
}

/** Marks and losses at a place of the canvas. */
function beside(props: Props, track: Track, view: Range, width: number, x: number): string {
  const { marks, losses } = props.pictures;
  const event = markAt(marks.get(props.store.state.filter), track, view, width, x);
  return [event, lossAt(losses.get("all"), track, view, width, x - 1, x + 1)].filter(Boolean).join("; ");
}

/** What is at a place of the canvas. */
function tipOf(props: Props, track: Track, picture: Picture | undefined, view: Range, width: number, x: number): string {
  if (!picture) return "";
  if (track.curve) {
    const { unit, source } = track.curve;
    const found = values(track.curve, picture, view, width, Math.floor(x), Math.floor(x) + 1);
    if (!found) return "no value";
    // Integers of a field are exact.
    const said = (value: number) => (typeof source === "string" && Number.isSafeInteger(value) ? String(value) : quantity(value, unit));
    return found.low < found.high ? `${said(found.mean)} (${said(found.low)} to ${said(found.high)})` : said(found.mean);
  }
  const i = runAt(picture, view, width, x);
  if (i < 0) return "unknown";
  const about = detailText(props.tracks, picture.names, picture.runs[i + 2], picture.runs[i + 3]);
  const kind = picture.runs[i + 2] || (SPARSE[track.kind] ?? KIND.none);
  return `${STATES[kind]?.[0] ?? "unknown"}${about ? `: ${about}` : ""}`;
}

const lineAt = (list: Line[], y: number) => list.find((line) => line.y <= y && y < line.y + line.height);

/** Dragging, pointing and choosing. */
function usePointer(props: Props, canvas: preact.RefObject<HTMLCanvasElement>) {
  const { store, list, top, pictures, setSpot } = props;
  const drag = useRef<{ from: number; view: Range; selects: boolean; moved: boolean } | null>(null);
  const place = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const x = event.clientX - box.left;
    return { x, at: x / box.width, width: box.width, line: lineAt(list, event.clientY - box.top + top) };
  };
  const tell = (event: PointerEvent) => {
    const { view } = store.state;
    const { x, at, width, line } = place(event);
    if (!line) return setSpot(null);
    const state = tipOf(props, line.track, pictureOf(pictures, line.track), view, width, x) || "no states";
    const what = [state, beside(props, line.track, view, width, x)].filter(Boolean).join("; ");
    setSpot({ track: line.track, ns: timeAt(at, view), text: what });
  };
  useZoomGestures(store, canvas, () => (drag.current = null));
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button) return;
      drag.current = { from: place(event).at, view: store.state.view, selects: event.shiftKey, moved: false };
      canvas.current!.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const { at, width } = place(event);
      const one = drag.current;
      if (one) one.moved ||= Math.abs(at - one.from) * width > 3;
      if (one?.moved && one.selects) {
        const ends = [timeAt(one.from, one.view), timeAt(at, one.view)].sort((a, b) => (a < b ? -1 : 1));
        store.select({ begin: ends[0], end: ends[1] });
      } else if (one?.moved) store.go(move(one.view, one.from - at, store.whole));
      tell(event);
    },
    onPointerUp: (event: PointerEvent) => {
      const { at, line } = place(event);
      const one = drag.current;
      drag.current = null;
      if (!one || one.moved || !line) return;
      store.setRows({ selected: line.track.key });
      void showEvent(store, timeAt(at, store.state.view)).catch(() => undefined); // the table tells of the error
    },
    onPointerCancel: () => (drag.current = null),
    onPointerLeave: () => setSpot(null),
  };
}

/** All of a row, in words. */
function about(props: Props, track: Track, view: Range, width: number): string {
  const { pictures, store } = props;
  const marks = countMarks(pictures.marks.get(store.state.filter), track, view, width);
  const loss = lossAt(pictures.losses.get("all"), track, view, width, 0, width);
  const isChosen = props.waker !== null && String(track.id) === props.waker;
  const arrows = isChosen ? arrowsInWords(pictures.arrows.get(props.waker!), track.id, view, width) : "";
  const parts = [track.label + describe(track, pictureOf(pictures, track), view, width), marks ? `${marks} events` : "", loss, arrows];
  return parts.filter(Boolean).join("; ");
}

const REST_MS = 200;

/** Rows in words, as they are when nothing moves: while it does, the last words stay, so that moving is quick. */
function useWords(props: Props, width: number): (track: Track) => string {
  const { view } = props.store.state;
  const known = useRef(new Map<string, string>());
  const told = useRef({ view, at: 0 });
  const [, draw] = useState(0);
  if (told.current.view !== view) told.current = { view, at: performance.now() };
  const rests = performance.now() - told.current.at >= REST_MS;
  useEffect(() => {
    const timer = window.setTimeout(() => draw((n) => n + 1), REST_MS);
    return () => window.clearTimeout(timer);
  }, [view]);
  return (track) => {
    if (known.current.size > 2000) known.current.clear();
    const before = known.current.get(track.key);
    if (!rests) return before ?? track.label;
    const now = about(props, track, view, width);
    known.current.set(track.key, now);
    return now;
  };
}

function Name({ line, props }: { line: Line; props: Props }) {
  const { track, depth, open } = line;
  const isPinned = props.pinned.includes(track.key);
  return (
    <div
      class="name"
      title={track.label}
      style={{ paddingLeft: `${2 + Math.min(depth, 12) * 10}px` }}
      onClick={() => props.store.setRows({ selected: track.key })}
      onDblClick={() => open !== null && props.fold(line)}
    >
      <span class="fold" aria-hidden="true" onClick={() => open !== null && props.fold(line)}>
        {open === null ? "" : open ? "▾" : "▸"}
      </span>
      <span class={`text ${track.kind === "group" || track.kind === "process" ? "group" : ""}`}>{track.label}</span>
      {track.kind === "field" && (
        <span class="pin on" aria-hidden="true" title="Remove" onClick={() => props.remove(line)}>
          ×
        </span>
      )}
      {(track.id !== null || track.curve) && (
        <span
          class={isPinned ? "pin on" : "pin"}
          aria-hidden="true"
          title={isPinned ? "Not at the top any more (K)" : "Keep at the top (K)"}
          onClick={() => props.pin(line)}
        >
          ↑
        </span>
      )}
    </div>
  );
}

export function Block(props: Props) {
  const { store, pictures, tracks, list, top, height, prefix } = props;
  const { view, cursor, selection } = useStore(store);
  const [ref, whole] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const width = whole && canvas.current ? canvas.current.clientWidth : 0;
  useLayoutEffect(() => {
    const wide = canvas.current!.clientWidth;
    const context = begin(canvas.current!, wide, height);
    context.fillStyle = colour(canvas.current!, "--selection");
    drawBand(context, selection, view, wide, 0, height);
    const places: Place[] = [];
    const curves: CurvePlace[] = [];
    for (const { track, y, height: high } of list) {
      const picture = pictureOf(pictures, track);
      const text = (kind: number, detail: number) => detailText(tracks, picture!.names, kind, detail);
      if (!picture) continue;
      if (track.curve) curves.push({ picture, curve: track.curve, y: y - top, height: high });
      else places.push({ picture, y: y - top, height: high, text, sparse: SPARSE[track.kind] ?? KIND.none });
    }
    paint(context, places, view, wide);
    const ink = colour(canvas.current!, "--ink");
    for (const place of curves) paintCurve(context, place, view, wide, ink);
    const losses = pictures.losses.get("all");
    if (losses) paintLosses(context, losses, list, top, view, wide);
    const marks = pictures.marks.get(store.state.filter);
    if (marks) paintMarks(context, marks, list, top, view, wide, ink);
    const arrows = pictures.path ? pictures.path.arrows : props.waker !== null && pictures.arrows.get(props.waker);
    if (arrows && props.middles) paintArrows(context, arrows, props.middles, top, view, wide, [ink, colour(canvas.current!, "--paper")]);
    drawCursor(context, cursor, view, wide, height);
  });
  const words = useWords(props, width);
  const pointer = usePointer(props, canvas);
  void theme;
  return (
    <div ref={ref} class="block" style={{ height: `${height}px` }}>
      <canvas ref={canvas} style={{ height: `${height}px` }} aria-hidden="true" {...pointer} />
      {list.map((line) => (
        <div
          key={line.track.key}
          id={`${prefix}-${line.track.key}`}
          class="track"
          role="treeitem"
          aria-level={line.depth + 1}
          aria-posinset={line.position}
          aria-setsize={line.brothers}
          aria-expanded={line.open ?? undefined}
          aria-selected={line.track.key === props.selected}
          aria-label={words(line.track)}
          style={{ top: `${line.y - top}px`, height: `${line.height}px` }}
        >
          <Name line={line} props={props} />
        </div>
      ))}
    </div>
  );
}
