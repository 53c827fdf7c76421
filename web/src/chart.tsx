// SPDX-License-Identifier: MIT
// Charts of reports' tables: a distribution where the table has one, else values over time.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Column, Table } from "./api";
import { cellText } from "./cells";
import { Flame } from "./flame";
import { begin, colour, useTheme, useWidth } from "./graph";
import type { Json } from "./json";
import { IGNORES_DURATION } from "./report-form";
import { goToRow } from "./report-table";
import { isSaved } from "./saved";
import type { Store } from "./store";
import { clock, duration } from "./time";

const HEIGHT = 120;
const FOOT = 16;
const HEAD = 14;
const LEAST = 3; // rows of a series
const NEAR = 8; // pixels

type Row = { [key: string]: Json };

interface Bar {
  from: number;
  to: number;
  count: number;
}

const within = (place: number, most: number): number => Math.max(0, Math.min(most, place));

const number = (value: Json | undefined): number => (value === null || value === undefined ? NaN : Number(value));

/** Buckets of all groups, or of one. */
function barsOf(table: Table, group: string, column: Column): Bar[] {
  const bars = new Map<number, Bar>();
  for (const row of table.rows) {
    if (group && cellText(row[column.name] ?? null, column.class) !== group) continue;
    const from = number(row.from);
    const bar = bars.get(from) ?? { from, to: number(row.to), count: 0 };
    bar.count += number(row.count);
    bars.set(from, bar);
  }
  return [...bars.values()].sort((a, b) => a.from - b.from);
}

/** Where a key leads to from @at of @n places (-1: from none); null: nowhere. */
function stepOf(event: KeyboardEvent, at: number, n: number): number | null {
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: n - 1 }[event.key];
  if (to === undefined || !n) return null;
  event.preventDefault();
  event.stopPropagation();
  return within(to, n - 1);
}

function frame(canvas: HTMLCanvasElement, width: number): CanvasRenderingContext2D {
  const context = begin(canvas, width, HEIGHT);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colour(canvas, "--ink");
  context.textBaseline = "bottom";
  return context;
}

/** How the report shows only what took as long as a class; null: it heeds no durations. */
function narrowing(store: Store): ((bar: Bar) => void) | null {
  const { report, choice } = store.state;
  const info = store.info.reports.find((one) => one.name === report);
  if (isSaved || !info || info.ignores & IGNORES_DURATION) return null;
  return ({ from, to }) => store.set({ choice: { ...choice, least: `${from}ns`, most: `${Math.max(from, to - 1)}ns` } });
}

