/* SPDX-License-Identifier: MIT */
/* Storing what addresses need (symbols.h). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "os/file.h"
#include "symbols/make/kdi-make.h"
#include "symbols/kdi/kdi-write.h"
#include "symbols/kdi/kdi.h"
#include "symbols/lookup/symbols-internal.h"

static int symbols_store_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool wants(void *data, uint64_t begin, uint64_t end)
{
	return ky_wanted_has(data, begin, end);
}

/* DIR/BUILD-ID.kdi. */
static int symbols_store_put_file(int dir, const uint8_t *id, uint32_t id_bytes, const void *data,
				  size_t bytes, struct kymo_error *err)
{
	char name[2 * KY_ELF_BUILD_ID_MAX + 8] = "";
	int code;

	for (uint32_t i = 0; i < id_bytes; i++)
		snprintf(name + 2 * i, 3, "%02x", id[i]);
	memcpy(name + 2 * (size_t)id_bytes, ".kdi", 5);
	code = ky_file_replace(dir, name, data, bytes);
	if (code >= 0)
		return KYMO_OK;
	ky_error_errno(err, -code, "cannot write symbols");
	ky_error_path(err, name);
	return KYMO_E_IO;
}

static int write_file(struct ky_kdi_info *info, int dir, struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	int ret = ky_kdi_write(info, &bytes, err);

	if (!ret)
		ret = symbols_store_put_file(dir, info->build_id, info->build_id_bytes, bytes.data,
					     bytes.len, err);
	ky_strbuf_fini(&bytes);
	return ret;
}

static int make_and_write(struct ky_symbols *symbols, struct ky_object *object,
			  struct ky_wanted *wanted, int dir, struct kymo_error *err)
{
	const struct ky_kdi_options options = {.want_lines = true, .wants = wants, .data = wanted};
	struct ky_kdi_info info;
	int ret = ky_kdi_info_init(&info);

	if (ret)
		return ky_error_nomem(err);
	ret = ky_kdi_make_object(&info, object, &symbols->search, &options, err);
	if (!ret && info.build_id_bytes && info.functions.len)
		ret = write_file(&info, dir, err);
	if (!ret)
		ret = info.build_id_bytes && info.functions.len;
	ky_kdi_info_fini(&info);
	return ret == KYMO_E_NOT_FOUND || ret == KYMO_E_LIMIT ? 0 : ret;
}

/* What another file of debug information knows goes along as a whole. */
static int copy_kdi(const struct ky_object *object, int dir, struct kymo_error *err)
{
	int ret = symbols_store_put_file(dir, object->build_id, object->build_id_bytes,
					 ky_kdi_bytes(object->kdi), ky_kdi_size(object->kdi), err);

	return ret ? ret : 1;
}

/* The addresses as the file has them, sorted. */
static void symbols_store_set_wanted(struct ky_wanted *wanted, const struct ky_object *object,
				     const struct ky_symbols_place *places, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (places[i].is_image)
			wanted->addresses[wanted->n++] = places[i].offset + object->first_page;
		else if (ky_object_address(object, places[i].offset, &wanted->addresses[wanted->n]))
			wanted->n++;
	if (wanted->n)
		qsort(wanted->addresses, wanted->n, sizeof(*wanted->addresses),
		      symbols_store_compare);
}

static bool symbols_store_knows(const struct ky_object *object, uint64_t address)
{
	struct ky_kdi_found found;

	return object->kdi ? ky_kdi_find(object->kdi, address, &found)
			   : ky_symbol_table_find(&object->table, address) != NULL;
}

static int symbols_store_object(struct ky_symbols *symbols, struct ky_object *object,
				struct ky_wanted *wanted, int dir, size_t *known,
				struct kymo_error *err)
{
	bool is_loaded;

	object->wanted = wanted;
	is_loaded = ky_object_load(object, &symbols->search);
	object->wanted = NULL;
	for (size_t i = 0; is_loaded && i < wanted->n; i++)
		*known += symbols_store_knows(object, wanted->addresses[i]);
	if (!*known)
		return 0;
	if (object->kdi)
		return object->build_id_bytes ? copy_kdi(object, dir, err) : 0;
	return make_and_write(symbols, object, wanted, dir, err);
}

int ky_symbols_store(struct ky_symbols *symbols, uint32_t number,
		     const struct ky_symbols_place *places, size_t n, int dir, size_t *known,
		     struct kymo_error *err)
{
	struct ky_object *object = symbols->objects.data[number];
	struct ky_wanted wanted = {0};
	int ret;

	*known = 0;
	if (!ky_object_find(object, &symbols->search))
		return 0;
	wanted.addresses = malloc((n + 1) * sizeof(*wanted.addresses));
	if (!wanted.addresses)
		return ky_error_nomem(err);
	symbols_store_set_wanted(&wanted, object, places, n);
	ret = symbols_store_object(symbols, object, &wanted, dir, known, err);
	ky_object_close(object);
	free(wanted.addresses);
	return ret;
}
