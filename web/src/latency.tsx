// SPDX-License-Identifier: MIT
// Durations of calls, waits, interrupts, requests and spans in the range: a map of time and duration, and its members.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { begin as beginCanvas, colour, useTheme, useWidth } from "./graph";
import { useSteady } from "./live";
import { LossNote } from "./loss-note";
import { showEvent } from "./row-keys";
import { useLater, useStore, type Store } from "./store";
import { clock, duration, span, type Range } from "./time";

const COLUMNS = 60;
const CELL = 12;
const SIDE = 90; // of the histogram
const FOOT = 16;
const MOST_MEMBERS = 100;
const FOLLOW_MS = 10_000;

const KINDS: [name: string, text: string][] = [
  ["calls", "system calls"],
  ["waits", "waits of threads"],
  ["ready", "waits for a CPU"],
  ["irqs", "interrupts"],
  ["requests", "disk requests"],
  ["spans", "spans"],
];

export interface Cell {
  column: number; // -1: all of the class
  kind: number; // of duration
}

/** The classes that have something, and one more on each side. */
function bounds(map: api.LatencyMap): [number, number] {
  const kinds = map.cells.map(([, kind]) => kind);
  const [low, high] = kinds.reduce(([a, b], kind) => [Math.min(a, kind), Math.max(b, kind)], [map.classes.length - 1, 0]);
  return kinds.length ? [Math.max(0, low - 1), Math.min(map.classes.length - 1, high + 1)] : [0, 0];
}

function timesOf(map: api.LatencyMap, column: number): Range {
  const { begin, end } = map.range;
  if (column < 0) return map.range;
  const size = Number(end - begin + 1n);
  const at = (c: number) => begin + BigInt(Math.ceil((size * c) / map.columns));
  return { begin: at(column), end: at(column + 1) - 1n };
}

const durationsOf = (map: api.LatencyMap, kind: number): [number, number] => [map.classes[kind], map.classes[kind + 1] ?? Infinity];

function sumOf(map: api.LatencyMap, cell: Cell): number {
  return map.cells.reduce((sum, [column, kind, n]) => sum + (kind === cell.kind && (cell.column < 0 || cell.column === column) ? n : 0), 0);
}

function draw(canvas: HTMLCanvasElement, map: api.LatencyMap, width: number, height: number, chosen: Cell | null) {
  const [low, high] = bounds(map);
  const context = beginCanvas(canvas, width, height);
  const wide = (width - SIDE) / map.columns;
  const y = (kind: number) => (high - kind) * CELL;
  const most = map.cells.reduce((n, [, , count]) => Math.max(n, count), 1);
  const sums = new Map<number, number>();
  context.fillStyle = colour(canvas, "--events");
  for (const [column, kind, count] of map.cells) {
    sums.set(kind, (sums.get(kind) ?? 0) + count);
    context.globalAlpha = 0.15 + 0.85 * Math.sqrt(count / most);
    context.fillRect(Math.floor(column * wide), y(kind), Math.max(1, Math.ceil(wide) - 1), CELL - 1);
  }
  context.globalAlpha = 1;
  const longest = Math.max(1, ...sums.values());
  for (const [kind, count] of sums) context.fillRect(width - SIDE + 4, y(kind), Math.max(1, (count / longest) * (SIDE - 6)), CELL - 1);
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colour(canvas, "--ink");
  for (let kind = low; kind <= high; kind++)
    if (kind % 5 === 0) context.fillText(duration(map.classes[kind]), 2, y(kind) + CELL - 1);
  context.textBaseline = "bottom";
  context.fillText(clock(map.range.begin, 6), 2, height - 1);
  const end = clock(map.range.end, 6);
  context.fillText(end, width - SIDE - context.measureText(end).width, height - 1);
  if (!chosen) return;
  context.strokeStyle = colour(canvas, "--cursor");
  context.lineWidth = 2;
  if (chosen.column < 0) context.strokeRect(1, y(chosen.kind), width - 2, CELL);
  else context.strokeRect(Math.floor(chosen.column * wide), y(chosen.kind), Math.ceil(wide), CELL);
}

export function HeatMap({ map, chosen, choose }: { map: api.LatencyMap; chosen: Cell | null; choose: (cell: Cell | null) => void }) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState("");
  const theme = useTheme();
  const [low, high] = bounds(map);
  const height = (high - low + 1) * CELL + FOOT;
  useLayoutEffect(() => draw(canvas.current!, map, width, height, chosen), [map, width, chosen, theme]);
  const at = (event: MouseEvent): Cell | null => {
    const box = ref.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const kind = high - Math.floor(y / CELL);
    if (kind < low || kind > high) return null;
    return { column: x >= width - SIDE ? -1 : Math.min(COLUMNS - 1, Math.floor((x / (width - SIDE)) * map.columns)), kind };
  };
  const tell = (event: PointerEvent) => {
    const cell = at(event);
    const [least, most] = cell ? durationsOf(map, cell.kind) : [0, 0];
    setTip(cell ? `${duration(least)} to ${duration(most)}, at ${clock(timesOf(map, cell.column).begin, 6)}: ${sumOf(map, cell)}` : "");
  };
  /** Arrows go to the next cell with something in it. */
  const keys = (event: KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const from = chosen ?? { column: -1, kind: low };
    for (let [c, k] = [from.column + step[0], from.kind + step[1]]; c >= -1 && c < map.columns && k >= low && k <= high; [c, k] = [c + step[0], k + step[1]])
      if (sumOf(map, { column: c, kind: k })) return choose({ column: c, kind: k });
  };
  return (
    <div
      ref={ref}
      class="heat goes"
      tabIndex={0}
      role="group"
      aria-label="Durations over time: arrows choose a cell, a click on the right edge a whole class"
      onPointerMove={tell}
      onPointerLeave={() => setTip("")}
      onKeyDown={keys}
      onClick={(event) => {
        const cell = at(event);
        choose(cell && sumOf(map, cell) ? cell : null);
      }}
    >
      <canvas
        ref={canvas}
        style={{ height: `${height}px` }}
        role="img"
        aria-label={`${map.n} durations in ${new Set(map.cells.map(([, kind]) => kind)).size} classes and ${map.columns} columns of time`}
      />
      <p class="note">{tip || "Darker: more. At the right: all of the range."}</p>
    </div>
  );
}

