/* SPDX-License-Identifier: MIT */
/* Members and their parts: the columns of tables, and what fills them. */
#ifndef KY_ANALYSIS_OVERVIEW_BREAKDOWN_H
#define KY_ANALYSIS_OVERVIEW_BREAKDOWN_H

#include "analysis/reports/report-parts.h"

enum { CAUSE_TEXT, CAUSE_TIME, CAUSE_SHARE, CAUSE_MEMBERS, CAUSE_EACH, CAUSE_SLOW, CAUSE_LONGEST };

enum { WHO_TIME = KY_PART_COLUMNS, WHO_SHARE, WHO_COUNT, WHO_LONGEST, WHO_SLOW };

enum {
	MEAN_CAUSE,
	MEAN_BY,
	MEAN_PARTS,
	MEAN_TIME = MEAN_PARTS + KY_PART_COLUMNS,
	MEAN_SHARE,
	MEAN_COLUMNS
};

enum {
	TOP_NUMBER,
	TOP_BEGIN,
	TOP_END,
	TOP_DURATION,
	TOP_THREAD,
	TOP_WHAT,
	TOP_CAUSE,
	TOP_WHO,
	TOP_PART
};

enum {
	TABLE_CAUSES,
	TABLE_PARTS,
	TABLE_LEVELS,
	TABLE_MEANWHILE,
	TABLE_TOP,
	TABLE_MEMBERS,
	TABLE_LOG
};

/* A run of report breakdown, or of another one on members. */
struct ky_breakdown {
	struct ky_model *model;
	struct ky_cause_members *members;
	struct ky_part_sums causes, parts;
	/* By what members waited for; the list of each waiting cause is one of its own. */
	struct ky_part_sums meanwhile[KY_CAUSES];
	const struct ky_thread **groups;
	uint64_t n_parts, left_out; /* members after KY_PARTS_MAX parts */
};

/* Tables of members, and what fills them: with @longest the longest ones first, at most @limit (0: all). */
extern const struct ky_table_def ky_breakdown_top, ky_breakdown_members;
int ky_breakdown_fill_members(struct ky_breakdown *run, struct ky_table *table,
			      const struct ky_report_options *options,
			      const struct ky_report_result *result, uint64_t limit, bool longest);

/* Explain the members that are wanted: into the sums of @run. Counts of the slowest 1 % and of all are added. */
int ky_breakdown_sum(struct ky_breakdown *run, const struct ky_report_options *options,
		     const struct ky_report_result *result, uint64_t *n_slow, uint64_t *n_all);

/* Of system calls: their time from level to level, down to the device. 0 or a negative status. */
extern const struct ky_table_def ky_breakdown_levels;
int ky_breakdown_fill_levels(struct ky_breakdown *run, const struct ky_report_options *options,
			     struct ky_report_result *result);

/* Notes on what the report could not do. 0 or a negative status. */
int ky_breakdown_note(const struct ky_breakdown *run, struct ky_report_result *result);

/* The hooks of the report: see struct ky_report. */
void *ky_breakdown_begin(struct ky_model *model, const struct ky_report_options *options);
int ky_breakdown_finish(void *run, const struct ky_report_options *options,
			struct ky_report_result *result);
void ky_breakdown_free(void *run);

#endif
