// SPDX-License-Identifier: MIT
// Statements of SQL about the range in sight. Their rows lead to the picture, as those of reports do.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { ReportTable } from "./report-table";
import { useStore, type Store } from "./store";

/** A value of the choice of reports. */
export const QUERY = "?sql";

const FIRST = `SELECT time, "end", duration, name, tid, comm
FROM syscall
WHERE time BETWEEN :begin AND :end
ORDER BY duration DESC`;

/** It stays while other reports are in its place. */
let last = FIRST;

export function QueryPane({ store }: { store: Store }) {
  const state = useStore(store);
  const [text, setText] = useState(last);
  const [answer, setAnswer] = useState<{ found: api.Report | null; error: string }>({ found: null, error: "" });
  const [runs, setRuns] = useState<AbortController | null>(null);
  const running = useRef<AbortController | null>(null);
  // The server ends a statement whose page has gone.
  useEffect(() => () => running.current?.abort(), []);
  const run = async () => {
    running.current?.abort();
    const mine = new AbortController();
    running.current = mine;
    setRuns(mine);
    setAnswer({ found: null, error: "" });
    last = text;
    try {
      setAnswer({ found: await api.query(text, state.selection ?? state.view, mine.signal), error: "" });
    } catch (reason) {
      if (!mine.signal.aborted) setAnswer({ found: null, error: (reason as Error).message });
    }
    setRuns((now) => (now === mine ? null : now));
  };
  return (
    <div class="report" data-ready={runs === null}>
      <h2>SQL</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <textarea
          id="sql"
          aria-label="Statement"
          rows={6}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !event.ctrlKey) return;
            event.preventDefault();
            void run();
          }}
        />
        <button id="run-sql">Run (Ctrl + Enter)</button>
        {runs && (
          <button type="button" onClick={() => runs.abort()}>
            Stop
          </button>
        )}
      </form>
      <p class="note">:begin and :end are the range in sight, or the selected one. docs/sql.md explains the tables.</p>
      {answer.error && <p class="note error" role="alert">{answer.error}</p>}
      {runs && <p class="note">The statement runs …</p>}
      {answer.found?.reports.map((report) => report.tables.map((table) => <ReportTable table={table} store={store} />))}
    </div>
  );
}
