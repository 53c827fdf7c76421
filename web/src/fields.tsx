// SPDX-License-Identifier: MIT
// The form that adds a field of an event as a curve.
import { useState } from "preact/hooks";
import * as api from "./api";
import { useLater, useStore, type Store } from "./store";

export function FieldForm({ store }: { store: Store }) {
  const { rows } = useStore(store);
  const [text, setText] = useState("");
  const [known, setKnown] = useState<string[]>([]);
  const [wrong, setWrong] = useState(false);
  useLater(async (signal) => setKnown(await api.fields(signal).catch(() => [])), [store.generation], 300);
  const add = (event: Event) => {
    event.preventDefault();
    const field = text.trim();
    const is = /^[^"\\]+\.[^."\\]+$/.test(field);
    setWrong(!is);
    if (!is) return;
    if (!rows.fields.includes(field)) store.setRows({ fields: [...rows.fields, field] });
    setText("");
  };
  return (
    <form onSubmit={add}>
      <input
        id="row-field"
        type="text"
        list="row-fields"
        aria-label="Add a field of an event as a curve: EVENT.FIELD"
        aria-invalid={wrong}
        placeholder="Curve (C): EVENT.FIELD"
        maxLength={400}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <datalist id="row-fields">
        {known.map((field) => (
          <option value={field} />
        ))}
      </datalist>
    </form>
  );
}
