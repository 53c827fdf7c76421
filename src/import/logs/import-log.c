/* SPDX-License-Identifier: MIT */
/* Logs: the lines of a file, by the format that the user names or that is plain. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "import/common/import-internal.h"
#include "import/common/import.h"
#include "import/logs/log-format.h"
#include "import/logs/log-regex.h"

static int import_log_run(struct ky_log_file *log)
{
	const char *line;
	size_t len;
	int ret;

	if (log->format->file)
		return log->format->file(log);
	while ((ret = ky_log_next_line(log, &line, &len)) > 0) {
		ret = log->format->line(log, line, len);
		if (ret == 0 && len)
			ret = ky_log_stray(log, line, len);
		if (ret < 0)
			break;
	}
	return ret < 0 ? ret : KYMO_OK;
}

/* When the file was modified. The unpacked content of a compressed file is new, the file is not. */
static int64_t import_log_modified(const struct ky_log_file *log)
{
	struct stat st;

	if (stat(log->file.path, &st) == 0 && S_ISREG(st.st_mode))
		return st.st_mtime;
	return fstat(log->file.fd, &st) == 0 ? (int64_t)st.st_mtime : (int64_t)time(NULL);
}

static uint64_t import_log_begins(struct ky_log_file *log)
{
	const uint8_t *head =
		log->file.size_bytes < KY_LOG_BOM_BYTES
			? NULL
			: ky_foreign_bytes(&log->file, 0, KY_LOG_BOM_BYTES, "the head", NULL);

	return head && ky_log_has_bom(head, KY_LOG_BOM_BYTES) ? KY_LOG_BOM_BYTES : 0;
}

static int import_log_begin(struct ky_log_file *log, struct ky_packet_store *store,
			    const struct ky_import_options *options)
{
	const struct ky_maker_about about = {
		.path = "log",
		.name = log->name,
		.domain = log->format->domain ? log->format->domain : "log",
		.tracer = log->format->name,
		.clock = "log",
		.description = "times as the log's lines have them",
		.context = log->format->context,
		.n_context = log->format->n_context,
		.reorders = !log->format->has_cpus,
		.has_cpus = log->format->has_cpus,
	};
	int ret;

	log->time_format = options ? options->time_format : NULL;
	log->clock.now_s = import_log_modified(log);
	log->at = import_log_begins(log);
	ret = ky_maker_open(&log->maker, store, &about, log->err);
	if (!ret && log->format->begin)
		ret = log->format->begin(log);
	return ret;
}

/* What a reader of the trace cannot see. */
static void import_log_warn(const struct ky_log_file *log, uint64_t n_moved,
			    const struct ky_log *to)
{
	const char *path = log->file.path;

	if (log->n_strange)
		ky_log_warning(to,
			       "%s: %" PRIu64 " of %" PRIu64
			       " lines are not of the format \"%s\": they are events \"line\"",
			       path, log->n_strange, log->line_number, log->format->name);
	if (log->n_cut)
		ky_log_warning(to, "%s: %" PRIu64 " lines are longer than 1 MiB and were cut", path,
			       log->n_cut);
	if (log->n_shortened)
		ky_log_warning(
			to,
			"%s: %" PRIu64
			" events have more than 255 KiB, 256 fields or 1024 functions: the rest was cut off",
			path, log->n_shortened);
	if (log->n_early)
		ky_log_warning(to, "%s: %" PRIu64 " events have a time below 0 and were put at 0",
			       path, log->n_early);
	if (log->n_timeless)
		ky_log_warning(
			to,
			"%s: %" PRIu64
			" events have no time that Kymo knows: they have the time of the event before%s",
			path, log->n_timeless,
			log->format == &ky_log_ftrace
				? ""
				: "; a log format with a group 'time' may find it");
	if (log->hole_bytes)
		ky_log_warning(to, "%s: %" PRIu64 " bytes before lines are zeros: no lines", path,
			       log->hole_bytes);
	if (log->is_untimed)
		ky_log_warning(to,
			       "%s: the lines have no times, which strace -ttt -T would write: "
			       "times here add up the durations of each thread's calls",
			       path);
	else if (log->n_unmeasured)
		ky_log_warning(
			to,
			"%s: %" PRIu64
			" system calls have no duration, which strace -T would write: their events of "
			"entry have the results, and reports count these calls as not measured",
			path, log->n_unmeasured);
	if (n_moved)
		ky_log_warning(to,
			       "%s: %" PRIu64
			       " events are earlier than those before them, and have their time",
			       path, n_moved);
}

static int import_log_finish(struct ky_log_file *log, int ret, const struct ky_log *to,
			     struct kymo_error *broken)
{
	struct ky_maker *maker = log->maker;
	struct kymo_error *err = log->err;
	uint64_t n_moved;

	/* The last event of some formats ends with the file. */
	if (log->format->end)
		log->format->end(log);
	if (!log->has_event && maker && ky_log_stray_flush(log, log->last_ns) < 0 && !ret)
		ret = err->code;
	/* Lines before the break are events. */
	if ((ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT) &&
	    (ky_maker_events(maker) || log->late.events.len)) {
		*broken = *err;
		ky_error_clear(err);
		ret = KYMO_OK;
	}
	if (ret >= 0)
		ret = ky_log_late_flush(&log->late, maker, err);
	n_moved = maker ? ky_maker_moved(maker) : 0;
	log->maker = NULL;
	if (ret < 0)
		(void)ky_maker_close(maker, NULL);
	else
		ret = ky_maker_close(maker, err);
	if (!ret)
		import_log_warn(log, n_moved, to);
	return ret;
}

