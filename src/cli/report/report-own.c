/* SPDX-License-Identifier: MIT */
#include "cli/report/report-own.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "os/file.h"

#define FILE_MAX_BYTES	 (1u << 20)
#define MEMORY_MAX_BYTES ((uint64_t)2 << 30)

bool ky_own_report_is(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && strcmp(name + len - 4, ".sql") == 0;
}

/* Each "NAME=VALUE" in @copies, which the caller frees, is cut at the '='. */
static int report_own_parameters(const struct ky_text_list *list,
				 struct ky_sql_parameter *parameters, char **copies,
				 struct kymo_error *err)
{
	for (size_t i = 0; i < list->len; i++) {
		char *equals;

		copies[i] = strdup(list->items[i]);
		equals = copies[i] ? strchr(copies[i], '=') : NULL;
		if (!copies[i])
			return ky_error_nomem(err);
		if (!equals)
			return ky_error_set(err, KYMO_E_INVALID,
					    "--param: NAME=VALUE is expected, not '%s'", copies[i]);
		*equals = '\0';
		parameters[i] = (struct ky_sql_parameter){copies[i], equals + 1};
	}
	return KYMO_OK;
}

static int report_own_make(struct ky_own_report *own, const char *path, const char *text,
			   const struct ky_text_list *list, struct kymo_error *err)
{
	struct ky_sql_parameter *parameters = calloc(list->len + 1, sizeof(*parameters));
	char **copies = calloc(list->len + 1, sizeof(*copies));
	int ret = parameters && copies ? report_own_parameters(list, parameters, copies, err)
				       : ky_error_nomem(err);

	if (!ret)
		ret = ky_sql_report_new(own->sql, path, text, parameters, list->len, &own->report,
					err);
	for (size_t i = 0; copies && i < list->len; i++)
		free(copies[i]);
	free(copies);
	free(parameters);
	return ret;
}

int ky_own_report_open(struct ky_own_report *own, const char *path,
		       const struct ky_text_list *parameters, uint64_t space_bytes,
		       const struct ky_trace_set *set, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = ky_read_file(AT_FDCWD, path, FILE_MAX_BYTES, &text);

	*own = (struct ky_own_report){.sql = NULL};
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, path);
		ky_strbuf_fini(&text);
		return ret;
	}
	ret = ky_sql_open(set, &own->sql, err);
	if (!ret) {
		ky_sql_limit_memory(MEMORY_MAX_BYTES);
		ky_sql_limit_temporary(own->sql, space_bytes);
		ret = report_own_make(own, path, ky_strbuf_text(&text), parameters, err);
	}
	ky_strbuf_fini(&text);
	return ret;
}

void ky_own_report_close(struct ky_own_report *own)
{
	ky_sql_report_free(own->report);
	ky_sql_close(own->sql);
	*own = (struct ky_own_report){.sql = NULL};
}
