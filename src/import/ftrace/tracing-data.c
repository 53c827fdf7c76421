/* SPDX-License-Identifier: MIT */
#include "import/ftrace/tracing-data.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "kernel/events/print-fmt.h"
#include "kernel/tracefs/tracefs.h"

static const uint8_t magic[10] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

#define EVENTS_MAX     65536u
#define SYSTEMS_MAX    4096u
#define NAME_MAX_BYTES 256u
/* Of the texts in all descriptions: some dozens of a kernel's events have addresses of texts. */
#define TEXTS_MAX_BYTES (16u << 20)

void ky_tracing_data_init(struct ky_tracing_data *data)
{
	memset(data, 0, sizeof(*data));
	ky_arena_init(&data->arena);
}

void ky_tracing_data_fini(struct ky_tracing_data *data)
{
	ky_vec_fini(&data->events);
	ky_arena_fini(&data->arena);
}

uint32_t ky_tracing_event_id(const char *text)
{
	const char *line = strstr(text, "\nID:");
	char *end;
	unsigned long id;

	if (!line)
		return KY_TRACING_NO_ID;
	id = strtoul(line + 4, &end, 10);
	return end > line + 4 && id <= UINT16_MAX ? (uint32_t)id : KY_TRACING_NO_ID;
}

/* ---- pieces --------------------------------------------------------------------------- */

static bool tracing_data_take_u32(struct ky_foreign_file *file, uint64_t *at, const char *what,
				  uint32_t *value, struct kymo_error *err)
{
	const uint8_t *bytes = ky_foreign_bytes(file, *at, 4, what, err);

	if (bytes)
		*value = ky_foreign_u32(bytes, file->swap);
	*at += 4;
	return bytes;
}

static bool tracing_data_take_u64(struct ky_foreign_file *file, uint64_t *at, const char *what,
				  uint64_t *value, struct kymo_error *err)
{
	const uint8_t *bytes = ky_foreign_bytes(file, *at, 8, what, err);

	if (bytes)
		*value = ky_foreign_u64(bytes, file->swap);
	*at += 8;
	return bytes;
}

const char *ky_tracing_data_text(struct ky_tracing_data *data, struct ky_foreign_file *file,
				 uint64_t *at, size_t max, struct kymo_error *err)
{
	size_t room = *at < file->size_bytes ? (size_t)(file->size_bytes - *at) : 0;
	const uint8_t *bytes, *end;
	const char *text;

	room = room < max ? room : max;
	bytes = ky_foreign_bytes(file, *at, room ? room : 1, "a name", err);
	if (!bytes)
		return NULL;
	end = memchr(bytes, '\0', room);
	if (!end) {
		ky_foreign_bad(file, *at, "a name has no end", err);
		return NULL;
	}
	text = ky_arena_strndup(&data->arena, (const char *)bytes, (size_t)(end - bytes));
	if (!text)
		ky_error_nomem(err);
	*at += (uint64_t)(end - bytes) + 1;
	return text;
}

/* A text of a length that stands before it. */
static const char *take_counted(struct ky_tracing_data *data, struct ky_foreign_file *file,
				uint64_t *at, const char *what, size_t *len, struct kymo_error *err)
{
	const uint8_t *bytes;
	const char *text;
	uint64_t n;

	if (!tracing_data_take_u64(file, at, what, &n, err))
		return NULL;
	if (n > KY_TRACEFS_TEXT_MAX) {
		ky_foreign_bad(file, *at - 8, "the description of an event is too long", err);
		return NULL;
	}
	bytes = ky_foreign_bytes(file, *at, n, what, err);
	if (!bytes)
		return NULL;
	text = ky_arena_strndup(&data->arena, (const char *)bytes, (size_t)n);
	if (!text)
		ky_error_nomem(err);
	*at += n;
	*len = (size_t)n;
	return text;
}

