// SPDX-License-Identifier: MIT
// JSON with exact integers: those that a double cannot hold become BigInt.

export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?\d+(\.\d+)?([eE][-+]?\d+)?/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const WORD = /true|false|null/y;

class Parser {
  at = 0;

  constructor(readonly text: string) {}

  match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return null;
    this.at += found[0].length;
    return found[0];
  }

  fail(): never {
    throw new SyntaxError(`malformed JSON at character ${this.at}`);
  }

  is(mark: string): boolean {
    this.match(SPACE);
    if (this.text[this.at] !== mark) return false;
    this.at++;
    return true;
  }

  string(): string {
    this.match(SPACE);
    return JSON.parse(this.match(STRING) ?? this.fail()) as string;
  }

  array(): Json[] {
    const list: Json[] = [];
    if (this.is("]")) return list;
    do list.push(this.value());
    while (this.is(","));
    return this.is("]") ? list : this.fail();
  }

  // No prototype: keys come from traces.
  object(): { [key: string]: Json } {
    const object = Object.create(null) as { [key: string]: Json };
    if (this.is("}")) return object;
    do {
      const key = this.string();
      if (!this.is(":")) this.fail();
      object[key] = this.value();
    } while (this.is(","));
    return this.is("}") ? object : this.fail();
  }

  value(): Json {
    if (this.is("[")) return this.array();
    if (this.is("{")) return this.object();
    if (this.text[this.at] === '"') return this.string();
    const word = this.match(WORD);
    if (word) return word === "null" ? null : word === "true";
    const text = this.match(NUMBER) ?? this.fail();
    const number = Number(text);
    return Number.isSafeInteger(number) || !/^-?\d+$/.test(text) ? number : BigInt(text);
  }
}

export function parse(text: string): Json {
  const parser = new Parser(text);
  const value = parser.value();
  parser.match(SPACE);
  return parser.at === text.length ? value : parser.fail();
}

/** The value as JSON again, on one line. */
export function show(value: Json): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map(show).join(", ")}]`;
  if (value !== null && typeof value === "object")
    return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${show(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

export const big = (value: Json): bigint => BigInt(value as number | bigint);
