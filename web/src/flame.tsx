// SPDX-License-Identifier: MIT
// A tree of call stacks as a flame graph: a box for each function below its caller, as wide as its part of everything.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Table } from "./api";
import { cellText } from "./cells";
import { begin, colour, useTheme, useWidth } from "./graph";
import type { Json } from "./json";

const BOX = 17;
const LEAST_TEXT = 30; // pixels
const MOST_ROWS = 200; // of boxes: stacks can be deeper than a canvas may be high

export interface FlameBox {
  name: string;
  depth: number;
  from: number; // parts of everything
  to: number;
  parent: number; // -1: none
  row: { [key: string]: Json };
}

/** Rows are a tree, callers first, with their depths: children lie in their caller from left to right. */
export function boxesOf(table: Table): FlameBox[] {
  const boxes: FlameBox[] = [];
  const open: { box: number; next: number }[] = []; // by depth
  let next = 0;
  for (const row of table.rows) {
    const depth = Number(row.depth);
    const share = Number(row.share ?? 0);
    if (!(depth >= 0 && depth <= open.length && share >= 0)) continue; // not a tree
    open.length = depth;
    const above = open[depth - 1];
    const from = above ? above.next : next;
    if (above) above.next += share;
    else next += share;
    open.push({ box: boxes.length, next: from });
    boxes.push({ name: String(row.function ?? "").trim(), depth, from, to: from + share, parent: above ? above.box : -1, row });
  }
  return boxes;
}

const isKernel = (name: string) => name.endsWith("_[k]");

/** The same function has the same colour: warm, those of the kernel cold. */
function paintOf(name: string, dark: boolean): string {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  const hue = (isKernel(name) ? 190 : 15) + (Math.abs(hash) % 35);
  return `hsl(${hue} ${dark ? "45% 32%" : "75% 74%"})`;
}

interface Shown {
  boxes: FlameBox[];
  view: [from: number, to: number];
  chosen: number; // -1: none
  search: string;
}

const matches = (box: FlameBox, search: string) => search !== "" && box.name.toLowerCase().includes(search.toLowerCase());

function draw(canvas: HTMLCanvasElement, { boxes, view, chosen, search }: Shown, width: number, height: number) {
  const context = begin(canvas, width, height);
  const dark = document.documentElement.dataset.theme === "dark";
  const [ink, match, cursor] = ["--ink", "--match", "--cursor"].map((name) => colour(canvas, name));
  const scale = width / (view[1] - view[0] || 1);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  boxes.forEach((box, i) => {
    const [x, end] = [Math.max(0, (box.from - view[0]) * scale), Math.min(width, (box.to - view[0]) * scale)];
    if (end - x < 0.5 || box.depth >= MOST_ROWS) return;
    const y = box.depth * BOX;
    context.fillStyle = matches(box, search) ? match : paintOf(box.name, dark);
    context.fillRect(x, y, Math.max(0.5, end - x - 0.5), BOX - 1);
    if (end - x > LEAST_TEXT) {
      context.save();
      context.beginPath();
      context.rect(x, y, end - x - 3, BOX);
      context.clip();
      context.fillStyle = matches(box, search) ? colour(canvas, "--paper") : ink;
      context.fillText(box.name, x + 3, y + BOX / 2);
      context.restore();
    }
    if (i !== chosen) return;
    context.strokeStyle = cursor;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(1, end - x - 2), BOX - 3);
  });
}

/** The box that a key leads to. */
function step(boxes: FlameBox[], chosen: number, key: string): number {
  const box = boxes[chosen];
  if (!box) return boxes.length ? 0 : -1;
  if (key === "ArrowUp") return box.parent;
  if (key === "ArrowDown") return boxes[chosen + 1]?.parent === chosen ? chosen + 1 : chosen;
  const beside = boxes.map((one, i) => [one, i] as const).filter(([one]) => one.parent === box.parent && one.depth === box.depth);
  const at = beside.findIndex(([, i]) => i === chosen) + (key === "ArrowRight" ? 1 : -1);
  return beside[at]?.[1] ?? chosen;
}

export function Flame({ table }: { table: Table }) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [zoomed, setZoomed] = useState(-1);
  const [chosen, setChosen] = useState(-1);
  const [search, setSearch] = useState("");
  const [tip, setTip] = useState("");
  const theme = useTheme();
  const boxes = boxesOf(table);
  const deepest = Math.min(MOST_ROWS, boxes.reduce((most, box) => Math.max(most, box.depth + 1), 1));
  const all = boxes.reduce((most, box) => Math.max(most, box.to), 0);
  const root = boxes[zoomed];
  const view: [number, number] = root ? [root.from, root.to] : [0, all];
  const height = deepest * BOX;
  useLayoutEffect(() => draw(canvas.current!, { boxes, view, chosen, search }, width, height), [table, width, zoomed, chosen, search, theme]);
  const textOf = (i: number) => {
    const box = boxes[i];
    if (!box) return "";
    const parts = table.columns.filter((column) => ["share", "self", "change", "time", "count"].includes(column.name) && (box.row[column.name] ?? null) !== null);
    return `${box.name}: ${parts.map((column) => `${column.title} ${cellText(box.row[column.name], column.class)}`).join(", ")}`;
  };
  const at = (event: MouseEvent): number => {
    const frame = ref.current!.getBoundingClientRect();
    const place = view[0] + ((event.clientX - frame.left) / width) * (view[1] - view[0]);
    const depth = Math.floor((event.clientY - frame.top) / BOX);
    return boxes.findIndex((box) => box.depth === depth && box.from <= place && place < box.to);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key.startsWith("Arrow")) setChosen(step(boxes, chosen, event.key));
    else if (event.key === "Enter") setZoomed(chosen);
    else if (event.key === "Escape" && zoomed >= 0) setZoomed(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const found = boxes.filter((box) => matches(box, search));
  return (
    <div class="chart flame" data-chart={table.name}>
      <input class="flame-search" placeholder="Mark functions" aria-label="Mark functions" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />{" "}
      {root && <button onClick={() => setZoomed(-1)}>Show all</button>}
      <div
        ref={ref}
        class="goes"
        tabIndex={0}
        role="group"
        aria-label="Flame graph: arrows choose a function, Enter shows it alone, Escape shows all"
        onKeyDown={keys}
        onPointerMove={(event) => setTip(textOf(at(event)))}
        onPointerLeave={() => setTip("")}
        onClick={(event) => {
          const box = at(event);
          setChosen(box);
          setZoomed(box === zoomed ? -1 : box);
        }}
      >
        <canvas ref={canvas} style={{ height: `${height}px` }} role="img" aria-label={`Flame graph: ${boxes.length} functions, up to ${deepest} deep`} />
      </div>
      <p class="note" role="status">
        {tip || textOf(chosen) || (search ? `${found.length} marked` : "A click on a function shows it alone; the same click shows all again.")}
      </p>
    </div>
  );
}