function Members({ store, map, kind, name, cell }: { store: Store; map: api.LatencyMap; kind: string; name: string; cell: Cell }) {
  const [found, setFound] = useState<{ of: string; n: number; members: api.Member[] } | null>(null);
  const of = JSON.stringify([kind, name, cell.column, cell.kind]);
  const [error, setError] = useState("");
  useLater(
    async (signal) => {
      setFound(null);
      setError("");
      try {
        setFound({ of, ...(await api.members(kind, timesOf(map, cell.column), durationsOf(map, cell.kind), name, MOST_MEMBERS, signal)) });
      } catch (reason) {
        if (!signal.aborted) setError((reason as Error).message);
      }
    },
    [map, kind, name, cell.column, cell.kind],
    30,
  );
  const go = (member: api.Member) => {
    const size = member.end - member.begin;
    const around = size > 40n ? size : 40n;
    store.setRows({ selected: String(member.row) });
    store.go({ begin: member.begin - around, end: member.end + around });
    void showEvent(store, member.begin).catch(() => undefined);
  };
  if (error) return <p class="note error" role="alert">{error}</p>;
  // Not those of the cell before, until the new ones are asked for.
  if (found?.of !== of) return <p class="note">…</p>;
  return (
    <table data-members={found.n}>
      <caption>
        {found.n > found.members.length ? `The ${found.members.length} longest of ${found.n}` : `${found.n} in this class`}
      </caption>
      <thead>
        <tr>
          <th scope="col">Begin</th>
          <th scope="col" class="number">
            Duration
          </th>
          <th scope="col">Name</th>
        </tr>
      </thead>
      <tbody>
        {found.members.map((member) => (
          <tr class="goes" tabIndex={0} onClick={() => go(member)} onKeyDown={(event) => event.key === "Enter" && go(member)}>
            <td>{clock(member.begin)}</td>
            <td class="number" title={String(member.end - member.begin)}>
              {duration(Number(member.end - member.begin))}
            </td>
            <td>{member.name}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function LatencyPane({ store }: { store: Store }) {
  const state = useStore(store);
  const [kind, setKind] = useState("calls");
  const [name, setName] = useState("");
  const [map, setMap] = useState<api.LatencyMap | null>(null);
  const [error, setError] = useState("");
  const [cell, setCell] = useState<Cell | null>(null);
  const [round, setRound] = useState(0);
  // A member is looked at in the graph: the map stays, unless one asks for another.
  const [held, setHeld] = useState<Range | null>(null);
  const steady = useSteady(store.range, state.follow && !state.selection, FOLLOW_MS);
  const range = held ?? steady;
  useEffect(() => setCell(null), [kind, name, range.begin, range.end]);
  useLater(
    async (signal) => {
      setError("");
      try {
        const found = await api.latency(kind, range, COLUMNS, name, signal);
        setMap(found);
        if (!found.ready) window.setTimeout(() => !signal.aborted && setRound((n) => n + 1), 500);
      } catch (reason) {
        if (signal.aborted) return;
        setMap(null);
        setError((reason as Error).message);
      }
    },
    [kind, name, range.begin, range.end, round],
    200,
  );
  const choose = (next: Cell | null) => {
    setHeld(next && map ? map.range : null);
    setCell(next);
  };
  const isCurrent = map !== null && map.ready && map.range.begin === range.begin && map.range.end === range.end;
  return (
    <div class="report latency" data-ready={isCurrent || error !== ""}>
      <h2>Durations</h2>
      <p class="note">
        What ended from {clock(range.begin)} to {clock(range.end)} ({duration(span(range))}).{" "}
        {held && (
          <button class="link" onClick={() => choose(null)}>
            Use what the graph shows now
          </button>
        )}
      </p>
      <select
        id="latency-kind"
        aria-label="Durations of"
        value={kind}
        onChange={(event) => {
          setName("");
          setKind(event.currentTarget.value);
        }}
      >
        {KINDS.map(([value, text]) => (
          <option value={value}>{text}</option>
        ))}
      </select>{" "}
      <select id="latency-name" aria-label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)}>
        <option value="">all</option>
        {map?.names.map(([one, n]) => (
          <option value={one}>
            {one} ({n})
          </option>
        ))}
      </select>
      {error && <p class="note error" role="alert">{error}</p>}
      <LossNote store={store} range={range} />
      {map && !map.ready && <p class="note">The states of CPUs and threads are being read: {map.read} events.</p>}
      {map?.ready && !map.n && <p class="note">None ended in the range.</p>}
      {map && map.n > 0 && <HeatMap map={map} chosen={cell} choose={choose} />}
      {map && cell && <Members store={store} map={map} kind={kind} name={name} cell={cell} />}
    </div>
  );
}
