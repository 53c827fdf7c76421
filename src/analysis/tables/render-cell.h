/* SPDX-License-Identifier: MIT */
/* Cells for people: numbers with units. */
#ifndef KY_ANALYSIS_TABLES_RENDER_CELL_H
#define KY_ANALYSIS_TABLES_RENDER_CELL_H

#include "analysis/tables/table.h"
#include "base/strbuf.h"

/* A cell as people see it (base/foreign.h): "1.234 ms ", "43.10 %", "-"; of a process its name. */
void ky_render_cell(struct ky_strbuf *out, const struct ky_column *column,
		    const struct ky_cell *cell);
/* "08:18:54.457962321" in local time, with the day before it if @date. */
void ky_render_time(struct ky_strbuf *out, int64_t ns, bool date);
/* "1.234 ms", "17.39 s", "312 ns": four digits that count. */
void ky_render_duration(struct ky_strbuf *out, double ns);

#endif
