// SPDX-License-Identifier: MIT
// Filters of the table's columns.
import { useEffect, useState } from "preact/hooks";
import type { Columns as Values } from "./filters";
import { useStore, type Store } from "./store";

const DELAY_MS = 400;

function Field({ store, name, label, hint }: { store: Store; name: keyof Values; label: string; hint: string }) {
  const { columns } = useStore(store);
  const [text, setText] = useState(columns[name]);
  useEffect(() => setText(columns[name]), [columns[name]]);
  const use = () => {
    if (text !== columns[name]) store.setFilter(store.state.base, { ...store.state.columns, [name]: text });
  };
  useEffect(() => {
    const timer = window.setTimeout(use, DELAY_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <span>
      <input
        id={`column-${name}`}
        aria-label={label}
        placeholder={hint}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && use()}
      />
    </span>
  );
}

export function Columns({ store, several }: { store: Store; several: boolean }) {
  return (
    <div class="line filters" role="group" aria-label="Filters of the columns">
      <span />
      <span />
      {several && <span />}
      <Field store={store} name="cpu" label="CPUs" hint="CPU" />
      <Field store={store} name="event" label="Part of the event's name" hint="name" />
      <Field store={store} name="text" label="What the fields contain" hint="fields contain" />
    </div>
  );
}
