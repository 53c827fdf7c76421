/* SPDX-License-Identifier: MIT */
/* Lines of a log that its format does not know: continuations of the line before, and what stands before the first event. */
#include "base/error.h"
#include "import/logs/log-format.h"

/* Firmware, and the heads that some programs write. */
#define EARLY_MAX_BYTES (1u << 20)

static int log_stray_put(struct ky_log_file *log, const char *line, size_t len, int64_t ns)
{
	struct ky_log_value text = ky_log_text("message", line, len);
	int ret = ky_log_begin(log, "line", ns, &text, 1);

	if (ret < 0)
		return ret;
	/* The context is unknown. */
	for (size_t i = 0; i < log->format->n_context; i++)
		ky_log_context_number(log, 0);
	return ky_log_put(log, &text, 1);
}

int ky_log_stray_flush(struct ky_log_file *log, int64_t ns)
{
	const char *at = ky_strbuf_text(&log->early), *end = at + log->early.len;
	int ret = KYMO_OK;

	log->has_event = true;
	ns = ns < 0 ? 0 : ns;
	while (at < end && ret >= 0) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		/* Memory was out when the line was kept. */
		if (!stop)
			break;
		ret = log_stray_put(log, at, (size_t)(stop - at), ns);
		at = stop + 1;
	}
	ky_strbuf_fini(&log->early);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_log_stray(struct ky_log_file *log, const char *line, size_t len)
{
	int ret;

	log->n_strange++;
	if (log->has_event)
		return log_stray_put(log, line, len, log->last_ns);
	if (log->early.len + len < EARLY_MAX_BYTES) {
		ky_strbuf_add(&log->early, line, len);
		ky_strbuf_addc(&log->early, '\n');
		return ky_strbuf_failed(&log->early) ? ky_error_nomem(log->err) : KYMO_OK;
	}
	ret = ky_log_stray_flush(log, log->last_ns);
	return ret < 0 ? ret : log_stray_put(log, line, len, log->last_ns);
}
