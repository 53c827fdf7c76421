// SPDX-License-Identifier: MIT
// What a report is about: members, periods, threads, durations. The words are those of the options of kymo report.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ReportInfo } from "./api";
import { isPaired } from "./pair";
import { isSaved } from "./saved";
import { NO_CHOICE, useStore, type Choice, type Store } from "./store";
import { parseDuration } from "./time";

const FLAME = ["off-cpu", "wakeup", "page-faults", "allocations", "sched_switch"];
const OF = ["syscall:read", "syscall:*", "wakeup", "preemption", "block", "irq", "softirq", "span:NAME", "period:NAME"];
export const IGNORES_DURATION = 2;

/** What is missing before the report can run; "": nothing. */
export function missing({ name, asks }: ReportInfo, { about, periods }: Choice): string {
  if (asks === "two" && !isPaired) return "The report compares two traces. Show both: kymo view --beside A B.";
  if (asks === "periods" && !periods.trim()) return "Define periods: a line for each, with its name, its begin and its end.";
  if (asks === "of" && !about.trim()) return `Choose what ${name} is about, such as syscall:read or wakeup.`;
  return "";
}

function Field(props: { id: string; label: string; hint: string; value: string; list?: string; set: (text: string) => void }) {
  return (
    <label>
      {props.label}{" "}
      <input
        id={props.id}
        list={props.list}
        placeholder={props.hint}
        value={props.value}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => props.set(event.currentTarget.value)}
      />
    </label>
  );
}

function Periods({ value, set }: { value: string; set: (text: string) => void }) {
  return (
    <label class="wide">
      Periods, as --period: NAME : BEGIN : END
      <textarea
        id="report-periods"
        rows={3}
        spellcheck={false}
        placeholder={'sync : $event == "syscall_entry_fsync" : $event == "syscall_exit_fsync"'}
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  );
}

/** A saved page has the report of some things only. */
function SavedChoice({ store, report }: { store: Store; report: ReportInfo }) {
  const { choice } = useStore(store);
  const choices = report.choices ?? [];
  if (choices.length < 2) return null;
  const first = report.name === "flame" ? "samples" : "threads";
  return (
    <label class="choice">
      Of{" "}
      <select id="report-of" value={choices.includes(choice.about) ? choice.about : choices[0]} onChange={(event) => store.set({ choice: { ...NO_CHOICE, about: event.currentTarget.value } })}>
        {choices.map((one) => (
          <option value={one}>{one || first}</option>
        ))}
      </select>
    </label>
  );
}

export function ReportForm({ store, report }: { store: Store; report: ReportInfo }) {
  const { choice } = useStore(store);
  const [own, setOwn] = useState(choice);
  const latest = useRef(choice); // also before the next picture
  const take = (next: Choice) => setOwn((latest.current = next));
  useEffect(() => take(choice), [choice]);
  if (isSaved) return <SavedChoice store={store} report={report} />;
  const asksOf = report.asks === "of" || report.asks === "may";
  const change = (one: Partial<Choice>) => take({ ...latest.current, ...one });
  const apply = (event: Event) => {
    event.preventDefault();
    for (const [id, text] of [["report-least", latest.current.least], ["report-most", latest.current.most]] as const) {
      const input = document.getElementById(id) as HTMLInputElement | null;
      const wrong = input !== null && text.trim() !== "" && parseDuration(text) === null;
      input?.setCustomValidity(wrong ? "Not a duration: try 10ms, 250us or 2s" : "");
      if (wrong) return void input?.reportValidity();
    }
    store.set({ choice: latest.current });
  };
  return (
    <form class="choice" id="report-choice" onSubmit={apply}>
      {asksOf && <Field id="report-of" label="Of" hint={report.name === "flame" ? "samples" : report.asks === "of" ? "syscall:read" : "threads"} list="report-ofs" value={own.about} set={(about) => change({ about })} />}
      {asksOf && (
        <datalist id="report-ofs">
          {(report.name === "flame" ? FLAME : OF).map((one) => (
            <option value={one} />
          ))}
        </datalist>
      )}
      {(report.asks === "periods" || (asksOf && own.about.startsWith("period"))) && <Periods value={own.periods} set={(periods) => change({ periods })} />}
      {!report.of_thread && <Field id="report-comm" label="Threads" hint="all: name or pattern" value={own.comm} set={(comm) => change({ comm })} />}
      {!(report.ignores & IGNORES_DURATION) && <Field id="report-least" label="From" hint="0" value={own.least} set={(least) => change({ least })} />}
      {!(report.ignores & IGNORES_DURATION) && <Field id="report-most" label="to" hint="any duration" value={own.most} set={(most) => change({ most })} />}
      <button type="submit">Apply</button>
      {choice !== NO_CHOICE && (
        <button type="button" onClick={() => store.set({ choice: NO_CHOICE })}>
          Reset
        </button>
      )}
    </form>
  );
}
