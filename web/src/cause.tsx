// SPDX-License-Identifier: MIT
// With the details of an event: what its thread waited for, who woke it, and its call stack.
import { useState } from "preact/hooks";
import * as api from "./api";
import { show, type Json } from "./json";
import { chosen, showEvent } from "./row-keys";
import { STATES } from "./states";
import { useLater, useStore, type Store } from "./store";
import { clock, duration } from "./time";

type Fields = { [key: string]: Json };

/** A thread that an event is about, and the time of interest. */
interface Subject {
  title: string;
  tid: number;
  ns: bigint;
}

const tidOf = (fields: Fields | undefined, names: string[]): number | null => {
  for (const name of names) {
    const value = fields?.[name];
    if (typeof value === "number" || typeof value === "bigint") return Number(value);
  }
  return null;
};

/** The thread that ran, the one that was switched to, the one that was woken. */
function subjects(details: api.Details): Subject[] {
  const { ns, name } = details.line;
  if (ns === null) return [];
  const fields = details.event.fields as Fields | undefined;
  const context = ["event_context", "context"].map((scope) => details.event[scope] as Fields | undefined);
  const found: Subject[] = [];
  const add = (title: string, tid: number | null, at: bigint) => {
    if (tid !== null && tid > 0 && !found.some((one) => one.tid === tid)) found.push({ title, tid, ns: at });
  };
  if (name === "sched_switch") add("The next thread", tidOf(fields, ["next_tid", "next_pid"]), ns);
  if (name.startsWith("sched_wak")) add("The woken thread", tidOf(fields, ["tid", "pid"]), ns);
  const own = context.map((one) => tidOf(one, ["tid", "vtid"])).find((tid) => tid !== null) ?? null;
  add("Its thread", name === "sched_switch" ? (tidOf(fields, ["prev_tid", "prev_pid"]) ?? own) : own, ns - 1n);
  return found;
}

const text = (stay: api.Stay): string => `${STATES[stay.kind]?.[0] ?? ""}${stay.name ? `: ${stay.name}` : ""}`;
const long = (stay: api.Stay): string => (stay.begin === null ? "" : duration(Number(stay.end - stay.begin)));

function Time({ store, ns }: { store: Store; ns: bigint }) {
  return (
    <button class="link" onClick={() => void showEvent(store, ns).catch(() => undefined)}>
      {clock(ns)}
    </button>
  );
}

function Thread({ store, subject }: { store: Store; subject: Subject }) {
  const [found, setFound] = useState<api.Cause | null>(null);
  // The rows may come after the event.
  const key = chosen.find("thread", subject.tid);
  useLater(
    async (signal) => {
      setFound(null);
      const cause = key === null ? null : await api.cause(Number(key), subject.ns, signal).catch(() => null);
      if (!signal.aborted) setFound(cause);
    },
    [key, subject.ns],
    50,
  );
  if (!found) return null;
  const { waited, ready, waker, state } = found;
  return (
    <dl class="cause">
      <dt>{subject.title}</dt>
      <dd>
        <button class="link" onClick={() => store.setRows({ selected: String(found.row) })}>
          {found.name || "?"} ({found.tid})
        </button>
        {state && `, ${text(state)}`}
      </dd>
      {waited && (
        <>
          <dt>Waited before</dt>
          <dd>
            {text(waited)}, {long(waited)}
            {waited.begin !== null && (
              <>
                {" "}
                from <Time store={store} ns={waited.begin} />
              </>
            )}
          </dd>
        </>
      )}
      {waker && (
        <>
          <dt>Woken by</dt>
          <dd>
            {waker.handler && `${waker.handler} in `}
            {waker.row < 0 ? (
              `CPU ${waker.cpu}, which was idle`
            ) : (
              <button class="link" onClick={() => store.setRows({ selected: String(waker.row) })}>
                {waker.name || "?"} ({waker.tid})
              </button>
            )}{" "}
            at <Time store={store} ns={waker.ns} />
          </dd>
        </>
      )}
      {ready && (
        <>
          <dt>Then waited for a CPU</dt>
          <dd>{long(ready)}</dd>
        </>
      )}
    </dl>
  );
}

export function Causes({ store, details }: { store: Store; details: api.Details }) {
  useStore(store);
  const list = subjects(details);
  return (
    <>
      {list.map((subject) => (
        <Thread key={subject.title} store={store} subject={subject} />
      ))}
    </>
  );
}

/** Fields of call stacks: lists of addresses or names. */
export const isStack = (path: string, value: Json): value is Json[] => Array.isArray(value) && /(^|\.)_?callstack(_|$)|(^|\.)stack$/.test(path);

const frame = (value: Json): string =>
  typeof value === "number" || typeof value === "bigint" ? `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}` : typeof value === "string" ? value : show(value);

export function Stack({ frames }: { frames: Json[] }) {
  return (
    <ol class="stack">
      {frames.map((one) => (
        <li>{frame(one)}</li>
      ))}
    </ol>
  );
}
