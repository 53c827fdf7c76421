// SPDX-License-Identifier: MIT
// Curves: what they are of, their units, and how they are drawn.
import type { Picture } from "./pictures";
import { scaleOf } from "./paint";
import type { Range } from "./time";

/** What a row shows as a curve. Values times @scale are in @unit. */
export interface Curve {
  source: number | string; // a row of the history, or a field of an event
  unit: string;
  scale: number;
  most: number | null; // the upper end; null: the greatest value in sight
  perSecond: boolean; // values are amounts of a pixel
  queues?: boolean; // the source is a machine, whose waiting threads it has
}

const of = (source: number, unit: string, scale = 1): Curve => ({ source, unit, scale, most: null, perSecond: false });

/** In the order of enum ky_counter: a millisecond's bytes are 1000 times as many in a second, memory is in units of 64 KiB. */
const COUNTERS: [unit: string, scale: number][] = [
  ["Hz", 1e6],
  ["B/s", 1000],
  ["B/s", 1000],
  ["B/s", 1000],
  ["B/s", 1000],
  ["B", 65536],
];

export const CURVES: Record<string, (id: number, number: number) => Curve> = {
  queue: (id) => of(id, "threads"),
  disk: (id) => of(id, "requests"),
  process: (id) => of(id, "CPUs"),
  counter: (id, number) => of(id, ...(COUNTERS[number] ?? (["", 1] as const))),
  stream: (id) => ({ ...of(id, "events/s"), perSecond: true }),
};

/** "1.25 MB/s" */
export function quantity(value: number, unit: string): string {
  const sizes: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, prefix] = sizes.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  const number = value / size;
  const digits = Number.isInteger(number) ? 0 : Math.abs(number) >= 100 ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return `${number.toFixed(digits)} ${prefix}${unit}`.trim();
}

/** Values of a picture become those of the unit. */
function factor(curve: Curve, picture: Picture): number {
  if (!curve.perSecond) return curve.scale;
  const pixel = (Number(picture.range.end - picture.range.begin) + 1) / picture.count;
  return (curve.scale * 1e9) / pixel;
}

/** Of the pixels from @from to @to of the canvas: the least, the mean, the greatest value; null: nothing is known. */
export function values(
  curve: Curve,
  picture: Picture,
  view: Range,
  width: number,
  from: number,
  to: number,
): { low: number; mean: number; high: number } | null {
  const { runs } = picture;
  const { left, scale } = scaleOf(picture, view, width);
  const by = factor(curve, picture);
  let [low, high, sum, wide] = [Infinity, -Infinity, 0, 0];
  for (let i = 0; i < runs.length; i += 5) {
    const begin = Math.max(from, left + runs[i] * scale);
    const end = Math.min(to, left + runs[i + 1] * scale);
    if (end <= begin) continue;
    low = Math.min(low, runs[i + 2] * by);
    high = Math.max(high, runs[i + 4] * by);
    sum += runs[i + 3] * by * (end - begin);
    wide += end - begin;
  }
  return wide > 0 ? { low, mean: sum / wide, high } : null;
}

const PEAK = "#d55e0099";

export interface CurvePlace {
  picture: Picture;
  curve: Curve;
  y: number;
  height: number;
}

/** The mean is filled; what lies between the least and the greatest value is lighter. */
export function paintCurve(context: CanvasRenderingContext2D, place: CurvePlace, view: Range, width: number, ink: string): void {
  const { picture, curve } = place;
  const all = values(curve, picture, view, width, 0, width);
  if (!all) return;
  const [bottom, top] = [Math.min(0, all.low), curve.most ?? (all.high > Math.min(0, all.low) ? all.high : 1)];
  const { left, scale } = scaleOf(picture, view, width);
  const by = factor(curve, picture);
  const base = place.y + place.height - 1;
  const up = (value: number) => ((Math.min(value, top) - bottom) / (top - bottom)) * (place.height - 3);
  for (const pass of [0, 1]) {
    context.fillStyle = pass ? PEAK : "#56b4e9";
    for (let i = 0; i < picture.runs.length; i += 5) {
      const from = Math.max(0, Math.round(left + picture.runs[i] * scale));
      const to = Math.min(width, Math.max(from + 1, Math.round(left + picture.runs[i + 1] * scale)));
      if (to <= 0 || from >= width) continue;
      const [low, mean, high] = [2, 3, 4].map((k) => picture.runs[i + k] * by);
      if (pass && high > low) context.fillRect(from, base - up(high), to - from, Math.max(1, up(high) - up(mean)));
      if (!pass && mean !== 0) context.fillRect(from, base - Math.max(1, up(mean)), to - from, Math.max(1, up(mean) - up(Math.min(0, mean))));
      if (pass && mean !== 0) {
        // The upper edge is visible on white, too.
        context.fillStyle = "#0072b2";
        context.fillRect(from, base - Math.max(1, up(mean)), to - from, 1);
        context.fillStyle = PEAK;
      }
    }
  }
  if (place.height < 24) return;
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "top";
  context.textAlign = "right";
  const text = `${bottom < 0 ? `${quantity(bottom, curve.unit)} … ` : ""}${quantity(top, curve.unit)}`;
  // The curve goes on behind it.
  context.fillStyle = document.documentElement.dataset.theme === "dark" ? "#14181ec0" : "#ffffffc0";
  const wide = context.measureText(text).width;
  context.fillRect(width - wide - 5, place.y + 1, wide + 4, 11);
  context.fillStyle = ink;
  context.fillText(text, width - 3, place.y + 2);
  context.textAlign = "left";
}
