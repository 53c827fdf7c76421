/* SPDX-License-Identifier: MIT */
/* kymo report --archive: a trace, its reports and facts about the machine in one file. */
#ifndef KY_CLI_REPORT_REPORT_ARCHIVE_H
#define KY_CLI_REPORT_REPORT_ARCHIVE_H

#include <kymo/error.h>

enum ky_archive_form { KY_ARCHIVE_TEXT, KY_ARCHIVE_JSON, KY_ARCHIVE_HTML, KY_ARCHIVE_FORMS };

struct ky_archive_request {
	const char *path;  /* of the archive */
	const char *trace; /* a directory */
	const char *event; /* a trigger's firing, in JSON; NULL: none */
	/* Writes the reports to the standard output; returns an exit code. */
	int (*report)(void *data, enum ky_archive_form form);
	void *data;
};

/* Returns an exit code. Reports that fail are a warning; the archive then has none. */
int ky_report_archive(const struct ky_archive_request *request);

#endif
