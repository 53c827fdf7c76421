/* SPDX-License-Identifier: MIT */
/* How the rows of several traces become one: by what a column is. Names mean the same in all reports. */
#include <string.h>

#include "fleet/fleet-ask-table.h"

static const struct {
	const char *name;
	enum ky_fleet_merge merge;
} merges[] = {
	{"max", KY_FLEET_MOST},
	{"longest", KY_FLEET_MOST},
	{"most", KY_FLEET_MOST},
	{"highest", KY_FLEET_MOST},
	{"peak", KY_FLEET_MOST},
	{"max_queue", KY_FLEET_MOST},
	{"unmeasured_longest", KY_FLEET_MOST},
	/* Two traces of a host have the same threads. */
	{"threads", KY_FLEET_MOST},
	{"cpus", KY_FLEET_MOST},
	{"waiters", KY_FLEET_MOST},
	{"members", KY_FLEET_MOST},
	{"min", KY_FLEET_LEAST},
	{"lowest", KY_FLEET_LEAST},
	{"avg", KY_FLEET_MEAN},
	{"mean", KY_FLEET_MEAN},
	{"mean_queue", KY_FLEET_OVER_TIME},
	{"usage", KY_FLEET_OVER_TIME},
	{"known", KY_FLEET_OVER_TIME},
	{"net", KY_FLEET_SUM},
	{"from", KY_FLEET_KEY},
	{"to", KY_FLEET_KEY},
	{"member", KY_FLEET_KEY},
	/* How much memory there is at a time. */
	{"first", KY_FLEET_ONLY},
	{"last", KY_FLEET_ONLY},
	{"size", KY_FLEET_ONLY},
	{"free", KY_FLEET_ONLY},
	{"available", KY_FLEET_ONLY},
	{"buffers", KY_FLEET_ONLY},
	{"cached", KY_FLEET_ONLY},
	{"anonymous", KY_FLEET_ONLY},
	{"shared", KY_FLEET_ONLY},
	{"swap", KY_FLEET_ONLY},
	{"swap_size", KY_FLEET_ONLY},
	{"swap_free", KY_FLEET_ONLY},
	{"prio", KY_FLEET_ONLY},
	{"stdev", KY_FLEET_ONLY},
	{"slow", KY_FLEET_ONLY},
	{"each", KY_FLEET_ONLY},
	{"factor", KY_FLEET_ONLY},
	{"share", KY_FLEET_ONLY},
};

static bool is_percentile(const char *name)
{
	return name[0] == 'p' && name[1] >= '0' && name[1] <= '9';
}

static enum ky_fleet_merge merge_of_class(const struct ky_column *column)
{
	switch (column->cls) {
	case KY_CELL_COUNT:
	case KY_CELL_DURATION:
	case KY_CELL_SIZE:
		return KY_FLEET_SUM;
	case KY_CELL_RATE:
		return KY_FLEET_OVER_TIME;
	case KY_CELL_TIMESTAMP:
		return strcmp(column->name, "begin") == 0 ? KY_FLEET_LEAST
		       : strcmp(column->name, "end") == 0 ? KY_FLEET_MOST
							  : KY_FLEET_ONLY;
	case KY_CELL_RATIO:
		return KY_FLEET_ONLY;
	case KY_CELL_TALLY:
		return KY_FLEET_TALLY;
	default:
		return KY_FLEET_KEY;
	}
}

static bool merge_is_number(enum ky_cell_class cls)
{
	return cls == KY_CELL_COUNT || cls == KY_CELL_NUMBER || cls == KY_CELL_DURATION ||
	       cls == KY_CELL_RATIO || cls == KY_CELL_RATE || cls == KY_CELL_SIZE;
}

enum ky_fleet_merge ky_fleet_merge_of(const struct ky_table_def *def, size_t i)
{
	const struct ky_column *column = &def->columns[i];
	enum ky_fleet_merge merge = merge_of_class(column);

	if (column->group)
		return KY_FLEET_KEY;
	if (merge_is_number(column->cls) && is_percentile(column->name))
		return KY_FLEET_ONLY;
	for (size_t n = 0; n < sizeof(merges) / sizeof(*merges) && merge_is_number(column->cls);
	     n++)
		if (strcmp(merges[n].name, column->name) == 0)
			merge = merges[n].merge;
	if (merge != KY_FLEET_MEAN)
		return merge;
	/* A mean of a rate is one over time; without numbers, means of several traces have none. */
	if (column->cls == KY_CELL_RATE)
		return KY_FLEET_OVER_TIME;
	return ky_fleet_count_column(def) >= 0 ? KY_FLEET_MEAN : KY_FLEET_ONLY;
}

int ky_fleet_count_column(const struct ky_table_def *def)
{
	static const char *const names[] = {"count", "calls", "waits", "requests", "packets"};

	for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
		int i = ky_table_column(def, names[n]);

		if (i >= 0 && def->columns[i].cls == KY_CELL_COUNT)
			return i;
	}
	return -1;
}