static int import_log_file(const struct ky_import *imports, const char *path,
			   struct ky_packet_store *store, const struct ky_log_format *format,
			   struct ky_log_regex *regex, const struct ky_import_options *options,
			   const struct ky_log *to, struct kymo_error *broken,
			   struct kymo_error *err)
{
	struct ky_log_file log = {.format = format, .is_log = true, .err = err};
	int ret;

	ky_arena_init(&log.arena);
	ky_map_init(&log.classes);
	ky_strbuf_init(&log.unescaped);
	ky_strbuf_init(&log.joined);
	ky_strbuf_init(&log.early);
	log.state = regex;
	log.name = imports->member ? imports->member : path;
	ret = ky_foreign_open(&log.file, path, imports->unpacked_fd, err);
	if (!ret)
		ret = import_log_begin(&log, store, options);
	if (!ret)
		ret = import_log_run(&log);
	if (log.file.path)
		ret = import_log_finish(&log, ret, to, broken);
	ky_foreign_close(&log.file);
	ky_map_fini(&log.classes);
	ky_arena_fini(&log.arena);
	ky_strbuf_fini(&log.unescaped);
	ky_log_late_fini(&log.late);
	ky_strbuf_fini(&log.joined);
	ky_strbuf_fini(&log.early);
	return ret;
}

/* The user meant a name: as an expression, it would have no groups. */
static bool import_log_is_name(const char *wanted)
{
	while (isalnum((unsigned char)*wanted) || *wanted == '-' || *wanted == '_')
		wanted++;
	return !*wanted;
}

static int import_log_no_format(const char *wanted, struct kymo_error *err)
{
	struct ky_strbuf names = KY_STRBUF_INIT;
	int ret;

	for (size_t i = 0; ky_log_format_at(i); i++)
		ky_strbuf_addf(&names, "%s%s", i ? ", " : "", ky_log_format_at(i)->name);
	ret = ky_error_set(err, KYMO_E_INVALID, "no format has the name '%.40s'", wanted);
	ky_error_input(err, "log-format");
	ky_error_hint(err, "formats are %s, and regular expressions with named groups",
		      ky_strbuf_text(&names));
	ky_strbuf_fini(&names);
	return ret;
}

/* @log_format: NULL: an expression. */
static int import_log_check_time(const char *format, const struct ky_log_format *log_format,
				 struct kymo_error *err)
{
	const char *unknown = ky_log_time_unknown(format);

	/* Formats without this have times of one kind. */
	if (log_format && !log_format->takes_time_format) {
		ky_error_set(err, KYMO_E_INVALID, "the format '%s' has its own times",
			     log_format->name);
		ky_error_input(err, "log-time");
		return KYMO_E_INVALID;
	}
	if (!unknown)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID, "'%.2s' is no part of a time", unknown);
	ky_error_input(err, "log-time");
	ky_error_line(err, 1, (uint32_t)(unknown - format) + 1);
	ky_error_hint(err,
		      "parts are those of strftime() for dates, times and zones, and %%f for a "
		      "fraction of a second");
	return KYMO_E_INVALID;
}

static int import_log_choose(const struct ky_import *imports, const char *path,
			     const struct ky_import_options *options,
			     const struct ky_log_format **format, struct ky_log_regex **regex,
			     struct kymo_error *err)
{
	const char *wanted = options ? options->format : NULL;

	*regex = NULL;
	*format = NULL;
	if (!wanted) {
		char content[32];

		*format = ky_log_format_of(ky_import_content(imports, path, content));
		return KYMO_OK;
	}
	*format = ky_log_format_find(wanted, strlen(wanted));
	if (options->time_format && import_log_check_time(options->time_format, *format, err) < 0)
		return err->code;
	if (*format)
		return KYMO_OK;
	if (import_log_is_name(wanted))
		return import_log_no_format(wanted, err);
	*format = &ky_log_regex;
	return ky_log_regex_open(wanted, regex, err);
}

int ky_import_log(struct ky_import *imports, const char *path,
		  const struct ky_import_options *options, const struct ky_log *log,
		  struct kymo_error *err)
{
	struct ky_scratch_trace *scratch = ky_import_new_trace(imports);
	struct kymo_error broken = {0}, own = {0};
	const struct ky_log_format *format;
	struct ky_packet_store *store;
	struct ky_log_regex *regex;
	int ret = scratch ? ky_scratch_store_open(scratch, &store, err) : ky_error_nomem(err);

	if (ret < 0)
		return ret;
	ret = import_log_choose(imports, path, options, &format, &regex, &own);
	if (!ret && !format)
		ret = ky_error_set(&own, KYMO_E_FORMAT, "the format of this log is not plain");
	if (!ret)
		ret = import_log_file(imports, path, store, format, regex, options, log, &broken,
				      &own);
	ky_log_regex_close(regex);
	ky_store_free(store);
	if (!ret)
		ret = ky_import_add_place(imports, path, "log", scratch, &own);
	if (!ret && broken.code)
		ky_import_broken(imports, &broken);
	if (ret < 0 && err)
		*err = own;
	return ret;
}

static int import_log_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			   struct kymo_error *err)
{
	return ky_import_log(imports, path, NULL, log, err);
}

static bool import_log_is(const char *path)
{
	return ky_log_format_of(path);
}

const struct ky_import_format ky_import_logs = {
	.name = "log",
	.probe = import_log_is,
	.open = import_log_open,
};
