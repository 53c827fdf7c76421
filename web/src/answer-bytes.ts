// SPDX-License-Identifier: MIT
// Answers in columns: docs/design/viewer.md has their bytes. What an answer says of its own size is checked against the bytes that are there.
import { parse, type Json } from "./json";

export type Fields = { [key: string]: Json };

const MAGIC = [75, 89, 65, 1]; // "KYA", and the version
const MOST_COLUMNS = 64;
const MOST_NUMBER = 2 ** 53 - 1;
const HAS_GAP = 1;
const IS_LONG = 2;
const BITS = 2;
const MOST_CODE = 2 ** 32;
const MOST_PIXELS = 4096;

export function fail(): never {
  throw new Error("the server's answer is malformed");
}

class Reader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get left(): number {
    return this.bytes.length - this.at;
  }

  byte(): number {
    return this.at < this.bytes.length ? this.bytes[this.at++] : fail();
  }

  /** Exact up to 2^53 - 1; what is larger is malformed. */
  number(): number {
    let next = this.byte();
    if (next < 128) return next;
    let [number, scale] = [next & 127, 128];
    do {
      next = this.byte();
      number += (next & 127) * scale;
      scale *= 128;
    } while (next >= 128 && scale < 2 ** 53);
    return next < 128 && number <= MOST_NUMBER ? number : fail();
  }

  /** Numbers of one byte, into @found from @i on. Returns how many. */
  small(found: Float64Array, i = 0): number {
    const { bytes } = this;
    let [at, k] = [this.at, i];
    while (k < found.length && at < bytes.length && bytes[at] < 128) found[k++] = bytes[at++];
    this.at = at;
    return k - i;
  }

  /** Any number of 64 bits. */
  wide(): number | bigint {
    let [low, next, shift] = [0, this.byte(), 0];
    for (; next >= 128 && shift < 42; next = this.byte()) {
      low += (next & 127) * 2 ** shift;
      shift += 7;
    }
    low += (next & 127) * 2 ** shift;
    if (next < 128) return low;
    let number = BigInt(low);
    for (shift += 7; next >= 128; shift += 7) {
      next = this.byte();
      number += BigInt(next & 127) << BigInt(shift);
      if (shift > 63) fail();
    }
    return number < 1n << 64n ? number : fail();
  }

  take(length: number): Uint8Array {
    if (length > this.left) fail();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  end(): void {
    if (this.left) fail();
  }
}

function numbers(reader: Reader, n: number): Float64Array {
  const found = new Float64Array(n);
  // Most numbers have one byte.
  for (let i = reader.small(found); i < n; i++) {
    found[i] = reader.number();
    i += reader.small(found, i + 1);
  }
  return found;
}

function steps(reader: Reader, n: number): Float64Array {
  const found = new Float64Array(n);
  let last = 0;
  for (let i = 0; i < n; i++) {
    const word = reader.wide();
    last += typeof word === "number" ? (word % 2 ? -(word + 1) / 2 : word / 2) : Number(signed(word));
    if (Math.abs(last) > MOST_NUMBER) fail();
    found[i] = last;
  }
  return found;
}

const signed = (word: bigint): bigint => (word & 1n ? -((word + 1n) >> 1n) : word >> 1n);

function times(reader: Reader, n: number): BigInt64Array {
  const found = new BigInt64Array(n);
  for (let i = 0; i < n; i++) found[i] = (i ? found[i - 1] : 0n) + signed(BigInt(reader.wide()));
  return found;
}

function reals(bytes: Uint8Array, n: number, size: 4 | 8): Float32Array | Float64Array {
  if (bytes.length !== size * n) fail();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = size === 4 ? new Float32Array(n) : new Float64Array(n);
  for (let i = 0; i < n; i++) found[i] = size === 4 ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true);
  return found;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function texts(reader: Reader, n: number): string[] {
  const found: string[] = [];
  for (let i = 0; i < n; i++) found.push(decoder.decode(reader.take(reader.number())));
  return found;
}

/** A column is decoded when it is asked for. */
interface Column {
  type: string;
  n: number;
  bytes: Uint8Array;
}

