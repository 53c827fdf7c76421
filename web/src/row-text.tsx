// SPDX-License-Identifier: MIT
// The fields of an event in its row. The text has the order of kymo print: contexts, then the event's own fields.
// The own fields differ from row to row, so they are the first that one sees.

/** Where the last structure of @text begins: the event's own fields. */
function ownFieldsAt(text: string): number {
  let at = 0;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === "\\") i++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === "{" || c === "[") {
      if (c === "{" && depth === 0) at = i;
      depth++;
    } else if (c === "}" || c === "]") depth--;
  }
  return at;
}

export function RowText({ text }: { text: string | undefined }) {
  const shown = text?.slice(0, 2000) ?? "";
  const at = ownFieldsAt(shown);
  const cpu = /^\{ cpu_id = \d+ \}, /.exec(shown.slice(0, at))?.[0] ?? ""; // the column CPU has it
  const contexts = shown.slice(cpu.length, at).replace(/, $/, "");
  return (
    <span role="gridcell" class="row-text" title={shown}>
      <span class="elsewhere">{cpu}</span>
      <span class="contexts">{contexts}</span>
      <span class="elsewhere">{shown.slice(cpu.length + contexts.length, at)}</span>
      <span class="own">{shown.slice(at)}</span>
    </span>
  );
}
