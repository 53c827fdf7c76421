/* SPDX-License-Identifier: MIT */
/* What perf.data says of the events and of the machine. */
#include "base/error.h"
#include "import/perf/perf-file.h"

enum {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCK_DATA = 29,
};

#define EVENTS_MAX 65536u
#define IDS_MAX	   (1u << 20)
#define TEXT_MAX   4096u

/* Flags of perf_event_attr are a C bit field: of a big-endian machine, they begin with the highest bit of a byte. */
static bool perf_feature_flag(const struct ky_perf_file *perf, const uint8_t *flags, unsigned int n)
{
	return flags[n / 8] & (perf->big_endian ? 0x80u >> n % 8 : 1u << n % 8);
}

#define FLAG_SAMPLE_ID_ALL 18
#define FLAG_BUILD_ID	   34

bool ky_perf_attr_parse(const struct ky_perf_file *perf, const uint8_t *bytes, size_t size,
			struct ky_perf_attr *attr)
{
	bool swap = perf->file.swap;

	if (size < 48)
		return false;
	attr->type = ky_foreign_u32(bytes, swap);
	attr->config = ky_foreign_u64(bytes + 8, swap);
	attr->period = ky_foreign_u64(bytes + 16, swap);
	attr->sample_type = ky_foreign_u64(bytes + 24, swap);
	attr->read_format = ky_foreign_u64(bytes + 32, swap);
	attr->branch_type = size >= 80 ? ky_foreign_u64(bytes + 72, swap) : 0;
	attr->user_registers = size >= 88 ? ky_foreign_u64(bytes + 80, swap) : 0;
	attr->sample_id_all = perf_feature_flag(perf, bytes + 40, FLAG_SAMPLE_ID_ALL);
	attr->build_id = perf_feature_flag(perf, bytes + 40, FLAG_BUILD_ID);
	return true;
}

/* A text with its length, at *@at before @end. "": it makes no sense. NULL: memory is out, or the file is unreadable. */
static char *take_text(struct ky_perf_file *perf, uint64_t *at, uint64_t end,
		       struct kymo_error *err)
{
	const uint8_t *bytes;
	uint32_t len;

	if (end < *at || end - *at < 4)
		return ky_arena_strdup(&perf->arena, "");
	bytes = ky_foreign_bytes(&perf->file, *at, 4, "a feature", err);
	if (!bytes)
		return NULL;
	len = ky_foreign_u32(bytes, perf->file.swap);
	*at += 4;
	if (len > TEXT_MAX || len > end - *at)
		return ky_arena_strdup(&perf->arena, "");
	bytes = ky_foreign_bytes(&perf->file, *at, len ? len : 1, "a feature", err);
	if (!bytes)
		return NULL;
	*at += len;
	return ky_arena_strndup(&perf->arena, (const char *)bytes,
				strnlen((const char *)bytes, len));
}

static int perf_feature_failed(const struct kymo_error *err)
{
	return err && err->code ? err->code : KYMO_E_MEMORY;
}

/* An event of the list: its attribute, number of counters, name, their ids. */
static int take_description(struct ky_perf_file *perf, uint64_t *at, uint64_t end,
			    uint32_t attr_size, struct kymo_error *err)
{
	struct ky_perf_attr *attr = NULL;
	const uint8_t *bytes;
	uint32_t n_ids;
	char *name;

	*at += attr_size;
	bytes = ky_foreign_bytes(&perf->file, *at, 4, "the list of events", err);
	if (!bytes)
		return perf_feature_failed(err);
	n_ids = ky_foreign_u32(bytes, perf->file.swap);
	*at += 4;
	name = take_text(perf, at, end, err);
	if (!name)
		return perf_feature_failed(err);
	if (n_ids > IDS_MAX)
		return ky_foreign_bad(&perf->file, *at, "an event has too many counters", err);
	if (n_ids) {
		bytes = ky_foreign_bytes(&perf->file, *at, 8, "the list of events", err);
		if (!bytes)
			return perf_feature_failed(err);
		attr = ky_perf_attr(perf, ky_foreign_u64(bytes, perf->file.swap));
	}
	if (attr && *name)
		attr->name = name;
	*at += 8ull * n_ids;
	return KYMO_OK;
}

static int take_descriptions(struct ky_perf_file *perf, uint64_t at, uint64_t size,
			     struct kymo_error *err)
{
	const uint8_t *bytes =
		size < 8 ? NULL : ky_foreign_bytes(&perf->file, at, 8, "the list of events", err);
	uint64_t end = at + size;
	uint32_t n, attr_size;
	int ret = KYMO_OK;

	if (!bytes)
		return size < 8 ? KYMO_OK : perf_feature_failed(err);
	n = ky_foreign_u32(bytes, perf->file.swap);
	attr_size = ky_foreign_u32(bytes + 4, perf->file.swap);
	at += 8;
	if (n > EVENTS_MAX || attr_size > 4096)
		return ky_foreign_bad(&perf->file, at - 8, "the list of events makes no sense",
				      err);
	for (uint32_t i = 0; i < n && at < end && !ret; i++)
		ret = take_description(perf, &at, end, attr_size, err);
	return ret;
}

/* {u32 version, u32 clockid, u64 wall clock ns, u64 clock's ns} */
static int take_clock(struct ky_perf_file *perf, uint64_t at, uint64_t size, struct kymo_error *err)
{
	const uint8_t *bytes =
		size < 24 ? NULL : ky_foreign_bytes(&perf->file, at, 24, "the clock", err);

	if (!bytes)
		return size < 24 ? KYMO_OK : perf_feature_failed(err);
	perf->wall_ns = ky_foreign_u64(bytes + 8, perf->file.swap);
	perf->clock_ns = ky_foreign_u64(bytes + 16, perf->file.swap);
	return KYMO_OK;
}

static int take_tracing(struct ky_perf_file *perf, uint64_t at, struct kymo_error *err)
{
	bool swap = perf->file.swap;
	int ret;

	if (perf->has_tracing)
		return KYMO_OK;
	perf->has_tracing = true;
	ret = ky_tracing_data_read(&perf->tracing, &perf->file, &at, err);
	perf->file.swap = swap;
	return ret;
}

int ky_perf_feature(struct ky_perf_file *perf, unsigned int number, uint64_t at, uint64_t size,
		    struct kymo_error *err)
{
	char *text;

	if (at > perf->file.size_bytes || size > perf->file.size_bytes - at) {
		if (number == FEATURE_TRACING_DATA)
			(void)take_tracing(perf, at, NULL);
		return ky_foreign_bad(&perf->file, at,
				      "a feature is cut: it lies beyond the file's end", err);
	}
	switch (number) {
	case FEATURE_TRACING_DATA:
		return take_tracing(perf, at, err);
	case FEATURE_BUILD_ID:
		return ky_perf_take_build_ids(perf, at, size) < 0 ? ky_error_nomem(err) : KYMO_OK;
	case FEATURE_HOSTNAME:
	case FEATURE_OSRELEASE:
	case FEATURE_ARCH:
		text = take_text(perf, &at, at + size, err);
		if (number == FEATURE_HOSTNAME)
			perf->hostname = text;
		else if (number == FEATURE_OSRELEASE)
			perf->release = text;
		else
			perf->arch = text;
		return text ? KYMO_OK : perf_feature_failed(err);
	case FEATURE_EVENT_DESC:
		return take_descriptions(perf, at, size, err);
	case FEATURE_CLOCK_DATA:
		return take_clock(perf, at, size, err);
	default:
		return KYMO_OK;
	}
}
