/* SPDX-License-Identifier: MIT */
/* The style and the script of the HTML page. The page allows this script alone, by its hash; a test compares. */
#ifndef KY_ANALYSIS_RENDER_RENDER_HTML_PAGE_H
#define KY_ANALYSIS_RENDER_RENDER_HTML_PAGE_H

/* clang-format off */
static const char page_style[] =
	":root{color-scheme:light dark;--line:#8884;--bar:#3b82c455;--ink:#3b82c4}\n"
	"body{font:14px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1200px;padding:0 16px 48px}\n"
	"h1{font-size:22px;margin:20px 0 4px}h2{margin:36px 0 4px;border-bottom:2px solid var(--line)}h3{margin:24px 0 4px}\n"
	"header p,.help{margin:2px 0 8px;opacity:.75}nav{margin:8px 0}nav a{margin-right:12px}a{color:inherit}\n"
	".notes{background:#d9a40022;border-left:4px solid #d9a400;margin:8px 0;padding:6px 8px 6px 28px}\n"
	".rows{max-height:36em;overflow:auto;border:1px solid var(--line)}\n"
	"table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
	"th{position:sticky;top:0;background:Canvas;text-align:left;cursor:pointer;border-bottom:1px solid var(--line)}\n"
	"th,td{padding:3px 8px;white-space:nowrap;unicode-bidi:isolate}.n{text-align:right}\n"
	"td.t{white-space:normal;overflow-wrap:break-word;max-width:40em}tbody tr:nth-child(even){background:#8881}\n"
	".b{background:linear-gradient(90deg,var(--bar) var(--w),transparent var(--w))}\n"
	".charts{display:flex;flex-wrap:wrap;gap:8px 24px}figure{margin:8px 0;max-width:100%;overflow-x:auto}\n"
	"figcaption{font-weight:600;unicode-bidi:isolate;overflow-wrap:anywhere}\n"
	"svg{display:block}svg text{font-size:10px;fill:currentColor}svg .y{text-anchor:end}\n"
	"svg rect{fill:var(--ink)}svg line{stroke:var(--line)}svg polyline{fill:none;stroke:var(--ink);stroke-width:1.6}\n"
	".legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;padding:0;margin:2px 0}\n"
	".legend li{border-left:12px solid var(--ink);padding-left:6px;unicode-bidi:isolate}\n"
	".c0{--ink:#3b82c4}.c1{--ink:#d1602e}.c2{--ink:#2e9e5b}.c3{--ink:#a350c4}\n"
	".c4{--ink:#c4a000}.c5{--ink:#c43b6b}.c6{--ink:#2ba3a3}.c7{--ink:#7a7a7a}\n"
	"details{margin:6px 0}summary{cursor:pointer}#search{float:right;margin-top:20px;padding:4px}\n"
	"@media print{.rows{max-height:none}#search{display:none}}\n";

static const char page_script[] =
	"'use strict';\n"
	"function value(row, at) {\n"
	"  const cell = row.cells[at], number = cell.dataset.v;\n"
	"  if (number === undefined) return cell.textContent;\n"
	"  return /^-?[0-9]{16,}$/.test(number) ? BigInt(number) : Number(number);\n"
	"}\n"
	"function sort(table, at) {\n"
	"  const body = table.tBodies[0], rows = Array.from(body.rows);\n"
	"  const up = table.dataset.at === String(at) && table.dataset.up !== '1';\n"
	"  rows.sort((a, b) => {\n"
	"    const x = value(a, at), y = value(b, at);\n"
	"    const order = typeof x === 'string' ? x.localeCompare(y) : x < y ? 1 : x > y ? -1 : 0;\n"
	"    return up ? -order : order;\n"
	"  });\n"
	"  table.dataset.at = at;\n"
	"  table.dataset.up = up ? '1' : '0';\n"
	"  body.append(...rows);\n"
	"}\n"
	"document.querySelectorAll('th').forEach(th => th.addEventListener('click', () =>\n"
	"  sort(th.closest('table'), th.cellIndex)));\n"
	"const search = document.getElementById('search');\n"
	"search.hidden = false;\n"
	"search.addEventListener('input', () => {\n"
	"  const wanted = search.value.toLowerCase();\n"
	"  document.querySelectorAll('tbody tr').forEach(tr => {\n"
	"    tr.hidden = !tr.textContent.toLowerCase().includes(wanted);\n"
	"  });\n"
	"});\n";
/* clang-format on */

/* SHA-256 of the script, in base 64. */
#define PAGE_SCRIPT_HASH "Hv4LtzqvG++ikK0GqSUjVcNwHcY1wWLHwAxMdIStwVI="

#endif
