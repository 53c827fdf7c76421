// SPDX-License-Identifier: MIT
// Rows on a canvas. A row becomes three lines of pixels, for its bars, its thin lines and the edges of its bars, which are drawn as high
// as they are: the time that this takes depends on the pixels, not on the number of states.
import type { Picture } from "./pictures";
import { BRIGHT, EDGES, LOW, PALE, PIXELS } from "./states";
import { span, type Range } from "./time";
import type { Numbers } from "./types";

const LINES = 3; // of a row: bars, thin lines, edges of bars
const LOW_HIGH = 4;
const TEXT_PX = 40; // narrower states have no text
const LETTER_PX = 6;

export interface Place {
  picture: Picture;
  y: number;
  height: number;
  sparse: number; // the kind of states in pixels without a main one
  text: (kind: number, detail: number) => string;
}

/** Pixels of a picture to pixels of the canvas. */
export function scaleOf(picture: Picture, view: Range, width: number): { left: number; scale: number } {
  const left = (Number(picture.range.begin - view.begin) / (span(view) + 1)) * width;
  return { left, scale: ((span(picture.range) + 1) / (span(view) + 1) / picture.count) * width };
}

const scratch = document.createElement("canvas");

/** The first run that ends after @pixel of the picture, as an index. */
function firstIn(runs: Numbers, pixel: number): number {
  let [low, high] = [0, runs.length >> 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[4 * middle + 1] <= pixel) low = middle + 1;
    else high = middle;
  }
  return 4 * low;
}

const LOW_KINDS = Uint8Array.from({ length: 256 }, (_, kind) => Number(LOW.has(kind)));

function fill(line: Uint32Array, low: Uint32Array, edge: Uint32Array, place: Place, view: Range, width: number): void {
  const { runs } = place.picture;
  const { left, scale } = scaleOf(place.picture, view, width);
  for (let i = firstIn(runs, -left / scale); i < runs.length; i += 4) {
    const from = Math.max(0, Math.round(left + runs[i] * scale));
    if (from >= width) return;
    const to = Math.max(from + 1, Math.round(left + runs[i + 1] * scale));
    const kind = runs[i + 2];
    const colour = (kind ? PIXELS[kind] : PALE[place.sparse]) ?? PIXELS[0];
    const target = LOW_KINDS[kind] ? low : line;
    // A call for a pixel or two would take longer than the pixels.
    if (to - from > 8) target.fill(colour, from, to);
    else for (let x = from; x < to && x < width; x++) target[x] = colour;
    if (EDGES[kind]) edge.fill(EDGES[kind], from, to);
  }
}

function write(context: CanvasRenderingContext2D, place: Place, view: Range, width: number): void {
  const { runs } = place.picture;
  const { left, scale } = scaleOf(place.picture, view, width);
  if (scale * place.picture.count < TEXT_PX) return;
  const least = TEXT_PX / scale;
  for (let i = firstIn(runs, -left / scale); i < runs.length; i += 4) {
    if (runs[i + 1] - runs[i] < least || LOW_KINDS[runs[i + 2]]) continue;
    const from = Math.max(0, left + runs[i] * scale);
    if (from >= width) return;
    const wide = Math.min(width, left + runs[i + 1] * scale) - from;
    if (wide < TEXT_PX) continue;
    const text = place.text(runs[i + 2], runs[i + 3]);
    if (!text) continue;
    const room = Math.floor((wide - 6) / LETTER_PX);
    context.fillStyle = BRIGHT.has(runs[i + 2]) ? "#000" : "#fff";
    context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, from + 3, place.y + place.height / 2);
  }
}

export function paint(context: CanvasRenderingContext2D, places: Place[], view: Range, width: number): void {
  if (!places.length || width < 1) return;
  const image = new ImageData(width, LINES * places.length);
  const pixels = new Uint32Array(image.data.buffer);
  places.forEach((place, i) => {
    const [line, low, edge] = [0, 1, 2].map((k) => pixels.subarray((LINES * i + k) * width, (LINES * i + k + 1) * width));
    fill(line, low, edge, place, view, width);
  });
  scratch.width = width;
  scratch.height = LINES * places.length;
  scratch.getContext("2d")!.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  places.forEach(({ y, height }, i) => {
    context.drawImage(scratch, 0, LINES * i + 1, width, 1, 0, y + (height - LOW_HIGH) / 2, width, LOW_HIGH);
    context.drawImage(scratch, 0, LINES * i, width, 1, 0, y + 1, width, height - 2);
    context.drawImage(scratch, 0, LINES * i + 2, width, 1, 0, y + 1, width, 1);
    context.drawImage(scratch, 0, LINES * i + 2, width, 1, 0, y + height - 2, width, 1);
  });
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const place of places) write(context, place, view, width);
}
