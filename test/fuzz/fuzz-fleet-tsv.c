/* SPDX-License-Identifier: MIT */
/* Answers of a data base server, of any bytes and in pieces. The first byte is the size of the pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet-tsv.h"
#include "fleet/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	*(size_t *)data = n;
	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) > SIZE_MAX / 2)
			abort();
	return KYMO_OK;
}

static int on_row(void *data, const struct ky_sql_value *values, size_t n, struct kymo_error *err)
{
	if (n != *(size_t *)data && n > 10000)
		abort();
	for (size_t i = 0; i < n; i++)
		if (values[i].type == KY_SQL_TEXT && strlen(values[i].text) != values[i].len)
			abort();
	return KYMO_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n_columns = 0, piece = size && data[0] ? data[0] : 1;
	const struct ky_sql_sink sink = {&n_columns, on_names, on_row};
	struct ky_fleet_tsv tsv;
	struct ky_http_url url;
	struct kymo_error err;
	char *text;
	int ret = KYMO_OK;

	ky_fleet_tsv_init(&tsv, &sink);
	for (size_t at = 0; at < size && !ret; at += piece)
		ret = ky_fleet_tsv_take(&tsv, (const char *)data + at,
					size - at < piece ? size - at : piece, &err);
	if (!ret)
		(void)ky_fleet_tsv_end(&tsv, &err);
	ky_fleet_tsv_fini(&tsv);
	/* The same as an address. */
	text = strndup((const char *)data, size);
	if (text)
		(void)ky_http_parse(text, &url, &err);
	free(text);
	return 0;
}
