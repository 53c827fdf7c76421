/* SPDX-License-Identifier: MIT */
#include "flow/graph/lines.h"

#include "base/error.h"
#include "os/file.h"

static struct ky_lines_sink *lines_of(struct ky_sink *sink)
{
	return (struct ky_lines_sink *)sink;
}

int ky_lines_flush(struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_lines_sink *lines = lines_of(sink);
	int ret;

	if (ky_strbuf_failed(&lines->out))
		return ky_error_nomem(err);
	ret = ky_write_all(lines->fd, lines->out.data, lines->out.len);
	ky_strbuf_clear(&lines->out);
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write %s", lines->what) : KYMO_OK;
}

void ky_lines_hold(struct ky_sink *sink)
{
	lines_of(sink)->held = true;
}

void ky_lines_resume(struct ky_sink *sink, const struct ky_event *before)
{
	(void)sink;
	(void)before;
}

void ky_lines_begin(struct ky_sink *sink)
{
	ky_strbuf_clear(&lines_of(sink)->out);
}

size_t ky_lines_held(const struct ky_sink *sink)
{
	return ((const struct ky_lines_sink *)sink)->out.len;
}

void ky_lines_take(struct ky_sink *sink, struct ky_sink_before *before, struct ky_sink_held *held)
{
	struct ky_strbuf *out = &lines_of(sink)->out;

	(void)before;
	*held = (struct ky_sink_held){.data = ky_strbuf_text(out), .len = out->len};
	/* The bytes stay where they are. */
	out->len = 0;
}
