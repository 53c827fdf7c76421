// SPDX-License-Identifier: MIT
// Reports of a saved page: they ran when the page was written. Those on causes are there once for each thing that they are about.
import type { Json } from "./json";
import { savedPath } from "./saved-path";

type Fields = { [key: string]: Json };
type Words = { [key: string]: string | number | bigint };

const PATH = "critical-path";

const hasRows = (report: Fields) => (report.tables as Fields[]).some((table) => (table.rows as Json[]).length > 0);

/** Of a cell of a map, or of a class of durations: the members that the page has. */
function cellOf(report: Fields, words: Words): Fields {
  const tables = report.tables as Fields[];
  const axis = (tables.find((table) => table.name === "axis")?.rows as Fields[] | undefined)?.[0];
  const map = (tables.find((table) => table.name === "map")?.rows ?? []) as Fields[];
  const top = tables.find((table) => table.name === "top");
  if (!axis || !top) return report;
  const [column, kind] = String(words.cell ?? "").split(",").map(Number);
  const row = map.find((one) => Number(one.row) === kind);
  const [least, most] = row ? [Number(row.from), Number(row.to) - 1] : [Number(words.least ?? 0), Number(words.most ?? Infinity)];
  const begin = BigInt(axis.begin as number);
  const width = Number(axis.width);
  const isIn = (member: Fields) => {
    const ns = Number(member.duration);
    const at = Math.floor(Number(BigInt(member.end as number) - begin) / width);
    return ns >= least && ns <= most && (!row || Math.min(at, Number(axis.columns) - 1) === column - 1);
  };
  const rows = (top.rows as Fields[]).filter(isIn);
  return { ...report, notes: [`The page has the ${(top.rows as Json[]).length} longest of ${axis.count} members.`], tables: [{ ...top, omitted: 0, rows }] };
}

export class SavedReports {
  private known = new Map<string, Fields>();

  constructor(private readonly section: (name: string) => Json) {}

  private all(name: string): Fields {
    let found = this.known.get(name);
    if (!found) this.known.set(name, (found = (this.section(name) ?? { reports: [] }) as Fields));
    return found;
  }

  private ofs(): string[] {
    return (this.section("ofs") ?? []) as string[];
  }

  /** What a report is about in this page, the first one by default. */
  private variants(name: string): [of: string, report: Fields][] {
    const reports = this.all("causes").reports as Fields[];
    const own = this.ofs().map((of, i) => [of, reports[i]] as [string, Fields]).filter(([, report]) => report?.name === name);
    const full = own.filter(([, report]) => hasRows(report));
    return full.length ? full : own.slice(0, 1);
  }

  /** The reports of the list that are there; those that one can choose of have their choices. */
  listed(all: Fields[]): Fields[] {
    const plain = new Set((this.all("reports").reports as Fields[]).map((one) => one.name));
    const paths = this.ofs().length > (this.all("causes").reports as Json[]).length;
    return all.flatMap((one) => {
      const variants = this.variants(String(one.name));
      if (variants.length) return [{ ...one, choices: variants.map(([of]) => of) }];
      return plain.has(one.name) || (one.name === PATH && paths) ? [one] : [];
    });
  }

  report(words: Words, tidOf: (row: number) => number | null): Fields {
    const name = String(words.name);
    if (name === PATH) {
      const tid = words.row === undefined ? null : tidOf(Number(words.row));
      if (tid === null) throw new Error("the report is about a thread; select one");
      const all = this.all("path");
      return { ...all, reports: [savedPath((all.reports as Fields[])[0], tid)] };
    }
    const variants = this.variants(name);
    if (!variants.length) {
      const all = this.all("reports");
      return { ...all, reports: (all.reports as Fields[]).filter((one) => one.name === name) };
    }
    const found = (variants.find(([of]) => of === String(words.of ?? "")) ?? variants[0])[1];
    const isCell = words.cell !== undefined || words.least !== undefined;
    return { ...this.all("causes"), reports: [isCell ? cellOf(found, words) : found] };
  }
}
