// SPDX-License-Identifier: MIT
// What a person types as a filter or a search, as a filter of the server: "EXPR", "?? TEXT" or "EXPR ?? TEXT".

/** Filters of the table's columns. */
export interface Columns {
  cpu: string; // "0" or "0, 2"
  event: string; // a part of the name, or a pattern
  text: string; // what the fields contain
}

export const NO_COLUMNS: Columns = { cpu: "", event: "", text: "" };

/** Anything with an operator is an expression; else it is a text. */
const isExpression = (words: string) => /[=<>!~]|&&|\|\||\bhas\s*\(|\bin\s*\(|^\s*\(/.test(words);

/** Where "??" is outside of quotes. */
export function splitText(filter: string): [expression: string, text: string] {
  let quote = "";
  for (let i = 0; i < filter.length; i++) {
    const c = filter[i];
    if (quote && c === "\\") i++;
    else if (quote) quote = c === quote ? "" : quote;
    else if ("\"'`".includes(c)) quote = c;
    else if (filter.startsWith("??", i)) return [filter.slice(0, i).trim(), filter.slice(i + 2).trim()];
  }
  return [filter.trim(), ""];
}

/** A text alone becomes "?? TEXT". */
export function toFilter(words: string): string {
  const plain = words.trim();
  return !plain || isExpression(plain) || plain.includes("??") ? plain : `?? ${plain}`;
}

/** The events that match what was typed, and the filters of the columns. */
export function compose(words: string, { cpu, event, text }: Columns): string {
  const [expression, base] = splitText(toFilter(words));
  const cpus = cpu.match(/\d+/g) ?? [];
  const pattern = /[*?]/.test(event) ? event.trim() : `*${event.trim()}*`;
  const parts = [
    event.trim() && `$event =~ "${pattern.replace(/["\\]/g, "\\$&")}"`,
    cpus.length === 1 ? `$cpu == ${cpus[0]}` : cpus.length ? `$cpu in (${cpus.join(", ")})` : "",
  ].filter(Boolean);
  if (expression) parts.unshift(parts.length ? `(${expression})` : expression);
  const contains = text.trim() || base;
  return [parts.join(" && "), contains && `?? ${contains}`].filter(Boolean).join(" ");
}
