// SPDX-License-Identifier: MIT
// Beside the table: the details of an event, and reports for a range.
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { show, type Json } from "./json";
import { useSteady } from "./live";
import { LossNote } from "./loss-note";
import { AREA, LATENCY, NOTES, PROGRAM, useLater, useStore, type Store } from "./store";
import { clock, duration, parseDuration, span, type Range } from "./time";
import { traceName } from "./table";
import { Causes, isStack, Stack } from "./cause";
import { AreaPane } from "./area";
import { LatencyPane } from "./latency";
import { NotesPane } from "./notes";
import { PATH, PATH_KEY, pathOf } from "./path";
import { mapOf, ReportHeat } from "./heat-table";
import { isPaired, otherTime } from "./pair";
import { missing, ReportForm } from "./report-form";
import { QUERY, QueryPane } from "./query";
import { ReportTable } from "./report-table";
import { isSaved } from "./saved";

/** A report of the visible range, while that follows a recording, is as old as this at most. */
const REPORT_MS = 10_000;

/* ---- details ---- */

type Leaf = [path: string, value: string | Json[]];

/** All values with their names; structures by dots, elements by brackets. */
function leaves(value: Json, path: string, out: Leaf[]): void {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    const labels = value.labels;
    if (labels && "value" in value) out.push([path, `${show(labels)} (${show(value.value)})`]);
    else for (const [key, one] of Object.entries(value)) leaves(one, path ? `${path}.${key}` : key, out);
  } else {
    out.push([path, typeof value === "string" || isStack(path, value) ? value : show(value)]);
  }
}

const SCOPES = [
  ["fields", "Fields"],
  ["context", "Context"],
  ["event_context", "Context of the event"],
  ["packet", "Packet"],
] as const;

export function DetailsPane({ store }: { store: Store }) {
  const { row, filter } = useStore(store);
  const [details, setDetails] = useState<api.Details | null>(null);
  const [error, setError] = useState("");
  useLater(
    async (signal) => {
      setDetails(null);
      setError("");
      if (row === null) return;
      try {
        setDetails(await api.event(row, filter, signal));
      } catch (reason) {
        if (!signal.aborted) setError((reason as Error).message);
      }
    },
    [row, filter],
    20,
  );
  if (row === null) return <p class="note">Select an event in the table.</p>;
  if (error) return <p class="note error" role="alert">{error}</p>;
  if (!details) return <p class="note">…</p>;
  const { line, event } = details;
  return (
    <div class="details">
      <h2>{line.name}</h2>
      <dl>
        <dt>Time</dt>
        <dd>{line.ns === null ? "none" : `${clock(line.ns)} (${line.ns} ns)`}</dd>
        <dt>Trace</dt>
        <dd>{traceName(store.info.traces[line.trace])}</dd>
        <dt>Stream</dt>
        <dd>{String(event.stream)}</dd>
      </dl>
      <Causes store={store} details={details} />
      {SCOPES.map(([key, title]) => {
        const list: Leaf[] = [];
        if (event[key] === undefined) return null;
        leaves(event[key], "", list);
        return (
          <>
            <h3>{title}</h3>
            <dl>
              {list.map(([path, value]) => (
                <>
                  <dt>{path}</dt>
                  <dd>{typeof value === "string" ? value : <Stack frames={value} />}</dd>
                </>
              ))}
            </dl>
          </>
        );
      })}
    </div>
  );
}

/* ---- reports ---- */

/** Statistics of the range, or one of the reports. */
export function ReportPane({ store }: { store: Store }) {
  const { report } = useStore(store);
  if (report === LATENCY) return <LatencyPane store={store} />;
  if (report === NOTES) return <NotesPane store={store} />;
  if (report === QUERY) return <QueryPane store={store} />;
  return report === AREA ? <AreaPane store={store} /> : <OneReport store={store} />;
}

/** Reports of other programs are about all events. */
async function ask(store: Store, range: Range, signal: AbortSignal, more: api.ReportWords = {}): Promise<api.Report> {
  const { report, filter } = store.state;
  if (!report.startsWith(PROGRAM)) return api.report(report, range, filter, signal, { ...wordsOf(store, range), ...more });
  return api.program(store.programs.indexOf(report.slice(PROGRAM.length)), range, signal);
}

