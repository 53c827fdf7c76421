/* SPDX-License-Identifier: MIT */
/* Report heatmap: latency over time. */
#include "analysis/reports/report-list.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/overview/breakdown.h"
#include "analysis/tables/duration-class.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { MAP_ROW, MAP_FROM, MAP_TO, MAP_COUNT, MAP_HEAT };

static const struct ky_column map_columns[] = {
	[MAP_ROW] = {"row", "Row", KY_CELL_NUMBER, "The number of the row, for --cell."},
	[MAP_FROM] =
		{"from", "From", KY_CELL_DURATION,
		 "The shortest duration of the row; there are five rows for each power of ten."},
	[MAP_TO] = {"to", "Below", KY_CELL_DURATION, "The end of the row, not included.",
		    .spare = 1},
	[MAP_COUNT] = {"count", "Count", KY_CELL_COUNT, "How many have such a duration."},
	[MAP_HEAT] =
		{"counts", "Time from left to right", KY_CELL_HEAT,
		 "How many ended in each column of time, darker with more (by the logarithm)."},
};

static const struct ky_table_def map_table = KY_TABLE_DEF(
	"map", "Durations over time",
	"One row for each class of durations, the longest first; table axis has the times of the "
	"columns.",
	map_columns, KY_TABLE_FIXED);

enum { AXIS_BEGIN, AXIS_END, AXIS_COLUMNS, AXIS_WIDTH, AXIS_COUNT, AXIS_P50, AXIS_P99, AXIS_MAX };

static const struct ky_column axis_columns[] = {
	[AXIS_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "Where the first column begins."},
	[AXIS_END] = {"end", "End", KY_CELL_TIMESTAMP, "Where the last column ends."},
	[AXIS_COLUMNS] = {"columns", "Columns", KY_CELL_COUNT, "How many columns there are.",
			  .spare = 1},
	[AXIS_WIDTH] = {"width", "Each", KY_CELL_DURATION, "The time of one column."},
	[AXIS_COUNT] = {"count", "Count", KY_CELL_COUNT, "How many durations the map shows."},
	[AXIS_P50] = {"p50", "p50", KY_CELL_DURATION, "The median of them."},
	[AXIS_P99] = {"p99", "p99", KY_CELL_DURATION, "99 % of them are not longer."},
	[AXIS_MAX] = {"max", "Max", KY_CELL_DURATION, "The longest one."},
};

static const struct ky_table_def axis_table =
	KY_TABLE_DEF("axis", "The columns", "One row.", axis_columns, KY_TABLE_FIXED);

static const struct ky_table_def *const tables[] = {&map_table, &axis_table, &ky_breakdown_top,
						    &ky_breakdown_members, NULL};

enum { HEATMAP_MAP, HEATMAP_AXIS, HEATMAP_TOP, HEATMAP_MEMBERS };

/* ---- the tables ---------------------------------------------------------------------------- */

struct map {
	uint64_t counts[KY_DURATION_CLASSES][KY_HEATMAP_COLUMNS];
	uint64_t sums[KY_DURATION_CLASSES];
	uint64_t most;
	size_t first, last; /* classes that are not empty; first > last: all are */
	struct ky_stats stats;
};

static int report_heatmap_count(struct map *map, const struct ky_breakdown *run,
				const struct ky_report_options *options,
				const struct ky_report_result *result)
{
	int status = 0;

	map->first = KY_DURATION_CLASSES;
	for (size_t i = 0; i < run->members->list.len && status >= 0; i++) {
		const struct ky_cause_member *member = &run->members->list.data[i];
		size_t row = ky_duration_class(ky_cause_member_ns(member));
		size_t column = ky_heatmap_column(result, member->end_ns);

		if (!ky_report_wants_member(options, result, member, i))
			continue;
		if (++map->counts[row][column] > map->most)
			map->most = map->counts[row][column];
		map->sums[row]++;
		map->first = row < map->first ? row : map->first;
		map->last = row > map->last ? row : map->last;
		status = ky_stats_add(&map->stats, ky_cause_member_ns(member));
	}
	return status;
}

static void report_heatmap_fill_map(const struct map *map, struct ky_table *table)
{
	for (size_t i = map->last + 1; i-- > map->first;) {
		struct ky_cell *row = ky_table_row(table);

		ky_cell_u64(&row[MAP_ROW], i);
		ky_cell_u64(&row[MAP_FROM], (uint64_t)(ky_duration_class_ns(i) + 0.999));
		ky_cell_u64(&row[MAP_TO], (uint64_t)(ky_duration_class_ns(i + 1) + 0.999));
		ky_cell_u64(&row[MAP_COUNT], map->sums[i]);
		ky_cell_heat(table, &row[MAP_HEAT], map->counts[i], KY_HEATMAP_COLUMNS, map->most);
	}
}

