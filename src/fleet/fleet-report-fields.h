/* SPDX-License-Identifier: MIT */
/* The columns that a report's table has in a store, for those who fill it and those who ask it. Threads: any. */
#ifndef KY_FLEET_FLEET_REPORT_FIELDS_H
#define KY_FLEET_FLEET_REPORT_FIELDS_H

#include "analysis/tables/table.h"
#include "base/arena.h"
#include "base/vec.h"

/* What of a cell: a thread and an interrupt take several columns. */
enum ky_fleet_part {
	KY_FLEET_VALUE,
	KY_FLEET_TID,
	KY_FLEET_PID,
	KY_FLEET_COMM,
	KY_FLEET_KIND, /* of an interrupt */
	KY_FLEET_NR,
};

/* A column of the store. */
struct ky_fleet_field {
	uint32_t column; /* of the report's table */
	enum ky_fleet_part part;
	const char *name;
	bool is_text;
};

KY_VEC_TYPE(ky_fleet_fields, struct ky_fleet_field);

/* Ratios and rates are integers there: millionths. */
#define KY_FLEET_MILLION 1e6

/* "report_NAME_TABLE", in @arena. NULL: out of memory. */
const char *ky_fleet_report_table_name(struct ky_arena *arena, const char *report,
				       const struct ky_table_def *def);
/*
 * Appends the store's columns for the columns of @def, in the same order. The caller adds "time", "end" and "host" itself, so a column "host" of
 * @def gets no second one. The names are in @arena. 0 or KYMO_E_MEMORY.
 */
int ky_fleet_report_fields(struct ky_arena *arena, const struct ky_table_def *def,
			   struct ky_fleet_fields *fields);
/* Is @column the host of the row, where a report has several? */
bool ky_fleet_report_is_host(const struct ky_column *column);

#endif
