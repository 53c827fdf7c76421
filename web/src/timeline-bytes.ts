// SPDX-License-Identifier: MIT
// The bytes of api/timeline: src/view/answers/answer.h has their layout. What an answer says of its own size is checked against the bytes that are there.

/** One answer: rows as runs of pixels, with four numbers for each: from, to, kind, detail. */
export interface Bytes {
  ready: boolean;
  read: number;
  count: number;
  names: string[];
  rows: { id: number; runs: number[] }[];
}

const VERSION = 1;
const MOST_PIXELS = 4096;
const MOST_ROWS = 256;
const HAS_GAP = 1;
const IS_LONG = 2;
const BITS = 2;

class Reader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  fail(): never {
    throw new Error("the answer about rows is malformed");
  }

  byte(): number {
    return this.at < this.bytes.length ? this.bytes[this.at++] : this.fail();
  }

  /** Exact up to 2^53; what is larger is malformed. */
  number(): number {
    let first = this.byte();
    if (first < 128) return first;
    let [number, scale] = [first & 127, 128];
    do {
      first = this.byte();
      number += (first & 127) * scale;
      scale *= 128;
    } while (first >= 128 && scale < 2 ** 53);
    return first < 128 && number <= Number.MAX_SAFE_INTEGER ? number : this.fail();
  }

  /** How many things follow, each of at least so many bytes. */
  length(most: number, least: number): number {
    const n = this.number();
    return n <= most && n * least <= this.bytes.length - this.at ? n : this.fail();
  }

  text(length: number): Uint8Array {
    if (length > this.bytes.length - this.at) this.fail();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  end(): void {
    if (this.at !== this.bytes.length) this.fail();
  }
}

function runs(reader: Reader, count: number, kinds: Uint8Array, details: Float64Array): number[] {
  const n = reader.length(count, 1);
  const found = new Array<number>(4 * n);
  for (let i = 0, x = 0; i < 4 * n; i += 4) {
    const code = reader.number();
    const place = Math.floor(code / (1 << BITS));
    if (place >= kinds.length) reader.fail();
    if (code & HAS_GAP) x += reader.number();
    const to = x + (code & IS_LONG ? reader.number() : 1);
    if (to > count || to <= x) reader.fail();
    [found[i], found[i + 1], found[i + 2], found[i + 3]] = [x, to, kinds[place], details[place]];
    x = to;
  }
  return found;
}

/** Throws an error for bytes that are no answer. */
export function decode(bytes: Uint8Array): Bytes {
  const reader = new Reader(bytes);
  if (reader.byte() !== 75 || reader.byte() !== 84 || reader.byte() !== VERSION) reader.fail();
  const ready = reader.byte() === 1;
  const read = reader.number();
  const count = reader.number();
  if (count > MOST_PIXELS) reader.fail();
  const names: string[] = [];
  const decoder = new TextDecoder();
  for (let n = reader.length(Infinity, 1); n > 0; n--) names.push(decoder.decode(reader.text(reader.number())));
  const n = reader.length(Infinity, 2);
  const kinds = new Uint8Array(n);
  const details = new Float64Array(n);
  for (let i = 0; i < n; i++) [kinds[i], details[i]] = [reader.byte(), reader.number()];
  const rows: Bytes["rows"] = [];
  for (let left = reader.length(MOST_ROWS, 2); left > 0; left--) rows.push({ id: reader.number(), runs: runs(reader, count, kinds, details) });
  reader.end();
  return { ready, read, count, names, rows };
}
