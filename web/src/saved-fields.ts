// SPDX-License-Identifier: MIT
// Curves of fields of a saved page, as the server's (src/view/answers/field.c).
import type { Json } from "./json";
import type { Source } from "./saved-marks";

type Fields = { [key: string]: Json };

const PAUSE = 8192; // events between times for others
const SCOPES = ["fields", "event_context", "context", "packet"];

const isObject = (value: Json | undefined): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

/** The value of a field as a number, or null if the event has no such field or its value is no number. */
function numberOf(event: Fields, name: string): number | null {
  const scope = SCOPES.map((one) => event[one]).find((one) => isObject(one) && one[name] !== undefined) as Fields | undefined;
  let value: Json = scope?.[name] ?? null;
  if (isObject(value) && "labels" in value) value = value.value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return (typeof value === "number" && Number.isFinite(value)) || typeof value === "bigint" ? Number(value) : null;
}

export async function savedField(words: Fields, source: Source): Promise<Fields> {
  const [from, to] = source.range(words);
  const count = Math.min(Number(words.count), Math.max(1, to - from));
  const [text, dot] = [String(words.field), String(words.field).lastIndexOf(".")];
  if (dot <= 0 || dot === text.length - 1) throw new Error("not a field; try EVENT.FIELD, such as sched_switch.next_prio");
  const [wanted, name] = [text.slice(0, dot), text.slice(dot + 1)];
  const chosen = await source.numbers(String(words.filter ?? ""));
  const isChosen = chosen && new Set(chosen);
  const [low, high, sum, n] = [0, 0, 0, 0].map(() => new Float64Array(count));
  const [first, last] = source.between(from, to);
  for (let i = first; i < last; i++) {
    if (i % PAUSE === PAUSE - 1) await new Promise((next) => window.setTimeout(next));
    if (isChosen && !isChosen.has(i)) continue;
    const { line, event } = source.event(i) as { line: Json[]; event: Fields };
    const value = line[3] === wanted ? numberOf(event, name) : null;
    if (value === null) continue;
    const x = Math.min(count - 1, Math.floor(((source.times[i] - from) / (to - from)) * count));
    low[x] = n[x] ? Math.min(low[x], value) : value;
    high[x] = n[x] ? Math.max(high[x], value) : value;
    sum[x] += value;
    n[x]++;
  }
  const mean = (x: number) => sum[x] / n[x];
  const same = (a: number, b: number) => (n[a] && n[b] ? low[a] === low[b] && high[a] === high[b] && mean(a) === mean(b) : !n[a] && !n[b]);
  const runs: number[] = [];
  for (let x = 0, next: number; x < count; x = next) {
    for (next = x + 1; next < count && same(x, next); ) next++;
    if (n[x]) runs.push(x, next, low[x], mean(x), high[x]);
  }
  return { count, values: n.reduce((all, one) => all + one, 0), runs };
}
