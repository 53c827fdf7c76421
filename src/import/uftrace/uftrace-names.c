/* SPDX-License-Identifier: MIT */
#include "import/uftrace/uftrace-names.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "import/uftrace/uftrace-text.h"

#define IMAGES_MAX 4096u
#define TOLD_MAX   (1u << 18)
#define ALL_BYTES  (UINT64_C(256) << 20)
#define NAME_BYTES 1024u
#define FINDS_MAX  4u /* images that claim one address: a file may have thousands of these */

struct uftrace_name {
	uint64_t begin, bytes; /* 0 bytes: up to the next one */
	const char *text;
	size_t len;
};

struct uftrace_table {
	char *path;
	struct ky_strbuf text;
	KY_VEC(struct uftrace_name) names;
};

/* ---- a table ---------------------------------------------------------------------------- */

static int uftrace_names_compare(const void *a, const void *b)
{
	uint64_t x = ((const struct uftrace_name *)a)->begin;
	uint64_t y = ((const struct uftrace_name *)b)->begin;

	return x < y ? -1 : x > y;
}

/* "0000000000001139 0000001a T main"; older versions of uftrace write no size. False: the line has no function. */
static bool uftrace_names_line(const char *line, size_t len, struct uftrace_name *name)
{
	const char *end = line + len, *at;
	char *stop;

	name->begin = strtoull(line, &stop, 16);
	name->bytes = 0;
	if (stop == line || stop + 4 > end || *stop != ' ')
		return false;
	at = stop + 1;
	if (at[1] != ' ') {
		name->bytes = strtoull(at, &stop, 16);
		if (stop == at || stop + 4 > end || *stop != ' ')
			return false;
		at = stop + 1;
	}
	if (!strchr("tTwWPiu", *at) || at[1] != ' ')
		return false;
	name->text = at + 2;
	name->len = (size_t)(end - name->text);
	return name->len && name->len <= NAME_BYTES;
}

/* Another file may have the same name: its build ID tells. */
static bool uftrace_names_is_of(const char *text, const char *id)
{
	static const char key[] = "# build-id: ";
	const char *has = strstr(text, key);
	size_t len = has ? strspn(has + sizeof(key) - 1, "0123456789abcdef") : 0;

	return !len || !id || strncmp(has + sizeof(key) - 1, id, len) == 0;
}

static int uftrace_names_parse(struct uftrace_table *table)
{
	for (const char *at = ky_strbuf_text(&table->text); *at;) {
		size_t len = strcspn(at, "\n");
		struct uftrace_name name;

		if (uftrace_names_line(at, len, &name) && ky_vec_push(&table->names, name) < 0)
			return KYMO_E_MEMORY;
		at += len + (at[len] == '\n');
	}
	if (table->names.len)
		qsort(table->names.data, table->names.len, sizeof(table->names.data[0]),
		      uftrace_names_compare);
	return KYMO_OK;
}

static void uftrace_names_free(struct uftrace_table *table)
{
	ky_strbuf_fini(&table->text);
	ky_vec_fini(&table->names);
	free(table->path);
	free(table);
}

/* An empty table where the file is missing, or cannot be read. NULL: memory is out. */
static struct uftrace_table *uftrace_names_table(struct uftrace *uftrace, const char *path)
{
	struct uftrace_table *table = ky_names_get(&uftrace->names.tables, path);
	int ret = KYMO_OK;

	if (table)
		return table;
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	ky_strbuf_init(&table->text);
	table->path = strdup(path);
	if (!table->path || ky_names_set(&uftrace->names.tables, table->path, table) < 0) {
		uftrace_names_free(table);
		return NULL;
	}
	if (uftrace->names.bytes > ALL_BYTES)
		return table;
	if (ky_uftrace_text(uftrace, path, &table->text) == KYMO_OK)
		ret = uftrace_names_parse(table);
	else
		ret = ky_uftrace_no_file(uftrace);
	uftrace->names.bytes += table->text.len;
	return ret == KYMO_E_MEMORY ? NULL : table;
}

/* ---- what processes had mapped ------------------------------------------------------------ */

int ky_uftrace_names_map(struct uftrace *uftrace, struct uftrace_image image, uint64_t offset,
			 const char *path, size_t len, const char *id)
{
	const char *base = memrchr(path, '/', len);
	struct uftrace_table *table;
	char place[PATH_MAX];

	base = base ? base + 1 : path;
	if (uftrace->names.images.len >= IMAGES_MAX || offset > image.begin ||
	    snprintf(place, sizeof(place), "%s/%.*s.sym", uftrace->path, (int)(path + len - base),
		     base) >= (int)sizeof(place))
		return KYMO_OK;
	table = uftrace_names_table(uftrace, place);
	if (!table)
		return ky_error_nomem(uftrace->err);
	if (!table->names.len || !uftrace_names_is_of(ky_strbuf_text(&table->text), id))
		return KYMO_OK;
	image.base = image.begin - offset;
	image.table = table;
	return ky_vec_push(&uftrace->names.images, image) < 0 ? ky_error_nomem(uftrace->err)
							      : KYMO_OK;
}

/* ---- functions ---------------------------------------------------------------------------- */

/* The last name that begins at or before @at; *bytes: up to where it goes. */
static const struct uftrace_name *uftrace_names_find(const struct uftrace_table *table, uint64_t at,
						     uint64_t *bytes)
{
	const struct uftrace_name *names = table->names.data;
	size_t low = 0, high = table->names.len;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (names[middle].begin <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	*bytes = names[low - 1].bytes;
	if (!*bytes && low < table->names.len)
		*bytes = names[low].begin - names[low - 1].begin;
	return at - names[low - 1].begin < *bytes ? &names[low - 1] : NULL;
}

int ky_uftrace_names_tell(struct uftrace *uftrace, int64_t tid, int64_t pid, uint64_t address,
			  uint64_t ns)
{
	struct uftrace_names *all = &uftrace->names;
	uint64_t key = ky_hash_u64(address ^ ky_hash_u64((uint64_t)pid)), bytes;
	unsigned int n_finds = 0;

	if (!all->images.len || all->n_told >= TOLD_MAX || ky_map_get(&all->told, key))
		return KYMO_OK;
	if (ky_map_set(&all->told, key, all) < 0)
		return ky_error_nomem(uftrace->err);
	all->n_told++;
	ky_vec_foreach(&all->images, image) {
		const struct uftrace_name *name;

		if (image->pid != pid || address < image->begin || address >= image->end)
			continue;
		if (n_finds++ == FINDS_MAX)
			return KYMO_OK;
		name = uftrace_names_find(image->table, address - image->base, &bytes);
		if (!name)
			continue;
		ky_maker_begin(uftrace->maker, 0, uftrace->events[UFTRACE_FUNCTION], ns);
		ky_maker_number(uftrace->maker, (uint64_t)tid);
		ky_maker_number(uftrace->maker, (uint64_t)pid);
		ky_maker_number(uftrace->maker, image->base + name->begin);
		ky_maker_number(uftrace->maker, bytes);
		ky_maker_text(uftrace->maker, name->text, name->len);
		return ky_maker_commit(uftrace->maker, uftrace->err);
	}
	return KYMO_OK;
}

void ky_uftrace_names_fini(struct uftrace_names *names)
{
	const char *path;
	void *table;
	size_t at = 0;

	while (ky_names_next(&names->tables, &at, &path, &table))
		uftrace_names_free(table);
	ky_names_fini(&names->tables);
	ky_map_fini(&names->told);
	ky_vec_fini(&names->images);
}