static void report_heatmap_fill_axis(const struct map *map, struct ky_table *table,
				     const struct ky_report_result *result)
{
	static const double percents[] = {50, 99};
	const struct ky_moments moments = ky_stats_moments(&map->stats);
	struct ky_cell *row = ky_table_row(table);
	uint64_t values[2];

	ky_cell_i64(&row[AXIS_BEGIN], result->begin_ns);
	ky_cell_i64(&row[AXIS_END], result->end_ns);
	ky_cell_u64(&row[AXIS_COLUMNS], KY_HEATMAP_COLUMNS);
	ky_cell_f64(&row[AXIS_WIDTH],
		    (double)ky_ns_between(result->begin_ns, result->end_ns) / KY_HEATMAP_COLUMNS);
	ky_cell_u64(&row[AXIS_COUNT], moments.count);
	if (!moments.count)
		return;
	ky_stats_percentiles(&map->stats, percents, 2, values);
	ky_cell_u64(&row[AXIS_P50], values[0]);
	ky_cell_u64(&row[AXIS_P99], values[1]);
	ky_cell_u64(&row[AXIS_MAX], moments.max);
}

static int report_heatmap_finish(void *data, const struct ky_report_options *options,
				 struct ky_report_result *result)
{
	struct ky_breakdown *run = data;
	struct map *map = calloc(1, sizeof(*map));
	int status = map ? ky_cause_members_end(run->members) : KYMO_E_MEMORY;

	if (status >= 0)
		status = report_heatmap_count(map, run, options, result);
	if (status >= 0 && result->begin_ns != INT64_MIN) {
		report_heatmap_fill_map(map, &result->tables[HEATMAP_MAP]);
		report_heatmap_fill_axis(map, &result->tables[HEATMAP_AXIS], result);
		status = ky_breakdown_fill_members(
			run, &result->tables[HEATMAP_TOP], options, result,
			ky_report_keep(options, &ky_report_heatmap, HEATMAP_TOP), true);
	}
	if (status >= 0 && !result->tables[HEATMAP_MEMBERS].hidden)
		status = ky_breakdown_fill_members(
			run, &result->tables[HEATMAP_MEMBERS], options, result,
			ky_report_keep(options, &ky_report_heatmap, HEATMAP_MEMBERS), false);
	if (map)
		ky_stats_fini(&map->stats);
	free(map);
	if (status >= 0)
		status = ky_report_note_causes(result, run->members->causes);
	return status < 0 ? status : ky_report_note_members(result, run->members);
}

const struct ky_report ky_report_heatmap = {
	.name = "heatmap",
	.summary = "latency over time, as a heat map, with members of cells",
	.description =
		"Draws how long things took over time: system calls, waits for a CPU, requests, "
		"interrupts, periods or spans, as --of selects (see report breakdown). Each "
		"member counts in the column of its end. A row that appears from some time on, a band "
		"that splits in two, and single cells far above the rest show what an average hides.\n"
		"\n"
		"--cell COLUMN,ROW chooses the members of one cell (columns count from 1, rows have their "
		"number in the table); --begin, --end, --min and --max choose any part. Table top "
		"lists the longest ones with their largest part, -t members all of them. 'kymo report "
		"breakdown' with the same options explains them.",
	.events = "As report breakdown.",
	.reading =
		"Columns of time go from left to right, durations upwards. Two bands mean two ways to do "
		"the same, such as a hit and a miss of a cache. A column that is hot at the top means that "
		"something disturbed everything at this time: choose it with --cell or --begin and --end, "
		"and look at the authors in table top.",
	.example =
		"$ kymo report heatmap --of syscall:futex --comm 'worker*' --min 1ms -n 2 my-trace\n"
		"Trace  my-trace\n"
		"Range  2026-11-26 14:45:17.155467638 to 2026-11-26 14:45:17.709708589\n"
		"       554.2 ms, 977380 events\n"
		"\n"
		"Durations over time\n"
		"  Row      From     Below  Count  Time from left to right\n"
		"   39  63.00 ms  100.0 ms      3                                         ░▒\n"
		"   38  40.00 ms  63.00 ms      0\n"
		"   37  25.00 ms  40.00 ms      0\n"
		"   36  16.00 ms  25.00 ms      1                            ░\n"
		"   35  10.00 ms  16.00 ms     18             █    █ █ ░░▒█ ▒\n"
		"   34  6.300 ms  10.00 ms     37         █ ██ █ ██   ▒      ▒██ ██         █\n"
		"\n"
		"The columns\n"
		"               Begin                 End  Columns      Each  Count       p50       p99       Max\n"
		"  14:45:17.155467638  14:45:17.709708589       48  11.55 ms     59  9.372 ms  94.50 ms  94.50 ms\n"
		"\n"
		"The longest\n"
		"  No.               Begin  Duration    TID    PID  Name      What   Mostly           TID  By\n"
		"   54  14:45:17.522737126  94.50 ms  27673  27653  worker-1  futex  blocked: lock  27672  holder\n"
		"   55  14:45:17.523060067  94.49 ms  27674  27653  worker-2  futex  blocked: lock  27672  holder\n"
		"  57 more rows: --limit 0 shows all\n"
		"  --wide shows: Part, End\n",
	.next = "report breakdown --of WHAT|what these durations consist of, and who caused it",
	.tables = tables,
	KY_CAUSES_NEEDS,
	.ignores = KY_IGNORES_BY,
	.whole = true,
	.wants_of = true,
	.begin = ky_breakdown_begin,
	.finish = report_heatmap_finish,
	.free = ky_breakdown_free,
};
