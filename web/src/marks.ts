// SPDX-License-Identifier: MIT
// Events as ticks on rows, and the times of which rows lack events.
import { useState } from "preact/hooks";
import * as api from "./api";
import { scaleOf } from "./paint";
import type { Answer, Picture } from "./pictures";
import { useLater, type Store } from "./store";
import { placeOf, type Range } from "./time";
import type { Line, Track } from "./tree";

const TRIGGERS = '$event == "kymo:mark"';
const NEAR = 4; // pixels from a tick that still show it

export async function askMarks(range: Range, count: number, [filter]: string[]): Promise<Answer<string>> {
  const found = await api.marks(range, count, filter);
  return { ...found, rows: [{ id: filter, runs: found.marks, extra: found.until }] };
}

export async function askLosses(range: Range, count: number, [id]: string[]): Promise<Answer<string>> {
  const found = await api.losses(range, count);
  return { ...found, rows: [{ id, runs: [], extra: found.streams }] };
}

/** Pixel, events, name, and so on. */
const byRow = new WeakMap<Picture, Map<number, number[]>>();

function marksOf(picture: Picture, row: number): number[] {
  let rows = byRow.get(picture);
  if (!rows) {
    rows = new Map();
    for (let i = 0; i < picture.runs.length; i += 4) {
      const list = rows.get(picture.runs[i]) ?? [];
      list.push(picture.runs[i + 1], picture.runs[i + 2], picture.runs[i + 3]);
      rows.set(picture.runs[i], list);
    }
    byRow.set(picture, rows);
  }
  return rows.get(row) ?? [];
}

export function paintMarks(context: CanvasRenderingContext2D, picture: Picture, list: Line[], top: number, view: Range, width: number, ink: string) {
  const { left, scale } = scaleOf(picture, view, width);
  context.fillStyle = ink;
  for (const { track, y } of list) {
    const marks = track.own === null ? [] : marksOf(picture, track.own);
    for (let i = 0; i < marks.length; i += 3) {
      const x = left + (marks[i] + 0.5) * scale;
      if (x >= 0 && x < width) context.fillRect(Math.round(x) - 1, y - top, 2, 6);
    }
  }
}

/** "shop:order_placed", "shop:order_placed and 3 more events": what is at a place of a row. */
export function markAt(picture: Picture | undefined, track: Track, view: Range, width: number, x: number): string {
  if (!picture || track.own === null) return "";
  const { left, scale } = scaleOf(picture, view, width);
  const marks = marksOf(picture, track.own);
  let [best, far] = [-1, NEAR];
  for (let i = 0; i < marks.length; i += 3) {
    const distance = Math.abs(left + (marks[i] + 0.5) * scale - x);
    if (distance < far) [best, far] = [i, distance];
  }
  if (best < 0) return "";
  const more = marks[best + 1] - 1;
  return `${picture.names[marks[best + 2] - 1] ?? ""}${more ? ` and ${more} more events` : ""}`;
}

/** How many events the row has as marks in the view. */
export function countMarks(picture: Picture | undefined, track: Track, view: Range, width: number): number {
  if (!picture || track.own === null) return 0;
  const { left, scale } = scaleOf(picture, view, width);
  const marks = marksOf(picture, track.own);
  let n = 0;
  for (let i = 0; i < marks.length; i += 3) {
    const x = left + (marks[i] + 0.5) * scale;
    if (x >= 0 && x < width) n += marks[i + 1];
  }
  return n;
}

// ---- losses ---------------------------------------------------------------------------------

function* lossesOf(picture: Picture, track: Track): Generator<api.Numbers> {
  for (const { rows, runs } of picture.extra as api.Losses["streams"])
    if (rows.some((row) => track.sources.includes(row))) yield runs;
}

let hatch: CanvasPattern | null = null;

/** Orange lines: a colour alone is not for everybody. */
function pattern(context: CanvasRenderingContext2D): CanvasPattern | string {
  if (hatch) return hatch;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d")!;
  pen.strokeStyle = "#d55e00";
  pen.lineWidth = 2;
  for (const from of [-6, 0, 6]) {
    pen.moveTo(from, 6);
    pen.lineTo(from + 6, 0);
  }
  pen.stroke();
  hatch = context.createPattern(tile, "repeat");
  return hatch ?? "#d55e0080";
}

