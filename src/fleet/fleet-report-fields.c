/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-report-fields.h"

#include <ctype.h>
#include <string.h>

#include <kymo/error.h>

static char *report_word(struct ky_arena *arena, const char *prefix, const char *name,
			 const char *suffix)
{
	char *word = ky_arena_printf(arena, "%s%s%s", prefix, name, suffix);

	for (char *at = word; at && *at; at++)
		if (!isalnum((unsigned char)*at) || !isascii((unsigned char)*at))
			*at = '_';
	return word;
}

const char *ky_fleet_report_table_name(struct ky_arena *arena, const char *report,
				       const struct ky_table_def *def)
{
	char *begin = report_word(arena, "report_", report, "_");

	return begin ? report_word(arena, begin, def->name, "") : NULL;
}

bool ky_fleet_report_is_host(const struct ky_column *column)
{
	return column->cls == KY_CELL_TEXT && strcmp(column->name, "host") == 0;
}

struct report_suffix {
	const char *suffix;
	enum ky_fleet_part part;
	bool is_text;
};

static int report_fields_add(struct ky_arena *arena, struct ky_fleet_fields *fields,
			     uint32_t column, const char *name, const struct report_suffix *parts,
			     size_t n)
{
	bool is_taken =
		strcmp(name, "time") == 0 || strcmp(name, "end") == 0 || strcmp(name, "host") == 0;

	for (size_t i = 0; i < n; i++) {
		const struct ky_fleet_field field = {
			column, parts[i].part,
			report_word(arena, is_taken ? "row_" : "", name, parts[i].suffix),
			parts[i].is_text};

		if (!field.name || ky_vec_push(fields, field) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static int report_fields_add_column(struct ky_arena *arena, struct ky_fleet_fields *fields,
				    uint32_t number, const struct ky_column *column)
{
	static const struct report_suffix thread[] = {{"_tid", KY_FLEET_TID, false},
						      {"_pid", KY_FLEET_PID, false},
						      {"_comm", KY_FLEET_COMM, true}};
	static const struct report_suffix interrupt[] = {{"", KY_FLEET_VALUE, true},
							 {"_kind", KY_FLEET_KIND, true},
							 {"_nr", KY_FLEET_NR, false}};
	static const struct report_suffix value[] = {{"", KY_FLEET_VALUE, false}};
	static const struct report_suffix text[] = {{"", KY_FLEET_VALUE, true}};
	static const struct report_suffix ratio[] = {{"_ppm", KY_FLEET_VALUE, false}};
	static const struct report_suffix rate[] = {{"_micro", KY_FLEET_VALUE, false}};

	switch (column->cls) {
	case KY_CELL_PROCESS:
		return report_fields_add(arena, fields, number, column->name, thread, 3);
	case KY_CELL_IRQ:
		return report_fields_add(arena, fields, number, column->name, interrupt, 3);
	case KY_CELL_RATIO:
		return report_fields_add(arena, fields, number, column->name, ratio, 1);
	case KY_CELL_RATE:
		return report_fields_add(arena, fields, number, column->name, rate, 1);
	case KY_CELL_SYSCALL:
	case KY_CELL_DISK:
	case KY_CELL_NETIF:
	case KY_CELL_TEXT:
	case KY_CELL_PATH:
	case KY_CELL_TALLY:
		return report_fields_add(arena, fields, number, column->name, text, 1);
	case KY_CELL_HEAT:
		return KYMO_OK;
	default:
		return report_fields_add(arena, fields, number, column->name, value, 1);
	}
}

int ky_fleet_report_fields(struct ky_arena *arena, const struct ky_table_def *def,
			   struct ky_fleet_fields *fields)
{
	int ret = KYMO_OK;

	for (uint32_t i = 0; i < def->n_columns && !ret; i++)
		if (!ky_fleet_report_is_host(&def->columns[i]))
			ret = report_fields_add_column(arena, fields, i, &def->columns[i]);
	return ret;
}
