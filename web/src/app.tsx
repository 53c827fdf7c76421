// SPDX-License-Identifier: MIT
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { Graph, Overview } from "./graph";
import { Recording, useRecording } from "./live";
import { Drop, OPEN_HELP, openKeys } from "./drop";
import { Find, FIND_HELP, findKeys } from "./find";
import { QUERY } from "./query";
import { NOTE_HELP, noteKeys, useNotes } from "./notes";
import { PAIR_HELP, pairKeys, usePair } from "./pair";
import { isSaved } from "./saved";
import { Legend } from "./legend";
import { DetailsPane, ReportPane } from "./side";
import { AREA, LATENCY, NOTES, PROGRAM, Store, useStore } from "./store";
import { ROW_HELP, rowKeys } from "./row-keys";
import { RowsBar, RowsPane } from "./rows";
import { EventTable, traceName } from "./table";
import { move, parseTime, zoom } from "./time";
import "./style.css";

const HELP: [keys: string, what: string][] = [
  ["W, S", "zoom in, zoom out"],
  ["A, D", "move to the left, to the right"],
  ["F", "show the whole trace"],
  ["G", "go to a time"],
  ["/", "filter events"],
  ["M", "select the visible range: statistics and reports are about it"],
  ["Z", "undo a move"],
  ["L", "show the present of a recording that goes on, and follow it"],
  ...ROW_HELP,
  ...FIND_HELP,
  ...NOTE_HELP,
  ...PAIR_HELP,
  ...OPEN_HELP,
  ["Esc", "close this help; then: remove the selection"],
  ["Arrows, Page Up, Page Down, Home, End", "in the table: select another event"],
  ["Ctrl + wheel, two fingers", "zoom at the pointer, between the fingers"],
  ["Drag", "in the graph: move; with Shift: select a range; in the strip: show this part"],
  ["?", "this help"],
];

