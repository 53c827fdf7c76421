/* SPDX-License-Identifier: MIT */
/* Raw recordings: the kernel's pages as they are, with what is needed to make a trace of them. */
#include <inttypes.h>

#include "base/strbuf.h"
#include "import/common/import.h"
#include "record/kernel/raw.h"

static void import_raw_add_part(struct ky_strbuf *text, uint64_t n, const char *what)
{
	if (n)
		ky_strbuf_addf(text, "%s%" PRIu64 " %s", text->len ? ", " : "", n, what);
}

static void say_left_out(const char *path, const struct ky_raw_stats *stats,
			 const struct ky_log *log)
{
	uint64_t left_out = stats->own + stats->hidden + stats->filtered;
	struct ky_strbuf parts = KY_STRBUF_INIT;

	import_raw_add_part(&parts, stats->own, "system calls of Kymo's own");
	import_raw_add_part(&parts, stats->hidden, "that only describe threads or call stacks");
	import_raw_add_part(&parts, stats->filtered, "that the filters exclude");
	ky_log_info(log, "%s: %" PRIu64 " raw records, %" PRIu64 " events; left out: %s", path,
		    stats->events + left_out, stats->events,
		    left_out ? ky_strbuf_text(&parts) : "none");
	ky_strbuf_fini(&parts);
}

static int import_raw_convert(const char *path, struct ky_packet_store *store,
			      const struct ky_log *log, bool says, struct kymo_error *err)
{
	struct ky_raw_stats stats;
	int ret = ky_raw_convert(path, store, log, &stats, err);

	if (!ret && says)
		say_left_out(path, &stats, log);
	return ret;
}

const struct ky_import_format ky_import_raw = {
	.name = "raw",
	.probe = ky_raw_is,
	.convert = import_raw_convert,
};
