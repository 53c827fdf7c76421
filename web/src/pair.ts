// SPDX-License-Identifier: MIT
// Two traces on one time axis: a page for each in a frame. Times are counted from an event of each, at first from the begin.
import { useEffect } from "preact/hooks";
import type { Store } from "./store";
import { digitsOf, duration, type Range } from "./time";

/** What a page tells the other one, in ns from its own origin. */
interface Message {
  kymo: "pair";
  view: [string, string];
  whole: [string, string];
  origin: string;
  asks: "all" | "times" | ""; // to show all of both traces; for the times of the other one; nothing
}

export const isPaired = window.parent !== window;

/** The other page of the window, which is from this server, too. */
function other(): Window | null {
  for (let i = 0; isPaired && i < window.parent.frames.length; i++)
    if (window.parent.frames[i] !== window) return window.parent.frames[i];
  return null;
}

export const pair: { origin: bigint; other: bigint; align: () => void } = { origin: 0n, other: 0n, align: () => undefined };

/** The same time in the other trace. */
export const otherTime = (ns: bigint): bigint => ns - pair.origin + pair.other;

/** "+1.25 ms" */
export function relative(ns: bigint, step: bigint): string {
  const after = Number(ns - pair.origin);
  if (!after) return "0";
  const size = Math.abs(after);
  const text = size >= 1e9 ? `${(size / 1e9).toFixed(digitsOf(step))} s` : duration(size);
  return `${after < 0 ? "−" : "+"}${text.replace(/\.0+ /, " ")}`;
}

const isRange = (words: unknown): words is [string, string] =>
  Array.isArray(words) && words.length === 2 && words.every((one) => typeof one === "string" && /^-?\d{1,19}$/.test(one));

function isMessage(data: unknown): data is Message {
  const one = data as Partial<Message> | null;
  return one?.kymo === "pair" && isRange(one.view) && isRange(one.whole) && isRange([one.origin, "0"]);
}

const fromOrigin = ({ begin, end }: Range): [string, string] => [String(begin - pair.origin), String(end - pair.origin)];
const toRange = ([begin, end]: [string, string]): Range => ({ begin: pair.origin + BigInt(begin), end: pair.origin + BigInt(end) });

function union(a: Range, b: Range): Range {
  return { begin: a.begin < b.begin ? a.begin : b.begin, end: a.end > b.end ? a.end : b.end };
}

/** Keep both pages at the same times. */
export function usePair(store: Store): void {
  useEffect(() => {
    if (!isPaired) return;
    const own = store.whole;
    let shown = "";
    pair.origin = own.begin;
    const tell = (asks: Message["asks"]) => {
      shown = fromOrigin(store.state.view).join();
      const message: Message = { kymo: "pair", view: fromOrigin(store.state.view), whole: fromOrigin(own), origin: String(pair.origin), asks };
      other()?.postMessage(message, window.location.origin);
    };
    const changed = () => {
      if (fromOrigin(store.state.view).join() !== shown) tell("");
    };
    const hear = (event: MessageEvent) => {
      if (event.origin !== window.location.origin || event.source !== other() || !isMessage(event.data)) return;
      pair.other = BigInt(event.data.origin);
      store.whole = union(own, toRange(event.data.whole));
      if (event.data.asks === "all") {
        // The other page has just begun.
        store.set({ view: store.whole });
        return tell("");
      }
      shown = event.data.view.join();
      store.set({ view: toRange(event.data.view) });
      if (event.data.asks === "times") tell("");
    };
    pair.align = () => {
      const { cursor } = store.state;
      if (cursor === null) return;
      pair.origin = cursor;
      // The event stays where it is; the other page moves.
      tell("times");
      store.tell();
    };
    window.addEventListener("message", hear);
    const stop = store.listen(changed);
    document.documentElement.classList.add("paired");
    tell("all");
    return () => {
      window.removeEventListener("message", hear);
      stop();
    };
  }, [store]);
}

export const PAIR_HELP: [keys: string, what: string][] = isPaired
  ? [["=", "align the two traces: the selected event of this one is the zero of its times"]]
  : [];

export const pairKeys = (): Record<string, () => void> => (isPaired ? { "=": () => pair.align() } : {});