/** What the report heeds of what was chosen. */
function wordsOf(store: Store, range: Range): api.ReportWords {
  const { report, of, choice } = store.state;
  const asks = infoOf(store, report)?.asks ?? "";
  const durations = { least: parseDuration(choice.least) ?? undefined, most: parseDuration(choice.most) ?? undefined };
  if (report === PATH) return { row: Number(of ?? 0), ...durations };
  if (asks === "two") return { comm: choice.comm, ns: isPaired ? otherTime(range.begin) : undefined };
  return {
    ...durations,
    comm: choice.comm,
    of: asks === "of" || asks === "may" ? choice.about : "",
    periods: asks === "periods" || (asks !== "" && choice.about.startsWith("period")) ? choice.periods : "",
  };
}

const infoOf = (store: Store, name: string) => store.info.reports.find((one) => one.name === name);

/** Of another thread: while one looks at a path, selected rows change. */
function OfThread({ store }: { store: Store }) {
  const { of, rows } = useStore(store);
  if (rows.selected === null || rows.selected === of || rows.selected === PATH_KEY) return null;
  return (
    <button class="link" onClick={() => store.setReport(PATH, rows.selected)}>
      The path of the selected row
    </button>
  );
}

function OneReport({ store }: { store: Store }) {
  const state = useStore(store);
  const [answer, setAnswer] = useState<{ of: string; found: api.Report | null; error: string } | null>(null);
  // Not that of the report before, until the new one is asked for.
  const { found, error } = answer?.of === state.report ? answer : { found: null, error: "" };
  const steady = useSteady(store.range, state.follow && !state.selection, REPORT_MS);
  // The reports of a saved page are about all of it.
  const { begin, end } = isSaved && store.info.range ? store.info.range : steady;
  const about = infoOf(store, state.report);
  const lacks = about && !isSaved ? missing(about, state.choice) : "";
  useLater(
    async (signal) => {
      const of = state.report;
      setAnswer(null);
      store.setPath(null);
      if (lacks) return;
      try {
        const found = await ask(store, { begin, end }, signal);
        setAnswer({ of, found, error: "" });
        store.setPath(of === PATH && state.of !== null ? pathOf(found, state.of, { begin, end }) : null);
      } catch (reason) {
        if (!signal.aborted) setAnswer({ of, found: null, error: (reason as Error).message });
      }
    },
    [state.report, state.of, state.choice, begin, end, state.filter, lacks],
    400,
  );
  useEffect(() => () => store.setPath(null), []);
  const isProgram = state.report.startsWith(PROGRAM);
  const summary = isProgram ? found?.reports[0].summary : about?.summary;
  const heat = found ? mapOf(found.reports[0]?.tables ?? []) : null;
  return (
    <div class="report" data-ready={found !== null || error !== "" || lacks !== ""}>
      <h2>{isProgram ? state.report.slice(PROGRAM.length) : state.report}</h2>
      <p class="note">
        {summary && `${summary}. `}
        {isProgram && state.filter && "This report does not know the filter. "}
        {isSaved ? "The range of this page" : state.selection ? "Selected range" : "Visible range"}: {clock(begin)} – {clock(end)} (
        {duration(span({ begin, end }))}).
      </p>
      {state.report === PATH && <OfThread store={store} />}
      {about && <ReportForm store={store} report={about} />}
      {lacks && <p class="note" role="status">{lacks}</p>}
      {error && <p class="note error" role="alert">{error}</p>}
      {!found && !error && !lacks && <p class="note">The report runs …</p>}
      <LossNote store={store} range={{ begin, end }} />
      {heat && <ReportHeat store={store} map={heat} ask={(words, signal) => ask(store, { begin, end }, signal, words)} />}
      {found?.reports.map((report) => (
        <>
          {report.notes.map((note) => (
            <p class="note">{note}</p>
          ))}
          {report.tables.filter((table) => !heat || table.name !== "map").map((table) => (
            <ReportTable table={table} store={store} />
          ))}
        </>
      ))}
    </div>
  );
}
