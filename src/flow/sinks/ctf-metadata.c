/* SPDX-License-Identifier: MIT */
#include "flow/sinks/ctf-metadata.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/error.h"
#include "ctf/ctf2/ctf2-edit.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/metadata/downgrade.h"
#include "ctf/tsdl/tsdl.h"

/* The text that the trace was read from, out of its packets if it has some. */
static int ctf_metadata_read_text(const struct ky_trace *trace, char **text, size_t *len_bytes,
				  struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	int ret = ky_trace_read_metadata(trace, &bytes, err);

	if (!ret)
		ret = ky_metadata_text(ky_strbuf_text(&bytes), bytes.len, text, len_bytes, err);
	if (ret < 0)
		ky_error_path(err, trace->metadata_path);
	ky_strbuf_fini(&bytes);
	return ret;
}

/* The file itself. */
static int same_file(const struct ky_trace *trace, char **text, size_t *len_bytes,
		     struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	int ret = ky_trace_read_metadata(trace, &bytes, err);

	if (ret < 0) {
		ky_strbuf_fini(&bytes);
		return ret;
	}
	*len_bytes = bytes.len;
	*text = ky_strbuf_take(&bytes);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

/* The same version, but for the clocks' offsets. */
static int same_version(const struct ky_trace *trace, char **text, size_t *len_bytes,
			struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	char *before;
	size_t len;
	int ret;

	if (trace->cls->major == 1)
		return ky_tsdl_write(trace->cls, text, len_bytes, err);
	ret = ctf_metadata_read_text(trace, &before, &len, err);
	if (ret < 0)
		return ret;
	ret = ky_ctf2_set_offsets(trace->cls, before, len, &out, err);
	free(before);
	if (ret < 0) {
		ky_strbuf_fini(&out);
		return ret;
	}
	*len_bytes = out.len;
	*text = ky_strbuf_take(&out);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

/* From CTF 2 to 1.8; tells what gets lost on the way, none of which is in events. */
static int lower(const struct ky_trace *trace, char **text, size_t *len_bytes,
		 struct kymo_error *err)
{
	struct ky_downgrade_notes notes = {
		.renamed = KY_STRBUF_INIT, .added = KY_STRBUF_INIT, .unused = KY_STRBUF_INIT};
	struct ky_strbuf left = KY_STRBUF_INIT;
	size_t len;
	char *before;
	int ret = ctf_metadata_read_text(trace, &before, &len, err);

	if (ret < 0)
		return ret;
	ret = ky_ctf2_left_out(before, len, &left, err);
	free(before);
	if (ret == KYMO_OK)
		ret = ky_downgrade_to_ctf1(trace->cls, text, len_bytes, &notes, err);
	if (ret == KYMO_OK && left.len)
		ky_log_warning(trace->log, "%s: CTF 1.8 cannot hold these, left out: %s",
			       trace->path, ky_strbuf_text(&left));
	if (ret == KYMO_OK && notes.renamed.len)
		ky_log_warning(trace->log, "%s: CTF 1.8 allows identifiers only: %s", trace->path,
			       ky_strbuf_text(&notes.renamed));
	if (ret == KYMO_OK && notes.added.len)
		ky_log_warning(trace->log,
			       "%s: CTF 1.8 finds these lengths and options by copies, added: %s",
			       trace->path, ky_strbuf_text(&notes.added));
	if (ret == KYMO_OK && notes.unused.len)
		ky_log_warning(trace->log,
			       "%s: no header has IDs, so these cannot occur, left out: %s",
			       trace->path, ky_strbuf_text(&notes.unused));
	ky_strbuf_fini(&left);
	ky_downgrade_notes_fini(&notes);
	return ret;
}

/* What was written must be read as describing the same bytes, or else values: then as *@as. */
static int check_written(const struct ky_trace_class *cls, const char *text, size_t len_bytes,
			 struct ky_trace_class **as, struct kymo_error *err)
{
	struct ky_trace_class *back;
	struct kymo_error why;
	bool anew;
	int ret = ky_metadata_read(text, len_bytes, &back, &why);

	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (ret < 0)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "the other version cannot describe its metadata: %s",
				    why.message);
	ret = ky_same_layout(cls, back, &anew, err);
	if (ret == KYMO_OK && anew)
		*as = back;
	else
		ky_trace_class_free(back);
	return ret;
}

int ky_ctf_metadata(const struct ky_trace *trace, uint32_t major, char **text, size_t *len_bytes,
		    struct ky_trace_class **as, struct kymo_error *err)
{
	bool same = trace->cls->major == major && !trace->cls->is_draft;
	int ret;

	*text = NULL;
	*as = NULL;
	if (same && !trace->is_edited)
		return same_file(trace, text, len_bytes, err);
	if (same)
		ret = same_version(trace, text, len_bytes, err);
	else if (major == 2)
		ret = ky_ctf2_write(trace->cls, text, len_bytes, err);
	else
		ret = lower(trace, text, len_bytes, err);
	if (ret == KYMO_OK)
		ret = check_written(trace->cls, *text, *len_bytes, as, err);
	if (ret < 0) {
		free(*text);
		*text = NULL;
		ky_error_path(err, trace->path);
	}
	return ret;
}
