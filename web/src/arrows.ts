// SPDX-License-Identifier: MIT
// Arrows between rows: who woke the selected thread, and whom it woke.
import * as api from "./api";
import { scaleOf } from "./paint";
import type { Answer, Picture } from "./pictures";
import type { Range } from "./time";
import type { Line, Track } from "./tree";

const HEAD = 5;

export async function askArrows(range: Range, count: number, [id]: string[]): Promise<Answer<string>> {
  const found = await api.arrows(range, count, Number(id));
  return { range, count: found.count, rows: [{ id, runs: found.arrows, extra: found.more }] };
}

/** The middle of each row, from the upper edge of all rows. What is in a closed row is at this row. */
export function middlesOf(lines: Line[]): Map<number, number> {
  const middles = new Map<number, number>();
  const put = (track: Track, y: number, below: boolean) => {
    for (const row of [track.own, track.id]) if (row !== null && !middles.has(row)) middles.set(row, y);
    if (below) for (const child of track.children) put(child, y, true);
  };
  for (const { track, y, height } of lines) put(track, y + height / 2, false);
  for (const { track, y, height, open } of lines) if (open === false) put(track, y + height / 2, true);
  return middles;
}

function paintArrow(context: CanvasRenderingContext2D, [x, y]: number[], [toX, toY]: number[]): void {
  const angle = Math.atan2(toY - y, toX - x);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  for (const side of [-0.45, 0.45]) {
    context.moveTo(toX, toY);
    context.lineTo(toX - HEAD * Math.cos(angle + side), toY - HEAD * Math.sin(angle + side));
  }
  context.stroke();
}

/** @top: what is at the upper edge of the canvas. Each arrow has an edge of the paper's colour: it is visible on any state. */
export function paintArrows(
  context: CanvasRenderingContext2D,
  picture: Picture,
  middles: ReadonlyMap<number, number>,
  top: number,
  view: Range,
  width: number,
  [ink, paper]: string[],
): void {
  const { left, scale } = scaleOf(picture, view, width);
  for (const [colour, wide] of [[paper, 3.5], [ink, 1.25]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = wide;
    for (let i = 0; i < picture.runs.length; i += 4) {
      const [from, to] = [middles.get(picture.runs[i]), middles.get(picture.runs[i + 1])];
      const [x, toX] = [left + picture.runs[i + 2] * scale, left + picture.runs[i + 3] * scale];
      if (from === undefined || to === undefined || toX < 0 || x > width) continue;
      paintArrow(context, [x, from - top], [Math.max(toX, x + 0.01), to - top]);
    }
  }
}

/** "woken 3 times, wakes others 5 times" in the view. */
export function arrowsInWords(picture: Picture | undefined, row: number | null, view: Range, width: number): string {
  if (!picture || row === null) return "";
  const { left, scale } = scaleOf(picture, view, width);
  let [woken, wakes] = [0, 0];
  for (let i = 0; i < picture.runs.length; i += 4) {
    const x = left + picture.runs[i + 2] * scale;
    if (x < 0 || x >= width) continue;
    if (picture.runs[i] === row) wakes++;
    if (picture.runs[i + 1] === row) woken++;
  }
  const times = (n: number) => (n === 1 ? "once" : `${n} times`);
  return woken + wakes ? `woken ${times(woken)}, wakes others ${times(wakes)}` : "no wake-ups here";
}
