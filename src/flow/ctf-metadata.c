/* SPDX-License-Identifier: MIT */
#include "flow/ctf-metadata.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "ctf/ctf2-write.h"
#include "ctf/lower.h"
#include "ctf/tsdl.h"
#include "os/file.h"

#define METADATA_MAX_BYTES ((size_t)1 << 30)

/* The file itself. */
static int same_version(const struct ky_trace *trace, char **text, size_t *len_bytes,
			struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	char *path;
	int ret;

	if (asprintf(&path, "%s/metadata", trace->path) < 0)
		return ky_error_nomem(err);
	ret = ky_read_file(AT_FDCWD, path, METADATA_MAX_BYTES, &bytes);
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read the metadata");
		ky_error_path(err, path);
		ky_strbuf_fini(&bytes);
	} else {
		*len_bytes = bytes.len;
		*text = ky_strbuf_take(&bytes);
	}
	free(path);
	return ret;
}

/* What was written must be read as describing the same bytes. */
static int check_written(const struct ky_trace_class *cls, const char *text, size_t len_bytes,
			 struct kymo_error *err)
{
	struct ky_trace_class *back;
	struct kymo_error why;
	int ret = ky_metadata_read(text, len_bytes, &back, &why);

	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (ret < 0)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "its metadata cannot be said in the other version: %s",
				    why.message);
	ret = ky_same_layout(cls, back, err);
	ky_trace_class_free(back);
	return ret;
}

int ky_ctf_metadata(const struct ky_trace *trace, uint32_t major, char **text, size_t *len_bytes,
		    struct kymo_error *err)
{
	int ret;

	if (trace->cls->major == major && !trace->is_edited)
		return same_version(trace, text, len_bytes, err);
	*text = NULL;
	if (major == 2)
		ret = ky_ctf2_write(trace->cls, text, len_bytes, err);
	else
		ret = ky_lower_to_tsdl(trace->cls, text, len_bytes, err);
	if (ret == KYMO_OK)
		ret = check_written(trace->cls, *text, *len_bytes, err);
	if (ret < 0) {
		free(*text);
		*text = NULL;
		ky_error_path(err, trace->path);
	}
	return ret;
}