export function paintLosses(context: CanvasRenderingContext2D, picture: Picture, list: Line[], top: number, view: Range, width: number): void {
  const { left, scale } = scaleOf(picture, view, width);
  context.fillStyle = pattern(context);
  for (const { track, y, height } of list) {
    for (const runs of lossesOf(picture, track)) {
      for (let i = 0; i < runs.length; i += 4) {
        const from = Math.max(0, Math.round(left + runs[i] * scale));
        const to = Math.min(width, Math.max(from + 3, Math.round(left + runs[i + 1] * scale)));
        if (to > 0 && from < width) context.fillRect(from, y - top, to - from, height);
      }
    }
  }
}

/** "7 lost events", "damaged: no events from here on": of the pixels from @from to @to. */
export function lossAt(picture: Picture | undefined, track: Track, view: Range, width: number, from: number, to: number): string {
  if (!picture) return "";
  const { left, scale } = scaleOf(picture, view, width);
  let [lost, damaged] = [0, false];
  for (const runs of lossesOf(picture, track)) {
    for (let i = 0; i < runs.length; i += 4) {
      const [begin, end] = [left + runs[i] * scale, Math.max(left + runs[i + 1] * scale, left + runs[i] * scale + 3)];
      if (end <= from || begin >= to) continue;
      lost += runs[i + 2] * (runs[i + 1] - runs[i]);
      damaged ||= runs[i + 3] === 1;
    }
  }
  const n = lost > 0.5 ? `${Math.round(lost)} ` : "";
  return [lost ? `${n}lost events` : "", damaged ? "damaged: no events from here on" : ""].filter(Boolean).join("; ");
}

// ---- marks of triggers, over the whole height ------------------------------------------------

export interface Triggers {
  range: Range;
  count: number;
  marks: { place: number; text: string }[];
}

/** Marks of triggers in a range, where the trace has some. */
export function useTriggers(store: Store, range: Range, width: number): Triggers | null {
  const [found, setFound] = useState<Triggers | null>(null);
  useLater(
    async (signal) => {
      if (!width) return;
      const { count, triggers, names } = await api.marks(range, Math.min(width, 4096), TRIGGERS);
      if (signal.aborted) return;
      const marks: Triggers["marks"] = [];
      for (let i = 0; i < triggers.length; i += 3) {
        const more = triggers[i + 1] - 1;
        marks.push({ place: (triggers[i] + 0.5) / count, text: `${names[triggers[i + 2] - 1]}${more ? ` and ${more} more marks` : ""}` });
      }
      setFound({ range, count, marks });
    },
    [range.begin, range.end, width, store.generation],
    120,
  );
  return found;
}

const placeIn = (found: Triggers, place: number, range: Range, width: number) => {
  const ns = found.range.begin + BigInt(Math.round(Number(found.range.end - found.range.begin) * place));
  return placeOf(ns, range) * width;
};

export function paintTriggers(context: CanvasRenderingContext2D, found: Triggers | null, range: Range, width: number, height: number, ink: string): void {
  context.fillStyle = ink;
  for (const { place } of found?.marks ?? []) {
    const x = Math.round(placeIn(found!, place, range, width));
    context.fillRect(x, 0, 1, height);
    context.beginPath();
    context.moveTo(x - 4, 0);
    context.lineTo(x + 5, 0);
    context.lineTo(x + 0.5, 8);
    context.fill();
  }
}

/** The text of the mark of a trigger at a place of the canvas. */
export function triggerAt(found: Triggers | null, range: Range, width: number, x: number): string {
  const near = (found?.marks ?? []).find(({ place }) => Math.abs(placeIn(found!, place, range, width) - x) < NEAR + 1);
  return near ? near.text : "";
}

/** ", 2 marks of triggers: here, there" */
export function countTriggers(found: Triggers | null): string {
  const n = found?.marks.length ?? 0;
  if (!n) return "";
  const texts = [...new Set(found!.marks.map(({ text }) => text))].slice(0, 5).join(", ");
  return `; ${n} ${n === 1 ? "mark" : "marks"} of triggers: ${texts}`;
}