export class Columns {
  readonly head: Fields = {};
  private readonly columns = new Map<string, Column>();

  /** Throws an error for bytes that are no answer. */
  constructor(bytes: Uint8Array) {
    const reader = new Reader(bytes);
    for (const byte of MAGIC) if (reader.byte() !== byte) fail();
    for (let type = reader.byte(); type; type = reader.byte()) {
      const name = decoder.decode(reader.take(reader.number()));
      const n = reader.number();
      const column = { type: String.fromCharCode(type), n, bytes: reader.take(reader.number()) };
      if (column.type === "j") this.addHead(column.bytes);
      else if (this.columns.has(name) || n > column.bytes.length || this.columns.size >= MOST_COLUMNS) fail();
      else this.columns.set(name, column);
    }
    reader.end();
  }

  private addHead(bytes: Uint8Array): void {
    let fields: Json;
    try {
      fields = parse(decoder.decode(bytes));
    } catch {
      fail();
    }
    if (fields === null || typeof fields !== "object" || Array.isArray(fields)) fail();
    for (const [name, value] of Object.entries(fields)) this.head[name] = value;
  }

  /** @n: how many values it must have. */
  private get<T>(name: string, types: string, n: number | null, decode: (reader: Reader, n: number, column: Column) => T): T {
    const column = this.columns.get(name);
    if (!column || !types.includes(column.type) || (n !== null && column.n !== n)) fail();
    const reader = new Reader(column.bytes);
    const found = decode(reader, column.n, column);
    reader.end();
    return found;
  }

  /** How many values a column has. */
  length(name: string): number {
    return (this.columns.get(name) ?? fail()).n;
  }

  numbers(name: string, n: number | null = null): Float64Array {
    return this.get(name, "ud", n, (reader, length, { type }) => (type === "u" ? numbers(reader, length) : steps(reader, length)));
  }

  times(name: string, n: number | null = null): BigInt64Array {
    return this.get(name, "t", n, times);
  }

  reals(name: string, n: number | null = null): Float32Array | Float64Array {
    return this.get(name, "fr", n, (reader, length, { type, bytes }) => reals(reader.take(bytes.length), length, type === "f" ? 4 : 8));
  }

  texts(name: string, n: number | null = null): string[] {
    return this.get(name, "s", n, texts);
  }

  /** A column of numbers of names, from 1 on: the names. */
  names(name: string, from: string, n: number | null = null): string[] {
    const found = this.texts(from);
    return Array.from(this.numbers(name, n), (number) => found[number - 1] ?? fail());
  }

  /** How many pixels the answer is about. */
  get count(): number {
    const { count } = this.head;
    return typeof count === "number" && Number.isInteger(count) && count >= 0 && count <= MOST_PIXELS ? count : fail();
  }
}

/** Runs of pixels, in order: those of one row after the other. */
export class Runs {
  private readonly codes: Float64Array;
  private readonly extents: Float64Array;
  private i = 0;
  private k = 0;

  constructor(
    columns: Columns,
    private readonly count = columns.count,
  ) {
    this.codes = columns.numbers("code");
    this.extents = columns.numbers("extent");
  }

  get left(): number {
    return this.codes.length - this.i;
  }

  /** The next @n runs, with @width numbers each: the pixels from and to, the code, and room. */
  take(n: number, width: number): Float64Array {
    const { codes, extents, count } = this;
    if (n > this.left) fail();
    const found = new Float64Array(width * n);
    let [i, k] = [this.i, this.k];
    for (let at = 0, x = 0; at < found.length; at += width) {
      const code = codes[i++];
      // Behind the end of the extents there is NaN, which no comparison finds good.
      if (code & HAS_GAP) x += extents[k++];
      found[at] = x;
      const to = code & IS_LONG ? x + extents[k++] : x + 1;
      if (!(to <= count && to > x && code < MOST_CODE)) fail();
      found[at + 1] = x = to;
      found[at + 2] = code >>> BITS;
    }
    [this.i, this.k] = [i, k];
    return found;
  }

  end(): void {
    if (this.left || this.k < this.extents.length) fail();
  }
}
