/* SPDX-License-Identifier: MIT */
/* Pages of systrace (Android, Chrome OS), which have ftrace's text in them. */
#include <ctype.h>

#include "import/logs/log-ftrace-calls.h"

static bool systrace_begins(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && strncasecmp(text, with, strlen(with)) == 0;
}

static bool systrace_probe(const char *head, size_t len)
{
	static const char *const signs[] = {"trace-data", "trace_viewer", "trace-viewer",
					    "Android System Trace", "linuxPerfData"};

	while (len && isspace((unsigned char)*head)) {
		head++;
		len--;
	}
	if (!systrace_begins(head, len, "<!DOCTYPE") && !systrace_begins(head, len, "<html"))
		return false;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (memmem(head, len, signs[i], strlen(signs[i])))
			return true;
	return false;
}

/* Old pages have lines of a string in JavaScript: "...\n\". */
static size_t systrace_line(const char *text, size_t len)
{
	return len > 3 && memcmp(text + len - 3, "\\n\\", 3) == 0 ? len - 3 : len;
}

/* The text between <script class="trace-data"> and </script>, or behind linuxPerfData. */
static int systrace_file(struct ky_log_file *log)
{
	bool is_data = false, has_data = false;
	const char *line;
	size_t len;
	int ret;

	while ((ret = ky_log_next_line(log, &line, &len)) > 0) {
		if (!is_data) {
			is_data = memmem(line, len, "class=\"trace-data\"", 18) ||
				  memmem(line, len, "linuxPerfData = \"", 17);
			has_data |= is_data;
			continue;
		}
		if (memmem(line, len, "</script>", 9)) {
			is_data = false;
			continue;
		}
		ret = ky_log_ftrace.line(log, line, systrace_line(line, len));
		if (ret < 0)
			return ret;
	}
	if (!ret && !has_data)
		return ky_foreign_bad(&log->file, 0, "the page has no trace", log->err);
	return ret;
}

const struct ky_log_format ky_log_systrace = {
	.name = "systrace",
	.description = "ftrace's text in a page of systrace (Android, Chrome OS)",
	.domain = "kernel",
	.context = ky_ftrace_context,
	.n_context = KY_FTRACE_CONTEXT,
	.has_cpus = true,
	.probe_head = systrace_probe,
	.file = systrace_file,
};
