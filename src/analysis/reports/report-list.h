/* SPDX-License-Identifier: MIT */
/* The reports; each in its report-NAME.c. A new one also gets its row in ky_reports[]. */
#ifndef KY_ANALYSIS_REPORTS_REPORT_LIST_H
#define KY_ANALYSIS_REPORTS_REPORT_LIST_H

#include "analysis/reports/report.h"

extern const struct ky_report ky_report_block;
extern const struct ky_report ky_report_cpu;
extern const struct ky_report ky_report_io;
extern const struct ky_report ky_report_io_latency;
extern const struct ky_report ky_report_io_log;
extern const struct ky_report ky_report_irq;
extern const struct ky_report ky_report_locks;
extern const struct ky_report ky_report_memory;
extern const struct ky_report ky_report_net;
extern const struct ky_report ky_report_periods;
extern const struct ky_report ky_report_sched;
extern const struct ky_report ky_report_softirq;
extern const struct ky_report ky_report_summary;
extern const struct ky_report ky_report_syscall_rates;
extern const struct ky_report ky_report_syscalls;
extern const struct ky_report ky_report_threads;

#endif
