// SPDX-License-Identifier: MIT
// Beside figures of a range: that they lack events.
import { useState } from "preact/hooks";
import * as api from "./api";
import { useLater, useStore, type Store } from "./store";
import type { Range } from "./time";

const PIXELS = 500;

/** "7 events were lost here, and stream channel0_1 is damaged: the figures lack what they tell of." */
function inWords({ streams }: api.Losses): string {
  let [lost, any] = [0, false];
  const damaged: string[] = [];
  for (const { stream, runs } of streams) {
    for (let i = 0; i < runs.length; i += 4) {
      lost += runs[i + 2] * (runs[i + 1] - runs[i]);
      any ||= runs[i + 2] > 0;
      if (runs[i + 3] && !damaged.includes(stream)) damaged.push(stream);
    }
  }
  const n = Math.round(lost);
  const parts = [
    ...(any ? [n ? `${n === 1 ? "1 event was" : `${n} events were`} lost here` : "packets were lost here"] : []),
    ...(damaged.length ? [`the damaged ${damaged.length === 1 ? "stream" : "streams"} ${damaged.join(", ")} ended before or here`] : []),
  ];
  return parts.length ? `${parts.join(", and ")}: the figures lack these events.` : "";
}

export function LossNote({ store, range }: { store: Store; range: Range }) {
  useStore(store);
  const [found, setFound] = useState<{ of: Range; text: string } | null>(null);
  useLater(
    async (signal) => {
      const text = inWords(await api.losses(range, PIXELS));
      if (!signal.aborted) setFound({ of: range, text });
    },
    // Damage is known once the events are counted.
    [range.begin, range.end, store.generation, store.progress.progress === 1],
    200,
  );
  if (!found?.text || found.of.begin !== range.begin || found.of.end !== range.end) return null;
  return (
    <p class="note error losses" role="status">
      {found.text}
    </p>
  );
}
