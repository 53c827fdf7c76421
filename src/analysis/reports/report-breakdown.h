/* SPDX-License-Identifier: MIT */
/* Report breakdown: the columns of its tables, and what fills them. */
#ifndef KY_ANALYSIS_REPORTS_REPORT_BREAKDOWN_H
#define KY_ANALYSIS_REPORTS_REPORT_BREAKDOWN_H

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
	LOG_NUMBER,
	LOG_BEGIN,
	LOG_END,
	LOG_DURATION,
	LOG_THREAD,
	LOG_PARTS,
	LOG_CPU = LOG_PARTS + KY_PART_COLUMNS
};

enum { TABLE_CAUSES, TABLE_PARTS, TABLE_MEANWHILE, TABLE_TOP, TABLE_MEMBERS, TABLE_LOG };

/* The hooks of the report: see struct ky_report. */
void *ky_breakdown_begin(struct ky_model *model, const struct ky_report_options *options);
int ky_breakdown_finish(void *run, const struct ky_report_options *options,
			struct ky_report_result *result);
void ky_breakdown_free(void *run);

#endif