static int tracing_data_take_event(struct ky_tracing_data *data, struct ky_foreign_file *file,
				   uint64_t *at, const char *system, struct kymo_error *err)
{
	struct ky_tracing_event event = {.system = system};

	event.text = take_counted(data, file, at, "the description of an event", &event.len, err);
	if (!event.text)
		return err ? err->code : KYMO_E_FORMAT;
	if (data->events.len == EVENTS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "%s describes too many events", file->path);
	event.len = strlen(event.text);
	event.id = ky_tracing_event_id(event.text);
	return ky_vec_push(&data->events, event) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- sections ------------------------------------------------------------------------- */

static int skip_counted(struct ky_foreign_file *file, uint64_t *at, bool wide, const char *what,
			struct kymo_error *err)
{
	uint64_t len = 0;
	uint32_t len32 = 0;

	if (wide ? !tracing_data_take_u64(file, at, what, &len, err)
		 : !tracing_data_take_u32(file, at, what, &len32, err))
		return err ? err->code : KYMO_E_FORMAT;
	len += len32;
	if (*at > file->size_bytes || len > file->size_bytes - *at)
		return ky_foreign_bad(file, *at, "the description of the kernel's events is cut",
				      err);
	*at += len;
	return KYMO_OK;
}

int ky_tracing_data_read_headers(struct ky_tracing_data *data, struct ky_foreign_file *file,
				 uint64_t *at, struct kymo_error *err)
{
	const char *name = ky_tracing_data_text(data, file, at, 16, err);
	size_t len;

	if (name && strcmp(name, "header_page") != 0)
		return ky_foreign_bad(file, *at, "the format of the kernel's pages is missing",
				      err);
	if (name)
		data->header_page = take_counted(data, file, at, "the format of pages",
						 &data->header_page_len, err);
	if (!name || !data->header_page)
		return err ? err->code : KYMO_E_FORMAT;
	name = ky_tracing_data_text(data, file, at, 16, err);
	if (name && strcmp(name, "header_event") == 0 &&
	    take_counted(data, file, at, "the format of records", &len, err))
		return KYMO_OK;
	return name ? ky_foreign_bad(file, *at, "the format of the kernel's records is missing",
				     err)
		    : (err ? err->code : KYMO_E_FORMAT);
}

int ky_tracing_data_read_ftrace(struct ky_tracing_data *data, struct ky_foreign_file *file,
				uint64_t *at, struct kymo_error *err)
{
	int ret = KYMO_OK;
	uint32_t n;

	if (!tracing_data_take_u32(file, at, "the number of events", &n, err))
		return err ? err->code : KYMO_E_FORMAT;
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = tracing_data_take_event(data, file, at, "ftrace", err);
	return ret;
}

static int read_system(struct ky_tracing_data *data, struct ky_foreign_file *file, uint64_t *at,
		       struct kymo_error *err)
{
	const char *system = ky_tracing_data_text(data, file, at, NAME_MAX_BYTES, err);
	int ret = KYMO_OK;
	uint32_t n;

	if (!system || !tracing_data_take_u32(file, at, "the number of events", &n, err))
		return err ? err->code : KYMO_E_FORMAT;
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = tracing_data_take_event(data, file, at, system, err);
	return ret;
}

int ky_tracing_data_read_systems(struct ky_tracing_data *data, struct ky_foreign_file *file,
				 uint64_t *at, struct kymo_error *err)
{
	int ret = KYMO_OK;
	uint32_t n;

	if (!tracing_data_take_u32(file, at, "the number of systems", &n, err))
		return err ? err->code : KYMO_E_FORMAT;
	if (n > SYSTEMS_MAX)
		return ky_foreign_bad(file, *at - 4, "there are too many systems of events", err);
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = read_system(data, file, at, err);
	return ret;
}

int ky_tracing_data_read_texts(struct ky_tracing_data *data, struct ky_foreign_file *file,
			       uint64_t *at, struct kymo_error *err)
{
	uint64_t begin = *at;
	const uint8_t *bytes;
	size_t len;
	int ret = skip_counted(file, at, false, "the kernel's texts", err);

	if (ret)
		return ret;
	len = (size_t)(*at - begin) - 4;
	if (!len || len > KY_TRACEFS_TEXT_MAX)
		return KYMO_OK;
	bytes = ky_foreign_bytes(file, begin + 4, len, "the kernel's texts", err);
	if (!bytes)
		return err ? err->code : KYMO_E_FORMAT;
	data->texts = ky_arena_strndup(&data->arena, (const char *)bytes, len);
	data->texts_len = data->texts ? strlen(data->texts) : 0;
	return data->texts ? KYMO_OK : ky_error_nomem(err);
}

/* Before the last line, where print-fmt.c looks for them. */
static int tracing_data_add_text(struct ky_tracing_data *data, struct ky_tracing_event *event,
				 const char *last, struct kymo_error *err)
{
	struct ky_strbuf whole = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	ky_strbuf_add(&whole, event->text, (size_t)(last - event->text));
	ky_strbuf_adds(&whole, KY_FORMAT_TEXTS);
	ky_strbuf_add(&whole, data->texts, data->texts_len);
	ky_strbuf_adds(&whole, last);
	event->text = ky_strbuf_failed(&whole)
			      ? NULL
			      : ky_arena_strndup(&data->arena, ky_strbuf_text(&whole), whole.len);
	event->len = whole.len;
	if (!event->text)
		ret = ky_error_nomem(err);
	ky_strbuf_fini(&whole);
	return ret;
}

int ky_tracing_data_add_texts(struct ky_tracing_data *data, struct kymo_error *err)
{
	int ret = KYMO_OK;

	while (data->n_told < data->events.len && data->texts && !ret) {
		struct ky_tracing_event *event = &data->events.data[data->n_told++];
		const char *last = strstr(event->text, "\nprint fmt:");
		const char *field = strstr(event->text, "char *");

		if (!last || !field || field > last ||
		    data->texts_len > TEXTS_MAX_BYTES - data->texts_bytes)
			continue;
		data->texts_bytes += data->texts_len;
		ret = tracing_data_add_text(data, event, last, err);
	}
	return ret;
}

/* Magic, version, byte order, the size of a long, the size of a page. *version: 6 has names of threads at the end. */
static int tracing_data_read_begin(struct ky_tracing_data *data, struct ky_foreign_file *file,
				   uint64_t *at, bool *has_names, struct kymo_error *err)
{
	const uint8_t *bytes =
		ky_foreign_bytes(file, *at, sizeof(magic), "the description of events", err);
	const char *version;

	if (!bytes)
		return err ? err->code : KYMO_E_FORMAT;
	if (memcmp(bytes, magic, sizeof(magic)) != 0)
		return ky_foreign_bad(file, *at,
				      "no description of the kernel's events begins here", err);
	*at += sizeof(magic);
	version = ky_tracing_data_text(data, file, at, 16, err);
	if (!version)
		return err ? err->code : KYMO_E_FORMAT;
	*has_names = strcmp(version, "0.6") == 0 || strcmp(version, "6") == 0;
	bytes = ky_foreign_bytes(file, *at, 6, "the description of events", err);
	if (!bytes)
		return err ? err->code : KYMO_E_FORMAT;
	data->big_endian = bytes[0] != 0;
	data->long_bytes = bytes[1];
	file->swap = data->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	data->page_bytes = ky_foreign_u32(bytes + 2, file->swap);
	*at += 6;
	return KYMO_OK;
}

int ky_tracing_data_read(struct ky_tracing_data *data, struct ky_foreign_file *file, uint64_t *at,
			 struct kymo_error *err)
{
	bool has_names = false;
	int ret = tracing_data_read_begin(data, file, at, &has_names, err);

	if (!ret)
		ret = ky_tracing_data_read_headers(data, file, at, err);
	if (!ret)
		ret = ky_tracing_data_read_ftrace(data, file, at, err);
	if (!ret)
		ret = ky_tracing_data_read_systems(data, file, at, err);
	if (!ret)
		ret = skip_counted(file, at, false, "the kernel's symbols", err);
	if (!ret)
		ret = ky_tracing_data_read_texts(data, file, at, err);
	if (!ret && has_names)
		ret = skip_counted(file, at, true, "the names of threads", err);
	return ret ? ret : ky_tracing_data_add_texts(data, err);
}