/** A bucket's width is the same whatever its range: they grow by factors. A click on one, or Enter, shows what is in it. */
function Distribution({ table, store }: { table: Table; store: Store }) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [group, setGroup] = useState("");
  const [tip, setTip] = useState("");
  const [chosen, choose] = useState(-1);
  const theme = useTheme();
  const column = table.columns[0];
  const groups = [...new Set(table.rows.map((row) => cellText(row[column.name] ?? null, column.class)))];
  const bars = barsOf(table, groups.includes(group) ? group : "", column);
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const wide = width / Math.max(bars.length, 1);
  useLayoutEffect(() => {
    const context = frame(canvas.current!, width);
    bars.forEach((bar, i) => {
      const high = Math.max(2, (bar.count / most) * (HEIGHT - FOOT - HEAD));
      context.fillStyle = colour(canvas.current!, i === chosen ? "--ink" : "--events");
      context.fillRect(i * wide + 1, HEIGHT - FOOT - high, Math.max(1, wide - 2), high);
      context.fillStyle = colour(canvas.current!, "--ink");
      if (wide > 56 || i % Math.ceil(64 / wide) === 0) context.fillText(duration(bar.from), i * wide + 2, HEIGHT - 1);
    });
    context.fillText(`${most}`, 2, HEAD - 2);
  }, [width, table, group, theme, chosen]);
  const at = (event: MouseEvent): Bar | undefined => bars[Math.floor((event.clientX - ref.current!.getBoundingClientRect().left) / wide)];
  const say = (bar: Bar | undefined) => setTip(bar ? `${duration(bar.from)} to ${duration(bar.to)}: ${bar.count}` : "");
  const narrow = narrowing(store);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && bars[chosen]) narrow?.(bars[chosen]);
    const next = stepOf(event, chosen, bars.length);
    if (next === null) return;
    choose(next);
    say(bars[next]);
  };
  const click = (event: MouseEvent) => {
    const bar = at(event);
    if (bar) narrow?.(bar);
  };
  const sum = bars.reduce((all, bar) => all + bar.count, 0);
  const peak = bars.find((bar) => bar.count === most);
  return (
    <div class="chart" data-chart={table.name}>
      {groups.length > 1 && (
        <select aria-label={`Distribution of: ${column.title}`} value={group} onChange={(event) => setGroup(event.currentTarget.value)}>
          <option value="">all</option>
          {groups.map((one) => (
            <option value={one}>{one}</option>
          ))}
        </select>
      )}
      <div
        ref={ref}
        class={narrow ? "goes" : ""}
        tabIndex={0}
        role="group"
        aria-label={`${table.title}: arrows choose a class${narrow ? ", Enter shows only what is in it" : ""}`}
        onKeyDown={keys}
        onClick={click}
        onPointerMove={(event) => say(at(event))}
        onPointerLeave={() => say(bars[chosen])}
        onBlur={() => choose(-1)}
      >
        <canvas
          ref={canvas}
          style={{ height: `${HEIGHT}px` }}
          role="img"
          aria-label={`Distribution: ${sum} in ${bars.length} classes${peak ? `, most from ${duration(peak.from)} to ${duration(peak.to)}` : ""}`}
        />
      </div>
      <p class="note" role="status">{tip || `${table.title}${group ? `: ${group}` : ""}`}</p>
    </div>
  );
}

const VALUES = ["duration", "rate", "count", "size", "number"];

interface Dot {
  x: number;
  y: number;
  row: Row;
}

/** Lines at the half and at the top, times below: the axes of values over time. */
function axes(context: CanvasRenderingContext2D, width: number, top: string, half: string, first: bigint, last: bigint) {
  context.strokeStyle = colour(context.canvas, "--line");
  context.lineWidth = 1;
  for (const part of [0, 0.5, 1]) {
    const y = Math.round(HEIGHT - FOOT - part * (HEIGHT - FOOT - HEAD - 4)) + 0.5;
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(width, y);
    context.stroke();
  }
  context.fillText(top, 2, HEAD - 2);
  context.fillText(half, 2, (HEIGHT - FOOT + HEAD + 4) / 2);
  const steps = Math.max(1, Math.min(4, Math.floor(width / 160)));
  for (let i = 0; i <= steps; i++) {
    const text = clock(first + ((last - first) * BigInt(i)) / BigInt(steps), 6);
    const wide = context.measureText(text).width;
    context.fillText(text, Math.min(width - wide - 2, Math.max(2, (width * i) / steps - wide / 2)), HEIGHT - 1);
  }
}

