/* SPDX-License-Identifier: MIT */
/* What syslog and the kernel's log have in common. Threads: any. */
#ifndef KY_IMPORT_LOG_SYSLOG_H
#define KY_IMPORT_LOG_SYSLOG_H

/* "<34>" at *@at, which goes behind it: facility * 8 + severity. -1: none is there. */
int ky_syslog_priority(const char **at, const char *end);
/* "error" */
const char *ky_syslog_severity(int priority);

#endif
