// SPDX-License-Identifier: MIT
// Searching: where matches are, on the time axis, and from one to the next. Other events stay in sight.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { toFilter } from "./filters";
import { colour } from "./graph";
import { showEvent } from "./row-keys";
import { useLater, useStore, type Store } from "./store";
import { span, type Range } from "./time";

const POLL_MS = 500;

export const FIND_HELP: [keys: string, what: string][] = [
  ["Q", "search: a text, or an expression as in a filter; Enter goes to the next match, Shift + Enter to the previous one"],
  ["<, >", "the previous, the next match"],
];

/** The density of matches. */
export function useMatches(store: Store, range: Range, width: number): api.Density | null {
  const { search } = useStore(store);
  const [found, setFound] = useState<api.Density | null>(null);
  const [round, setRound] = useState(0);
  useLater(
    async (signal) => {
      if (!search) setFound(null);
      if (!width || !search) return;
      try {
        const matches = await api.density(range, Math.min(width, 4096), toFilter(search), signal);
        setFound(matches);
        if (matches.progress < 1) window.setTimeout(() => !signal.aborted && setRound((n) => n + 1), POLL_MS);
      } catch {
        if (!signal.aborted) setFound(null); // the field tells of the error
      }
    },
    [range.begin, range.end, width, search, round, store.generation],
    80,
  );
  return search ? found : null;
}

export function drawMatches(context: CanvasRenderingContext2D, matches: api.Density | null, range: Range, width: number, bottom: number): void {
  if (!matches) return;
  const scale = (span(matches.range) + 1) / (span(range) + 1) / matches.events.length;
  const left = Number(matches.range.begin - range.begin) / (span(range) + 1);
  context.fillStyle = colour(context.canvas, "--match");
  for (let i = 0; i < matches.exact; i++) {
    if (!matches.events[i]) continue;
    const x = Math.round((left + (i + 0.5) * scale) * width);
    context.fillRect(x - 1, bottom - 9, 3, 9);
  }
}

/** The way to the next or previous match; set by the field. */
const finding: { step: (forward: boolean) => void } = { step: () => undefined };

export const findKeys = (): Record<string, () => void> => ({
  q: () => document.getElementById("find")?.focus(),
  ">": () => finding.step(true),
  "<": () => finding.step(false),
});

/** The first exact answer: the matches up to there are counted meanwhile. Null: @goes on no longer. */
async function exact<T extends { exact: boolean }>(ask: () => Promise<T>, goes: () => boolean): Promise<T | null> {
  for (;;) {
    const found = await ask();
    if (!goes()) return null;
    if (found.exact) return found;
    await new Promise((next) => window.setTimeout(next, POLL_MS));
  }
}

/** Row @k of the matches. False: the search has fewer matches. */
async function go(store: Store, filter: string, k: number, goes: () => boolean): Promise<boolean> {
  const found = k < 0 ? null : await exact(() => api.rows(k, 1, filter), goes);
  if (!goes()) return true;
  const ns = found?.rows[0]?.ns ?? null;
  if (ns === null) return false;
  const { view } = store.state;
  const half = (view.end - view.begin) / 2n;
  if (ns < view.begin || ns > view.end) store.go({ begin: ns - half, end: ns + half });
  store.set({ follow: false });
  await showEvent(store, ns);
  return true;
}

export function Find({ store }: { store: Store }) {
  const { search } = useStore(store);
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(search);
  const [note, setNote] = useState("");
  const [round, setRound] = useState(0);
  const turns = useRef(0); // a new step ends the one before
  useEffect(() => setText(search), [search]);
  // How many there are.
  useLater(
    async (signal) => {
      setNote("");
      if (!search) return;
      try {
        const found = await api.rows(0, 1, toFilter(search), signal);
        const more = found.progress < 1;
        setNote(`${more ? "about " : ""}${found.total} found`);
        if (more) window.setTimeout(() => !signal.aborted && setRound((n) => n + 1), POLL_MS);
      } catch (error) {
        if (!signal.aborted) setNote((error as Error).message);
      }
    },
    [search, round, store.generation],
    50,
  );
  const step = async (forward: boolean, words: string) => {
    const filter = toFilter(words);
    const { cursor, view } = store.state;
    const turn = ++turns.current;
    const goes = () => turns.current === turn;
    try {
      const from = cursor ?? view.begin;
      const ns = forward && cursor !== null ? from + 1n : from;
      const rank = filter ? await exact(() => api.rankOf(ns, filter), goes) : null;
      if (rank && !(await go(store, filter, forward ? rank.row : rank.row - 1, goes))) setNote(forward ? "no later match" : "no earlier match");
    } catch (error) {
      if (goes()) setNote((error as Error).message);
    }
  };
  useEffect(() => {
    finding.step = (forward) => void step(forward, store.state.search);
    return () => {
      finding.step = () => undefined;
    };
  }, []);
  return (
    <form
      class="find"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        store.set({ search: text.trim() });
        if (text.trim()) void step(true, text);
      }}
    >
      <input
        ref={input}
        id="find"
        aria-label="Search"
        placeholder="Search (Q)"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          if (!event.currentTarget.value) store.set({ search: "" });
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !event.shiftKey) return;
          event.preventDefault();
          store.set({ search: text.trim() });
          if (text.trim()) void step(false, text);
        }}
      />
      {search && (
        <span id="found" role="status" title={note}>
          {note}
        </span>
      )}
    </form>
  );
}
