/* SPDX-License-Identifier: MIT */
#include "cli/list/list-sdt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"
#include "kernel/probe/probe-sdt.h"

static int list_sdt_compare(const void *a, const void *b)
{
	const struct ky_sdt_probe *x = a, *y = b;
	int order = strcmp(x->provider, y->provider);

	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : x->address < y->address ? -1 : x->address > y->address;
}

static void list_sdt_print_probe(const struct ky_sdt_probe *probe)
{
	fputs("  ", stdout);
	ky_cli_put_text(stdout, probe->provider);
	fputc(':', stdout);
	ky_cli_put_text(stdout, probe->name);
	fputs(*probe->arguments ? "  " : "", stdout);
	ky_cli_put_text(stdout, probe->arguments);
	puts(probe->semaphore ? "  (with a semaphore)" : "");
}

static void print(const char *path, const struct ky_sdt_probes *probes)
{
	ky_cli_put_text(stdout, path);
	puts(probes->len ? ":" : ": no SDT probes");
	for (size_t i = 0; i < probes->len; i++)
		list_sdt_print_probe(&probes->data[i]);
}

static bool add_json(json_t *all, const char *path, const struct ky_sdt_probes *probes)
{
	for (size_t i = 0; i < probes->len; i++) {
		const struct ky_sdt_probe *probe = &probes->data[i];
		json_t *one = json_pack(
			"{s:o, s:o, s:o, s:o, s:I, s:b}", "file", ky_jansson_text(path), "provider",
			ky_jansson_text(probe->provider), "name", ky_jansson_text(probe->name),
			"arguments", ky_jansson_text(probe->arguments), "address",
			(json_int_t)probe->address, "semaphore", probe->semaphore != 0);

		if (json_array_append_new(all, one) < 0)
			return false;
	}
	return true;
}

static int list_file(json_t *all, const char *name, struct kymo_error *err)
{
	struct ky_sdt_probes probes = KY_VEC_INIT;
	struct ky_probe_file file;
	struct ky_arena arena;
	char path[4096];
	int ret = ky_probe_file_find(name, path, err);

	if (!ret)
		ret = ky_probe_file_open(&file, path, err);
	if (ret < 0)
		return ret;
	ky_arena_init(&arena);
	ret = ky_sdt_read(&file, &arena, &probes, err);
	if (!ret && probes.len)
		qsort(probes.data, probes.len, sizeof(probes.data[0]), list_sdt_compare);
	if (!ret && all)
		ret = add_json(all, path, &probes) ? KYMO_OK : ky_error_nomem(err);
	else if (!ret)
		print(path, &probes);
	ky_vec_fini(&probes);
	ky_arena_fini(&arena);
	ky_probe_file_close(&file);
	return ret;
}

int ky_list_sdt(bool json, int n_files, char **files, struct kymo_error *err)
{
	json_t *all = json ? json_array() : NULL;
	int ret = KYMO_OK;

	for (int i = 0; i < n_files && !ret; i++)
		ret = list_file(all, files[i], err);
	if (!ret && json)
		return ky_cli_put_json(all, 1, err);
	json_decref(all);
	return ret;
}
