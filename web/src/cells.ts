// SPDX-License-Identifier: MIT
// Values of reports as text.
import { show, type Json } from "./json";
import { clock, duration } from "./time";

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${Number.isInteger(n) ? n : n.toFixed(1)} ${units[i]}`;
}

function processText(value: { [key: string]: Json }): string {
  const ids = value.tid === null ? "" : ` (${value.tid}${value.pid !== null && value.pid !== value.tid ? `, process ${value.pid}` : ""})`;
  return `${value.name || "?"}${ids}${value.host ? ` on ${value.host}` : ""}`;
}

/** A cell for people; its title has the exact value. */
export function cellText(value: Json, kind: string): string {
  if (value === null) return "";
  const number = typeof value === "object" ? NaN : Number(value);
  if (kind === "duration") return duration(number);
  if (kind === "timestamp") return clock(BigInt(value as number));
  if (kind === "ratio") return `${(number * 100).toFixed(1)} %`;
  if (kind === "size") return bytes(number);
  if (kind === "rate") return `${number.toFixed(1)} /s`;
  if (kind === "address") return `0x${BigInt(Math.trunc(number)).toString(16)}`;
  if (typeof value === "object" && !Array.isArray(value)) {
    if (kind === "process") return processText(value);
    if (kind === "irq") return [value.kind, value.nr, value.name].filter((one) => one !== null && one !== "").join(" ");
    return Object.entries(value).map(([name, count]) => `${name} ${show(count)}`).join(", ");
  }
  return typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : String(value);
}

export const NUMERIC = ["count", "number", "duration", "ratio", "timestamp", "cpu", "size", "rate", "address"];
