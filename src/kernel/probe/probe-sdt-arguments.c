/* SPDX-License-Identifier: MIT */
/* Which arguments of SDT probes are recorded, and as what, where that is said. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kernel/probe/probe-sdt.h"

int ky_sdt_arguments_parse(const char *text, struct ky_probe_spec *spec, struct kymo_error *err)
{
	struct ky_strbuf whole = KY_STRBUF_INIT;
	unsigned int n;
	int ret, len;

	ky_strbuf_addf(&whole, "sdt%s", text);
	ret = ky_strbuf_failed(&whole)
		      ? ky_error_nomem(err)
		      : ky_probe_spec_parse(ky_strbuf_text(&whole), false, spec, err);
	ky_strbuf_fini(&whole);
	for (unsigned int i = 0; i < spec->n_arguments && !ret; i++) {
		const struct ky_probe_argument *argument = &spec->arguments[i];

		if (sscanf(argument->root, "arg%2u%n", &n, &len) == 1 && !argument->root[len] &&
		    !argument->n_steps)
			continue;
		ret = ky_error_set(err, KYMO_E_INVALID, "'%s' is not an argument of an SDT probe",
				   argument->root);
		ky_error_hint(err, "try arg1, arg2 ..., followed by :string or another type");
	}
	return ret;
}

/* Where " arg2=-4(%bp):s32" of @fetched begins; *len: up to the next. NULL: none exists. */
static const char *probe_sdt_arguments_find(const char *fetched, const char *root, size_t *len)
{
	size_t root_len = strlen(root);

	for (const char *at = strchr(fetched, ' '); at; at = strchr(at + 1, ' '))
		if (strncmp(at + 1, root, root_len) == 0 && at[1 + root_len] == '=') {
			at += root_len + 2;
			*len = strcspn(at, " ");
			return at;
		}
	return NULL;
}

int ky_sdt_arguments_pick(const struct ky_probe_spec *spec, const char *probe, const char *fetched,
			  struct ky_strbuf *fetch, struct kymo_error *err)
{
	for (unsigned int i = 0; i < spec->n_arguments; i++) {
		const struct ky_probe_argument *argument = &spec->arguments[i];
		size_t len;
		const char *at = probe_sdt_arguments_find(fetched, argument->root, &len);
		const char *colon = at ? memrchr(at, ':', len) : NULL;
		bool is_text = strcmp(argument->type, "string") == 0;

		if (!colon || (is_text && *at == '\\'))
			return ky_error_set(err, KYMO_E_NOT_FOUND,
					    "%s has no argument '%s' that the kernel can fetch%s",
					    probe, argument->root, is_text ? " as a text" : "");
		ky_strbuf_addf(fetch, " %s=", argument->name);
		if (is_text)
			ky_strbuf_addf(fetch, "+0(%.*s):string", (int)(colon - at), at);
		else if (argument->type[0])
			ky_strbuf_addf(fetch, "%.*s:%s", (int)(colon - at), at, argument->type);
		else
			ky_strbuf_add(fetch, at, len);
	}
	return KYMO_OK;
}
