// SPDX-License-Identifier: MIT
// A block of consecutive rows: their names, and a canvas with their states.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { begin, colour, drawBand, drawCursor, useTheme, useWidth } from "./graph";
import { paint, ROW, scaleOf, type Place } from "./paint";
import type { Picture, Pictures } from "./pictures";
import { showEvent } from "./row-keys";
import { KIND, STATES } from "./states";
import { useStore, type Store } from "./store";
import { clock, move, timeAt, zoom, type Range } from "./time";
import type { Line, Track } from "./tree";

interface Props {
  store: Store;
  pictures: Pictures;
  tracks: ReadonlyMap<number, Track>; // by the numbers of their rows
  list: Line[];
  offset: number; // pixels: where the first row begins
  height: number;
  total: number; // of rows, of which this block has some
  prefix: string; // of the elements' ids
  selected: string | null;
  pinned: readonly string[];
  setTip: (text: string) => void;
  fold: (line: Line) => void;
  pin: (line: Line) => void;
}

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

/** "40 % idle, 60 % runs", of the view. */
function describe(picture: Picture | undefined, view: Range, width: number): string {
  if (!picture || !width) return "";
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

function usePointer(props: Props, canvas: preact.RefObject<HTMLCanvasElement>) {
  const { store, list, offset, pictures, tracks, setTip } = props;
  const drag = useRef<{ from: number; view: Range; selects: boolean; moved: boolean } | null>(null);
  const place = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const x = event.clientX - box.left;
    return { x, at: x / box.width, width: box.width, line: list[Math.floor((event.clientY - box.top - offset) / ROW)] };
  };
  const tell = (event: PointerEvent) => {
    const { view } = store.state;
    const { x, at, width, line } = place(event);
    if (!line) return setTip("");
    const picture = line.track.id === null ? undefined : pictures.get(line.track.id);
    const i = picture ? runAt(picture, view, width, x) : -1;
    const [kind, detail] = i < 0 ? [0, 0] : picture!.runs.slice(i + 2, i + 4);
    const what = i < 0 ? "unknown" : STATES[kind]?.[0];
    const about = i < 0 ? "" : detailText(tracks, picture!.names, kind, detail);
    setTip(`${line.track.label}, ${clock(timeAt(at, view))}: ${what}${about ? `: ${about}` : ""}`);
  };
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
    onPointerLeave: () => setTip(""),
  };
}

function useWheel(store: Store, canvas: preact.RefObject<HTMLCanvasElement>): void {
  useEffect(() => {
    const element = canvas.current!;
    const wheel = (event: WheelEvent) => {
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      const box = element.getBoundingClientRect();
      const { view } = store.state;
      if (event.ctrlKey)
        store.go(zoom(view, Math.exp(event.deltaY * 0.003), (event.clientX - box.left) / box.width, store.whole));
      else if (sideways) store.go(move(view, sideways / 800, store.whole));
      else return;
      event.preventDefault();
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
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
      <span class={`text ${track.id === null ? "group" : ""}`}>{track.label}</span>
      {track.id !== null && (
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
  const { store, pictures, tracks, list, offset, height, prefix } = props;
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
    const places = list.flatMap(({ track }, i): Place[] => {
      const picture = track.id === null ? undefined : pictures.get(track.id);
      const text = (kind: number, detail: number) => detailText(tracks, picture!.names, kind, detail);
      return picture ? [{ picture, y: offset + i * ROW, text }] : [];
    });
    paint(context, places, view, wide);
    drawCursor(context, cursor, view, wide, height);
  });
  useWheel(store, canvas);
  const pointer = usePointer(props, canvas);
  void theme;
  return (
    <div ref={ref} class="block" style={{ height: `${height}px` }}>
      <canvas ref={canvas} style={{ height: `${height}px` }} aria-hidden="true" {...pointer} />
      {list.map((line, i) => (
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
          aria-label={line.track.label + (line.track.id === null ? "" : describe(pictures.get(line.track.id), view, width))}
          style={{ top: `${offset + i * ROW}px` }}
        >
          <Name line={line} props={props} />
        </div>
      ))}
    </div>
  );
}
