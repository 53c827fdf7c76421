// SPDX-License-Identifier: MIT
// Statistics of the selected area: threads and their states, calls, events, counters.
import { useState } from "preact/hooks";
import * as api from "./api";
import { CURVES, quantity } from "./curves";
import { useSteady } from "./live";
import { LossNote } from "./loss-note";
import { STATES } from "./states";
import { useLater, useStore, type Store } from "./store";
import { clock, duration, span } from "./time";

const FIRST = 12;
/** Statistics of the visible range, while that follows a recording, are as old as this at most. */
const FOLLOW_MS = 10_000;

/** A list of which the first lines are shown at first. */
function List<Item>({ title, heads, items, cells, go }: {
  title: string;
  heads: string[];
  items: Item[];
  cells: (item: Item) => preact.ComponentChildren[];
  go?: (item: Item) => void;
}) {
  const [all, setAll] = useState(false);
  if (!items.length) return null;
  return (
    <div class="report-table">
      <table data-area={title}>
        <caption>{title}</caption>
        <thead>
          <tr>
            {heads.map((head, i) => (
              <th scope="col" class={i ? "number" : ""}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(all ? items : items.slice(0, FIRST)).map((item) => (
            <tr
              class={go ? "goes" : ""}
              tabIndex={go ? 0 : undefined}
              onClick={() => go?.(item)}
              onKeyDown={(event) => event.key === "Enter" && go?.(item)}
            >
              {cells(item).map((cell, i) => (
                <td class={i ? "number" : ""}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {!all && items.length > FIRST && <button onClick={() => setAll(true)}>Show all {items.length}</button>}
    </div>
  );
}

/** The states of a thread as one bar, from the longest to the shortest. */
function States({ states, whole }: { states: api.Numbers; whole: number }) {
  const parts = Array.from(states)
    .map((ns, kind) => ({ ns, kind }))
    .filter(({ ns, kind }) => ns > 0 && STATES[kind])
    .sort((a, b) => b.ns - a.ns);
  const text = parts.map(({ ns, kind }) => `${duration(ns)} ${STATES[kind][0]}`).join(", ");
  return (
    <span class="states" role="img" aria-label={text} title={text}>
      {parts.map(({ ns, kind }) => (
        <i style={{ width: `${(ns / whole) * 100}%`, background: STATES[kind][1] }} />
      ))}
    </span>
  );
}

const percent = (part: number, whole: number) => `${((part / whole) * 100).toFixed(1)} %`;

function sums(title: string, first: string, items: api.AreaSum[]) {
  return (
    <List
      title={title}
      heads={[first, "Number", "Time", "Longest"]}
      items={items}
      cells={(one) => [one.name, one.n, duration(one.ns), duration(one.longest)]}
    />
  );
}

/** A value of a counter, in its unit. */
function amount({ id, kind, number }: api.Area["counters"][0], value: number): string {
  const curve = CURVES[kind]?.(id, number);
  return quantity(value * (curve?.scale ?? 1), curve?.unit ?? "");
}

function Found({ store, area, whole }: { store: Store; area: api.Area; whole: number }) {
  const select = ({ id }: { id: number }) => store.setRows({ selected: String(id) });
  const entries = new Map(area.names.map((one) => [one.name, one.n]));
  const calls = (name: string) => entries.get(`syscall_entry_${name}`);
  return (
    <>
      {!area.ready && <p class="note">The states of CPUs and threads are being read: {area.read} events.</p>}
      {!area.exact && <p class="note">Of more than 300,000 states; times are estimates. A shorter range has exact ones.</p>}
      <List
        title="Threads"
        heads={["Thread", "States", "CPU time", "Share"]}
        items={area.threads}
        go={select}
        cells={(one) => [
          `${one.name || "?"} (${one.tid})`,
          <States states={one.states} whole={whole} />,
          duration(one.active),
          percent(one.active, whole),
        ]}
      />
      <List
        title="System calls"
        heads={["Call", "Number", "In the kernel", "Waiting"]}
        items={area.calls}
        cells={(one) => [one.name, calls(one.name) ?? "", duration(one.ns), duration(one.waiting)]}
      />
      {area.counted ? (
        <List
          title={`Events: ${area.events}`}
          heads={["Event", "Number", "Rate"]}
          items={area.names}
          cells={(one) => [one.name, one.n, `${((one.n / whole) * 1e9).toFixed(1)} /s`]}
        />
      ) : (
        <p class="note">The range is too long to count events by name. Select a shorter one.</p>
      )}
      {sums("Spans", "Span", area.spans)}
      {sums("Interrupts", "Handler", area.irqs)}
      {sums("Disk requests", "Kind", area.requests)}
      <List
        title="Counters"
        heads={["Counter", "Lowest", "Mean", "Highest"]}
        items={area.counters}
        go={select}
        cells={(one) => [
          one.kind === "queue" ? `CPU ${one.number}: ${one.name}` : one.name || `${one.kind} ${one.number}`,
          amount(one, one.low),
          amount(one, one.mean),
          amount(one, one.high),
        ]}
      />
    </>
  );
}

export function AreaPane({ store }: { store: Store }) {
  const state = useStore(store);
  const [found, setFound] = useState<api.Area | null>(null);
  const [error, setError] = useState("");
  const [round, setRound] = useState(0);
  const range = useSteady(store.range, state.follow && !state.selection, FOLLOW_MS);
  const { begin, end } = range;
  useLater(
    async (signal) => {
      setError("");
      try {
        const area = await api.area(range, state.filter, signal);
        setFound(area);
        if (!area.ready) window.setTimeout(() => !signal.aborted && setRound((n) => n + 1), 500);
      } catch (reason) {
        if (!signal.aborted) setError((reason as Error).message);
      }
    },
    [begin, end, state.filter, round],
    250,
  );
  const current = found && found.range.begin === begin && found.range.end === end;
  return (
    <div class="report area" data-ready={(current && found.ready) || error !== ""}>
      <h2>{state.selection ? "Selected area" : "Visible range"}</h2>
      <p class="note">
        {clock(begin)} – {clock(end)} ({duration(span(range))})
      </p>
      {error && (
        <p class="note error" role="alert">
          {error}
        </p>
      )}
      {!found && !error && <p class="note">…</p>}
      <LossNote store={store} range={range} />
      {found && <Found store={store} area={found} whole={span(found.range) + 1} />}
    </div>
  );
}
