/* SPDX-License-Identifier: MIT */
#include "cli/report/report-archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/version.h>

#include "base/error.h"
#include "cli/report/report-stacks.h"
#include "cli/terminal/command.h"
#include "import/archive/archive.h"
#include "os/file.h"

#define FACT_BYTES_MAX (256u << 10)

/* What describes the machine and its kernel. */
static const char *const facts[] = {
	"/proc/version",	 "/proc/cmdline",   "/proc/uptime",	  "/proc/loadavg",
	"/proc/meminfo",	 "/proc/cpuinfo",   "/proc/pressure/cpu", "/proc/pressure/io",
	"/proc/pressure/memory", "/etc/os-release",
};

/* ---- the facts ------------------------------------------------------------------------- */

static int report_archive_add_machine(struct ky_archive *archive, const char *top,
				      struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char name[PATH_MAX];
	int ret;

	ky_strbuf_addf(&text, "kymo %s\n", KYMO_VERSION);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		struct ky_strbuf file = KY_STRBUF_INIT;

		if (ky_read_file(AT_FDCWD, facts[i], FACT_BYTES_MAX, &file) == 0)
			ky_strbuf_addf(&text, "\n==> %s <==\n%s", facts[i], ky_strbuf_text(&file));
		ky_strbuf_fini(&file);
	}
	snprintf(name, sizeof(name), "%.200s/report/machine.txt", top);
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : ky_archive_add(archive, name, text.data, text.len, err);
	ky_strbuf_fini(&text);
	return ret;
}

static int report_archive_add_event(struct ky_archive *archive, const char *top, const char *event,
				    struct kymo_error *err)
{
	struct ky_strbuf stacks = KY_STRBUF_INIT, line = KY_STRBUF_INIT;
	char name[PATH_MAX];
	int ret;

	if (!event)
		return KYMO_OK;
	snprintf(name, sizeof(name), "%.200s/report/trigger.json", top);
	ky_strbuf_addf(&line, "%s\n", event);
	ret = ky_archive_add(archive, name, ky_strbuf_text(&line), line.len, err);
	ky_report_stacks(&stacks, event);
	snprintf(name, sizeof(name), "%.200s/report/stacks.txt", top);
	if (!ret && stacks.len)
		ret = ky_archive_add(archive, name, stacks.data, stacks.len, err);
	ky_strbuf_fini(&stacks);
	ky_strbuf_fini(&line);
	return ret;
}

/* ---- the reports ----------------------------------------------------------------------- */

/* What the reports write to the standard output goes to @fd. */
static int report_archive_capture(const struct ky_archive_request *request,
				  enum ky_archive_form form, int fd)
{
	int saved, code;

	fflush(stdout);
	saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (saved < 0 || dup2(fd, STDOUT_FILENO) < 0)
		return KY_EXIT_FAIL;
	code = request->report(request->data, form);
	fflush(stdout);
	(void)dup2(saved, STDOUT_FILENO);
	close(saved);
	return code;
}

static int report_archive_add_reports(struct ky_archive *archive,
				      const struct ky_archive_request *request, const char *top,
				      struct kymo_error *err)
{
	static const char *const names[KY_ARCHIVE_FORMS] = {
		[KY_ARCHIVE_TEXT] = "report.txt",
		[KY_ARCHIVE_JSON] = "report.json",
		[KY_ARCHIVE_HTML] = "report.html",
	};
	char name[PATH_MAX];
	int ret = KYMO_OK;

	for (int form = 0; form < KY_ARCHIVE_FORMS && !ret; form++) {
		int fd = memfd_create("kymo-report", MFD_CLOEXEC);

		if (fd < 0)
			return ky_error_errno(err, errno, "cannot keep the reports in memory");
		snprintf(name, sizeof(name), "%.200s/report/%s", top, names[form]);
		if (report_archive_capture(request, (enum ky_archive_form)form, fd) == KY_EXIT_OK)
			ret = ky_archive_add_file(archive, name, fd, err);
		else
			form = KY_ARCHIVE_FORMS;
		close(fd);
	}
	return ret;
}

/* The last part of the trace's path: the directory in the archive. */
static void name_top(const char *trace, char top[PATH_MAX])
{
	char real[PATH_MAX];
	const char *name = realpath(trace, real) ? strrchr(real, '/') : NULL;

	snprintf(top, PATH_MAX, "%.200s", name && name[1] ? name + 1 : "trace");
}

/* A file of another format, or standard input, is no trace that an archive can have. */
static int report_archive_check(const char *trace, struct kymo_error *err)
{
	struct stat st;

	if (stat(trace, &st) == 0 ? S_ISDIR(st.st_mode) : strcmp(trace, "-") != 0)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID,
		     "cannot make an archive: this is not the directory of a trace");
	ky_error_path(err, trace);
	ky_error_hint(err, "'kymo convert -o DIRECTORY' makes a trace of it");
	return KYMO_E_INVALID;
}

int ky_report_archive(const struct ky_archive_request *request)
{
	struct ky_archive *archive;
	struct kymo_error err;
	char top[PATH_MAX];
	int ret = report_archive_check(request->trace, &err);

	if (!ret)
		ret = ky_archive_create(request->path, &archive, &err);
	if (ret < 0)
		return ky_cli_error(&err);
	name_top(request->trace, top);
	/* What matters comes first. */
	ret = report_archive_add_event(archive, top, request->event, &err);
	if (!ret)
		ret = report_archive_add_machine(archive, top, &err);
	if (!ret)
		ret = report_archive_add_reports(archive, request, top, &err);
	if (!ret)
		ret = ky_archive_add_tree(archive, top, request->trace, &err);
	if (ret < 0)
		ky_archive_discard(archive);
	else
		ret = ky_archive_close(archive, &err);
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}
