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

/* "NAME=VALUE" */
static int report_own_parameter(const char *text, char **copy, struct ky_sql_parameter *parameter,
				struct kymo_error *err)
{
	char *equals;

	*copy = strdup(text);
	equals = *copy ? strchr(*copy, '=') : NULL;
	if (!*copy)
		return ky_error_nomem(err);
	if (!equals)
		return ky_error_set(err, KYMO_E_INVALID,
				    "--param: NAME=VALUE is expected, not '%s'", text);
	*equals = '\0';
	*parameter = (struct ky_sql_parameter){*copy, equals + 1};
	return KYMO_OK;
}

int ky_own_file_read(struct ky_own_file *file, const char *path,
		     const struct ky_text_list *parameters, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*file = (struct ky_own_file){.text = KY_STRBUF_INIT,
				     .n = parameters->len,
				     .parameters =
					     calloc(parameters->len + 1, sizeof(*file->parameters)),
				     .copies = calloc(parameters->len + 1, sizeof(*file->copies))};
	if (!file->parameters || !file->copies)
		return ky_error_nomem(err);
	for (size_t i = 0; i < file->n && !ret; i++)
		ret = report_own_parameter(parameters->items[i], &file->copies[i],
					   &file->parameters[i], err);
	if (ret < 0)
		return ret;
	ret = ky_read_file(AT_FDCWD, path, FILE_MAX_BYTES, &file->text);
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, path);
	}
	return ret;
}

void ky_own_file_fini(struct ky_own_file *file)
{
	for (size_t i = 0; file->copies && i < file->n; i++)
		free(file->copies[i]);
	free(file->copies);
	free(file->parameters);
	ky_strbuf_fini(&file->text);
}

int ky_own_report_open(struct ky_own_report *own, const char *path,
		       const struct ky_text_list *parameters, uint64_t space_bytes,
		       const struct ky_trace_set *set, struct kymo_error *err)
{
	struct ky_own_file file;
	int ret = ky_own_file_read(&file, path, parameters, err);

	*own = (struct ky_own_report){.sql = NULL};
	if (!ret)
		ret = ky_sql_open(set, &own->sql, err);
	if (!ret) {
		ky_sql_limit_memory(MEMORY_MAX_BYTES);
		ky_sql_limit_temporary(own->sql, space_bytes);
		ret = ky_sql_report_new(own->sql, path, ky_strbuf_text(&file.text), file.parameters,
					file.n, &own->report, err);
	}
	ky_own_file_fini(&file);
	return ret;
}

void ky_own_report_close(struct ky_own_report *own)
{
	ky_sql_report_free(own->report);
	ky_sql_close(own->sql);
	*own = (struct ky_own_report){.sql = NULL};
}
