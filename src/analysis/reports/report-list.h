/* SPDX-License-Identifier: MIT */
/* The reports, in the order in which they are listed, the one to begin with first; each is in its report-NAME.c. */
#ifndef KY_ANALYSIS_REPORTS_REPORT_LIST_H
#define KY_ANALYSIS_REPORTS_REPORT_LIST_H

#include "analysis/reports/report.h"

/* A new report is a file and its line here. */
/* clang-format off */
#define KY_REPORT_LIST(X) \
	X(why) \
	X(summary) \
	X(cpu) \
	X(threads) \
	X(sched) \
	X(syscalls) \
	X(syscall_rates) \
	X(io) \
	X(io_latency) \
	X(io_log) \
	X(block) \
	X(net) \
	X(locks) \
	X(signals) \
	X(timers) \
	X(guests) \
	X(memory) \
	X(page_cache) \
	X(irq) \
	X(softirq) \
	X(periods) \
	X(breakdown) \
	X(critical_path) \
	X(heatmap) \
	X(flame) \
	X(calls) \
	X(compare)
/* clang-format on */

#define KY_REPORT_DECLARE(name) extern const struct ky_report ky_report_##name;
KY_REPORT_LIST(KY_REPORT_DECLARE)
#undef KY_REPORT_DECLARE

#endif