/** Values over time. A click on one, or Enter, goes to it; dragging selects a range, and shows it. */
function Series({ table, store, time, value }: { table: Table; store: Store; time: Column; value: Column }) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState("");
  const [chosen, choose] = useState(-1);
  const [drag, setDrag] = useState<[from: number, to: number] | null>(null);
  const dragged = useRef(false); // what ends with this click
  const theme = useTheme();
  const rows = table.rows.filter((row) => (row[time.name] ?? null) !== null && !Number.isNaN(number(row[value.name])));
  const times = rows.map((row) => BigInt(row[time.name] as number | bigint));
  const first = times.reduce((a, b) => (b < a ? b : a), times[0]);
  const last = times.reduce((a, b) => (b > a ? b : a), times[0]);
  const most = rows.reduce((sum, row) => Math.max(sum, number(row[value.name])), 0) || 1;
  const size = Number(last - first) || 1;
  const dots: Dot[] = rows.map((row, i) => ({
    x: 4 + (Number(times[i] - first) / size) * Math.max(1, width - 8),
    y: HEIGHT - FOOT - (Math.max(0, number(row[value.name])) / most) * (HEIGHT - FOOT - HEAD - 4),
    row,
  }));
  useLayoutEffect(() => {
    const context = frame(canvas.current!, width);
    axes(context, width, cellText(most, value.class), cellText(most / 2, value.class), first, last);
    context.fillStyle = colour(canvas.current!, "--events");
    for (const { x, y } of dots) {
      context.fillRect(x, y, 1, HEIGHT - FOOT - y);
      context.fillRect(x - 2, y - 2, 5, 5);
    }
    context.fillStyle = colour(canvas.current!, "--ink");
    if (dots[chosen]) context.fillRect(dots[chosen].x - 4, dots[chosen].y - 4, 9, 9);
    context.globalAlpha = 0.2;
    if (drag) context.fillRect(Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), HEIGHT - FOOT);
    context.globalAlpha = 1;
  }, [width, table, theme, chosen, drag]);
  const say = ({ row }: Dot) => `${cellText(row[time.name], time.class)}: ${cellText(row[value.name], value.class)}`;
  const place = (event: PointerEvent) => event.clientX - ref.current!.getBoundingClientRect().left;
  const timeAt = (x: number): bigint => first + BigInt(Math.round(within((x - 4) / Math.max(1, width - 8), 1) * size));
  /** In the order of time. */
  const order = dots.map((_, i) => i).sort((a, b) => dots[a].x - dots[b].x);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && dots[chosen]) goToRow(store, table.columns, dots[chosen].row);
    const step = stepOf(event, order.indexOf(chosen), order.length);
    if (step === null) return;
    const next = order[step];
    choose(next);
    setTip(say(dots[next]));
  };
  const end = () => {
    dragged.current = drag !== null && Math.abs(drag[1] - drag[0]) > NEAR;
    if (drag && dragged.current) {
      const [from, to] = [timeAt(Math.min(...drag)), timeAt(Math.max(...drag))];
      store.go({ begin: from, end: to > from ? to : from + 1n });
    }
    setDrag(null);
  };
  const near = (event: PointerEvent | MouseEvent): Dot | null => {
    const box = ref.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const far = (dot: Dot) => Math.abs(dot.x - x) + (y < dot.y ? Math.abs(dot.y - y) / 4 : 0);
    const best = dots.reduce<Dot | null>((a, dot) => (!a || far(dot) < far(a) ? dot : a), null);
    return best && Math.abs(best.x - x) < NEAR ? best : null;
  };
  const tell = (event: PointerEvent) => {
    if (drag) return setDrag([drag[0], place(event)]);
    const dot = near(event);
    setTip(dot ? say(dot) : "");
  };
  return (
    <div class="chart" data-chart={table.name}>
      <div
        ref={ref}
        class="goes"
        tabIndex={0}
        role="group"
        aria-label={`${value.title} over time: arrows choose a value, Enter goes to it; dragging shows a part of the time`}
        onKeyDown={keys}
        onPointerDown={(event) => {
          ref.current!.setPointerCapture(event.pointerId);
          setDrag([place(event), place(event)]);
        }}
        onPointerMove={tell}
        onPointerUp={end}
        onClick={(event) => {
          const dot = dragged.current ? null : near(event);
          if (dot) goToRow(store, table.columns, dot.row);
        }}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setTip("")}
      >
        <canvas
          ref={canvas}
          style={{ height: `${HEIGHT}px` }}
          role="img"
          aria-label={`${value.title} over time: ${rows.length} values up to ${cellText(most, value.class)}`}
        />
      </div>
      <p class="note" role="status">{tip || `${value.title} over time`}</p>
    </div>
  );
}

export function Chart({ table, store }: { table: Table; store: Store }) {
  const has = (name: string, kind: string) => table.columns.some((column) => column.name === name && column.class === kind);
  if (has("depth", "number") && has("function", "text") && has("share", "ratio")) return <Flame table={table} />;
  if (has("from", "duration") && has("to", "duration") && has("count", "count")) return <Distribution table={table} store={store} />;
  const time = table.columns.find((column) => column.class === "timestamp");
  const kind = VALUES.find((one) => table.columns.some((column) => column.class === one));
  const value = table.columns.find((column) => column.class === kind);
  const timed = time ? table.rows.filter((row) => (row[time.name] ?? null) !== null) : [];
  return time && value && timed.length >= LEAST ? <Series table={table} store={store} time={time} value={value} /> : null;
}