function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-label="Help">
      <h2>Keys and mouse</h2>
      <dl>
        {HELP.map(([keys, what]) => (
          <>
            <dt>{keys}</dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <p>
        A time is 08:30:00.5, 2026-11-21 08:30:00, +2s after the begin, -500ms before the end, 50%, or seconds from the
        clock's origin. A filter is a text that the line of an event contains, or an expression as of <code>kymo print --filter</code>: <code>cpu_id == 1 && prev_comm =~ "ngin*"</code>.
      </p>
      <Legend />
      <button onClick={() => dialog.current!.close()}>Close</button>
    </dialog>
  );
}

function choose(store: Store, report: string): void {
  const isOfThread = store.info.reports.some((one) => one.name === report && one.of_thread);
  store.setReport(report, isOfThread ? store.state.rows.selected : null);
}

function Bar({ store, help }: { store: Store; help: () => void }) {
  const state = useStore(store);
  const [time, setTime] = useState("");
  const [wrong, setWrong] = useState(false);
  const [filter, setFilter] = useState(state.base);
  useEffect(() => setFilter(state.base), [state.base]);
  const go = (event: Event) => {
    event.preventDefault();
    const ns = parseTime(time, store.whole);
    const input = document.getElementById("time") as HTMLInputElement;
    setWrong(ns === null);
    input.setCustomValidity(ns === null ? "Not a time: try 08:30:00.5, +2s, -500ms or 50%" : "");
    input.reportValidity();
    if (ns === null) return;
    const half = (state.view.end - state.view.begin) / 2n;
    store.go({ begin: ns - half, end: ns + half });
    store.set({ cursor: ns });
  };
  const theme = () => {
    desktop.removeEventListener("change", followDesktop);
    setTheme(document.documentElement.dataset.theme !== "dark");
  };
  const { total, progress, error } = store.progress;
  return (
    <header>
      <h1>Kymo</h1>
      <span class="traces" title={store.info.traces.map((trace) => trace.path).join("\n")}>
        {store.info.traces.map(traceName).join(", ")}
      </span>
      <form onSubmit={go}>
        <input
          id="time"
          aria-label="Go to a time"
          aria-invalid={wrong}
          placeholder="Go to a time (G)"
          value={time}
          onInput={(event) => {
            event.currentTarget.setCustomValidity("");
            setTime(event.currentTarget.value);
          }}
          onBlur={(event) => {
            event.currentTarget.setCustomValidity("");
            if (wrong) setTime("");
            setWrong(false);
          }}
        />
      </form>
      <form
        class="filter"
        onSubmit={(event) => {
          event.preventDefault();
          store.setFilter(filter.trim(), state.columns);
        }}
      >
        <input
          id="filter"
          aria-label="Filter events"
          placeholder={isSaved ? "Events that contain a text (/)" : 'Filter (/): a text, or prev_comm =~ "ngin*"'}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </form>
      <Find store={store} />
      <label>
        Report{" "}
        <select id="report" value={state.report} onChange={(event) => choose(store, event.currentTarget.value)}>
          <option value="">none: details</option>
          <option value={AREA}>statistics of the range</option>
          <option value={LATENCY}>durations</option>
          <option value={NOTES}>bookmarks and notes</option>
          {!isSaved && <option value={QUERY}>SQL</option>}
          {store.info.reports.map((report) => (
            <option value={report.name} title={report.summary}>
              {report.name}
            </option>
          ))}
          {store.programs.length > 0 && (
            <optgroup label="own reports and other programs">
              {store.programs.map((name) => (
                <option value={PROGRAM + name}>{name}</option>
              ))}
            </optgroup>
          )}
        </select>
      </label>
      <Recording store={store} />
      <button onClick={() => store.go(store.whole)} title="Show the whole trace (F)">
        Fit
      </button>
      <button onClick={theme} title="Light or dark" aria-label="Light or dark">
        ◐
      </button>
      <button onClick={help} title="Help (?)" aria-label="Help">
        ?
      </button>
      <span id="total" role="status" title={error ?? ""}>
        {progress < 1 ? `about ${total} events, counting: ${Math.floor(progress * 100)} %` : `${total} events`}
        {store.info.lost > 0 && `, ${store.info.lost} lost`}
        {error && ", damaged or wrong: see the table"}
      </span>
    </header>
  );
}

function keys(store: Store, help: () => void): (event: KeyboardEvent) => void {
  const focus = (id: string) => document.getElementById(id)!.focus();
  const actions: Record<string, () => void> = {
    w: () => store.go(zoom(store.state.view, 1 / 1.5, 0.5, store.whole)),
    s: () => store.go(zoom(store.state.view, 1.5, 0.5, store.whole)),
    a: () => store.go(move(store.state.view, -0.2, store.whole)),
    d: () => store.go(move(store.state.view, 0.2, store.whole)),
    f: () => store.go(store.whole),
    g: () => focus("time"),
    "/": () => focus("filter"),
    m: () => store.select(store.state.view),
    z: () => store.undo(),
    l: () => store.follow(),
    ...rowKeys(store),
    ...findKeys(),
    ...noteKeys(store),
    ...pairKeys(),
    ...openKeys(),
    "?": help,
    escape: () => store.select(null),
  };
  return (event) => {
    const target = event.target as HTMLElement;
    const key = event.key.toLowerCase();
    if (target.closest("dialog")) return;
    if (target.matches("input, select, textarea")) {
      if (key === "escape") target.blur();
      return;
    }
    if (event.ctrlKey || event.altKey || event.metaKey || !(key in actions)) return;
    actions[key]();
    event.preventDefault();
  };
}

function App({ store }: { store: Store }) {
  const state = useStore(store);
  const [help, setHelp] = useState(false);
  useRecording(store);
  useNotes(store);
  usePair(store);
  useEffect(() => {
    const listener = keys(store, () => setHelp(true));
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, [store]);
  return (
    <>
      <Bar store={store} help={() => setHelp(true)} />
      <main>
        <Overview store={store} />
        <div class="lanes">
          <RowsBar store={store} />
          <Graph store={store} />
        </div>
        <RowsPane store={store} />
        <div class="below">
          <EventTable store={store} />
          <aside aria-label={state.report ? "Report" : "Details of the event"}>
            {state.report ? <ReportPane store={store} /> : <DetailsPane store={store} />}
          </aside>
        </div>
      </main>
      <Drop />
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

/** The desktop's theme is the page's until the user chooses one. */
const desktop = window.matchMedia("(prefers-color-scheme: dark)");
const setTheme = (dark: boolean) => {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
};
const followDesktop = () => setTheme(desktop.matches);

async function start(root: HTMLElement): Promise<void> {
  root.textContent = "…";
  try {
    const [info, programs] = await Promise.all([api.info(), api.programs()]);
    document.title = `${info.traces.map(traceName).join(", ")} – Kymo`;
    const store = new Store(info, info.range ?? { begin: 0n, end: 1n }, programs);
    root.textContent = "";
    render(<App store={store} />, root);
  } catch (error) {
    root.textContent = `The viewer does not answer: ${(error as Error).message}`;
  }
}

desktop.addEventListener("change", followDesktop);
followDesktop();
void start(document.getElementById("app")!);
