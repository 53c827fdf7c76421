// SPDX-License-Identifier: MIT
// What the line under the rows tells of a place: the state with its begin and end, what a thread waited for, who woke it.
import { useState } from "preact/hooks";
import * as api from "./api";
import { quantity } from "./curves";
import { KIND, STATES } from "./states";
import { useLater, type Store } from "./store";
import { clock, duration } from "./time";
import type { Track } from "./tree";

/** A place of a row, and what is known of it at once. */
export interface Spot {
  track: Track;
  ns: bigint;
  text: string;
}

const WAITS_FOR_CPU = 7;
const isWait = (kind: number) => kind >= WAITS_FOR_CPU && kind <= 13;

function stateText(found: api.Moment, track: Track, tracks: ReadonlyMap<number, Track>): string {
  const { kind, value, name } = found;
  if (!kind) return "unknown";
  let about = name;
  if (kind === KIND.runs) about = tracks.get(value)?.label ?? "";
  if (kind === KIND.active) about = value ? `in the time of ${tracks.get(value - 1)?.label ?? "a thread"}` : "";
  if (kind >= 16 && kind <= 18) about = quantity(value * 512, "B");
  if (kind === KIND.value && track.curve) return quantity(value * track.curve.scale, track.curve.unit);
  const text = STATES[kind]?.[0] ?? "";
  return about ? `${text}: ${about}` : text;
}

/** Of the wait that the place is in, or that ended directly before it. */
function wakerText({ state, waited, waker }: api.Cause, tracks: ReadonlyMap<number, Track>): string {
  if (!waker || !(state?.begin === waited?.begin || state?.begin === waited?.end)) return "";
  const thread = tracks.get(waker.row)?.label ?? "";
  const who = waker.handler ? `the interrupt handler ${waker.handler}` : thread || "nothing else (the CPU was idle)";
  return `woken by ${who} on CPU ${waker.cpu}, at ${clock(waker.ns)}`;
}

async function tell({ track, ns }: Spot, tracks: ReadonlyMap<number, Track>, signal: AbortSignal): Promise<string> {
  const found = await api.moment(track.id!, ns, signal);
  const parts = [stateText(found, track, tracks)];
  if (found.begin !== null && found.end !== null)
    parts.push(`${duration(Number(found.end - found.begin))}, ${clock(found.begin)} – ${clock(found.end)}`);
  if (track.kind === "thread" && isWait(found.kind)) {
    const woken = wakerText(await api.cause(track.id!, ns, signal), tracks);
    if (woken) parts.push(woken);
    else if (found.kind === WAITS_FOR_CPU) parts.push("another thread took the CPU");
  }
  return parts.join("; ");
}

/** The text of @spot: at once what the picture has, then what the history has. */
export function useTip(store: Store, spot: Spot | null, tracks: ReadonlyMap<number, Track>): string {
  const [exact, setExact] = useState<{ spot: Spot; text: string } | null>(null);
  useLater(
    async (signal) => {
      if (!spot || spot.track.id === null || spot.track.kind === "stream") return;
      try {
        const text = await tell(spot, tracks, signal);
        if (!signal.aborted) setExact({ spot, text });
      } catch (error) {
        if (!signal.aborted) console.info((error as Error).message);
      }
    },
    [spot, store.generation],
    100,
  );
  if (!spot) return "";
  const head = `${spot.track.label}, ${clock(spot.ns)}`;
  // Of the same state the exact text stays until the next one comes.
  if (exact && exact.spot === spot) return [`${head}: ${exact.text}`, spot.text.split("; ").slice(1).join("; ")].filter(Boolean).join("; ");
  return spot.text ? `${head}: ${spot.text}` : head;
}
