/* SPDX-License-Identifier: MIT */
#include "cli/terminal/json-output.h"

#include "cli/terminal/command.h"

int ky_cli_put_json(json_t *root, size_t indent, struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	int ret = ky_jansson_add(&out, root, JSON_INDENT(indent), err);

	if (!ret)
		ky_cli_write(&out);
	ky_strbuf_fini(&out);
	return ret;
}
