/* SPDX-License-Identifier: MIT */
#include "store/read/sync-file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/json/json.h"

#define SYNC_VERSION 1

static const char *const quality_names[KY_SYNC_QUALITIES] = {"ABSENT", "INCOMPLETE", "APPROXIMATE",
							     "ACCURATE"};

const char *ky_sync_quality_name(enum ky_sync_quality quality)
{
	return quality_names[quality];
}

struct ky_sync *ky_sync_new(void)
{
	struct ky_sync *sync = calloc(1, sizeof(*sync));

	if (!sync)
		return NULL;
	ky_arena_init(&sync->arena);
	sync->machine = sync->reference = "";
	return sync;
}

void ky_sync_free(struct ky_sync *sync)
{
	if (!sync)
		return;
	ky_vec_fini(&sync->pairs);
	ky_arena_fini(&sync->arena);
	free(sync);
}

/* ---- bounds --------------------------------------------------------------------------- */

static uint64_t saturated(unsigned __int128 value)
{
	return value > INT64_MAX ? INT64_MAX : (uint64_t)value;
}

/* What the unknown part of the drift makes of @ns, rounded up. */
static unsigned __int128 grown(const struct ky_sync *sync, uint64_t ns)
{
	return ((unsigned __int128)ns * sync->drift_bound + KY_SYNC_DRIFT_ONE - 1) /
	       (unsigned __int128)KY_SYNC_DRIFT_ONE;
}

uint64_t ky_sync_bound(const struct ky_sync *sync, int64_t ns)
{
	uint64_t length = (uint64_t)sync->end_ns - (uint64_t)sync->begin_ns;
	unsigned __int128 sum;

	if (ns <= sync->begin_ns)
		return saturated(grown(sync, (uint64_t)sync->begin_ns - (uint64_t)ns) +
				 sync->begin_bound_ns);
	if (ns >= sync->end_ns)
		return saturated(grown(sync, (uint64_t)ns - (uint64_t)sync->end_ns) +
				 sync->end_bound_ns);
	/* The bound is convex between them: it is below the straight line. */
	sum = (unsigned __int128)((uint64_t)sync->end_ns - (uint64_t)ns) * sync->begin_bound_ns +
	      (unsigned __int128)((uint64_t)ns - (uint64_t)sync->begin_ns) * sync->end_bound_ns;
	return saturated((sum + length - 1) / length);
}

uint64_t ky_sync_bound_after(const struct ky_sync *sync, int64_t ns)
{
	__int128 before, drifted;

	if (!sync)
		return 0;
	/* The drift of the drift is too small to matter. */
	before = (__int128)ns - sync->shift_ns;
	drifted = (before - sync->at_ns) * sync->drift / KY_SYNC_DRIFT_ONE;
	before -= drifted;
	before = before < INT64_MIN ? INT64_MIN : before > INT64_MAX ? INT64_MAX : before;
	return ky_sync_bound(sync, (int64_t)before);
}

/* ---- reading -------------------------------------------------------------------------- */

static int sync_file_get_number(const struct ky_json *object, const char *key, int64_t least,
				int64_t most, int64_t *value, struct kymo_error *err)
{
	const struct ky_json *number = ky_json_get(object, key);

	if (!number || number->kind != KY_JSON_INTEGER)
		return ky_json_error(err, number ? number : object, "an integer \"%s\" is expected",
				     key);
	*value = (int64_t)number->integer.u;
	if ((!number->integer.negative && number->integer.u > INT64_MAX) || *value < least ||
	    *value > most)
		return ky_json_error(err, number, "\"%s\" is out of its range", key);
	return KYMO_OK;
}

static int get_count(const struct ky_json *object, const char *key, uint64_t *value,
		     struct kymo_error *err)
{
	return sync_file_get_number(object, key, 0, INT64_MAX, (int64_t *)value, err);
}

static int get_text(struct ky_sync *sync, const struct ky_json *object, const char *key,
		    const char **text, struct kymo_error *err)
{
	const struct ky_json *value = ky_json_get(object, key);

	if (!value || value->kind != KY_JSON_STRING || value->string.len > 4096 ||
	    memchr(value->string.data, 0, value->string.len))
		return ky_json_error(err, value ? value : object, "a text \"%s\" is expected", key);
	*text = ky_arena_strdup(&sync->arena, value->string.data);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

/* 16 hexadecimal digits. */
static int get_key(const struct ky_json *object, const char *key, uint64_t *value,
		   struct kymo_error *err)
{
	const struct ky_json *text = ky_json_get(object, key);

	if (!text || text->kind != KY_JSON_STRING || text->string.len != 16 ||
	    strspn(text->string.data, "0123456789abcdef") != 16)
		return ky_json_error(err, text ? text : object,
				     "16 hexadecimal digits \"%s\" are expected", key);
	*value = strtoull(text->string.data, NULL, 16);
	return KYMO_OK;
}

static int get_quality(const struct ky_json *object, enum ky_sync_quality *quality,
		       struct kymo_error *err)
{
	const struct ky_json *text = ky_json_get(object, "quality");

	for (int i = 0; text && text->kind == KY_JSON_STRING && i < KY_SYNC_QUALITIES; i++) {
		if (strcmp(text->string.data, quality_names[i]) == 0) {
			*quality = (enum ky_sync_quality)i;
			return KYMO_OK;
		}
	}
	return ky_json_error(err, text ? text : object, "\"quality\" is not known");
}

static int sync_file_parse_pair(struct ky_sync *sync, const struct ky_json *object,
				struct kymo_error *err)
{
	const struct ky_json *chosen = ky_json_get(object, "chosen");
	struct ky_sync_with with = {.is_chosen = chosen && chosen->kind == KY_JSON_BOOL &&
						 chosen->boolean};
	int ret;

	if (object->kind != KY_JSON_OBJECT)
		return ky_json_error(err, object, "an object is expected");
	if (sync->pairs.len == KY_SYNC_PAIRS_MAX)
		return ky_json_error(err, object, "there are too many pairs");
	ret = get_text(sync, object, "machine", &with.machine, err);
	ret = ret ? ret : get_quality(object, &with.quality, err);
	ret = ret ? ret : get_count(object, "messages_to", &with.n_to, err);
	ret = ret ? ret : get_count(object, "messages_from", &with.n_from, err);
	ret = ret ? ret : get_count(object, "bound_ns", &with.bound_ns, err);
	if (!ret && ky_vec_push(&sync->pairs, with) < 0)
		ret = ky_error_nomem(err);
	return ret;
}

static int parse_pairs(struct ky_sync *sync, const struct ky_json *root, struct kymo_error *err)
{
	const struct ky_json *pairs = ky_json_get(root, "pairs");
	int ret = KYMO_OK;

	if (!pairs || pairs->kind != KY_JSON_ARRAY)
		return ky_json_error(err, pairs ? pairs : root, "an array \"pairs\" is expected");
	for (const struct ky_json *it = pairs->list.first; it && !ret; it = it->next)
		ret = sync_file_parse_pair(sync, it, err);
	return ret;
}

static int sync_file_parse_line(struct ky_sync *sync, const struct ky_json *root,
				struct kymo_error *err)
{
	const int64_t far = INT64_MAX / 2;
	int ret = sync_file_get_number(root, "at_ns", -far, far, &sync->at_ns, err);

	ret = ret ? ret : sync_file_get_number(root, "shift_ns", -far, far, &sync->shift_ns, err);
	ret = ret ? ret
		  : sync_file_get_number(root, "drift", -KY_SYNC_DRIFT_MAX, KY_SYNC_DRIFT_MAX,
					 &sync->drift, err);
	ret = ret ? ret : sync_file_get_number(root, "begin_ns", -far, far, &sync->begin_ns, err);
	ret = ret ? ret
		  : sync_file_get_number(root, "end_ns", sync->begin_ns, far, &sync->end_ns, err);
	ret = ret ? ret : get_count(root, "begin_bound_ns", &sync->begin_bound_ns, err);
	ret = ret ? ret : get_count(root, "end_bound_ns", &sync->end_bound_ns, err);
	return ret ? ret : get_count(root, "drift_bound", &sync->drift_bound, err);
}

static int parse_root(struct ky_sync *sync, const struct ky_json *root, struct kymo_error *err)
{
	int64_t version;
	int ret;

	if (root->kind != KY_JSON_OBJECT)
		return ky_json_error(err, root, "an object is expected");
	ret = sync_file_get_number(root, "kymo_sync", SYNC_VERSION, SYNC_VERSION, &version, err);
	ret = ret ? ret : get_key(root, "trace", &sync->trace, err);
	ret = ret ? ret : get_key(root, "group", &sync->group, err);
	ret = ret ? ret : get_text(sync, root, "machine", &sync->machine, err);
	ret = ret ? ret : get_text(sync, root, "reference", &sync->reference, err);
	ret = ret ? ret : get_quality(root, &sync->quality, err);
	ret = ret ? ret : sync_file_parse_line(sync, root, err);
	return ret ? ret : parse_pairs(sync, root, err);
}

int ky_sync_parse(const char *bytes, size_t len, struct ky_sync **out, struct kymo_error *err)
{
	struct ky_sync *sync = ky_sync_new();
	struct ky_arena arena;
	struct ky_json_reader reader = {.at = bytes,
					.end = bytes + len,
					.line_begin = bytes,
					.line = 1,
					.arena = &arena,
					.err = err,
					.depth_left = 8};
	const struct ky_json *root = NULL;
	int ret;

	ky_error_clear(err);
	ky_arena_init(&arena);
	if (!sync)
		ret = ky_error_nomem(err);
	else if (!ky_json_more(&reader))
		ret = ky_error_set(err, KYMO_E_FORMAT, "it is empty");
	else if (!(root = ky_json_read(&reader)))
		ret = err->code;
	else
		ret = parse_root(sync, root, err);
	ky_arena_fini(&arena);
	if (ret < 0) {
		ky_sync_free(sync);
		sync = NULL;
	}
	*out = sync;
	return ret;
}

/* ---- writing -------------------------------------------------------------------------- */

static void sync_file_put_pair(struct ky_strbuf *out, const struct ky_sync_with *with)
{
	ky_strbuf_adds(out, "\n    {\"machine\": ");
	ky_json_put_text(out, with->machine, strlen(with->machine));
	ky_strbuf_addf(out,
		       ", \"quality\": \"%s\", \"messages_to\": %" PRIu64
		       ", \"messages_from\": %" PRIu64 ", \"bound_ns\": %" PRIu64
		       ", \"chosen\": %s}",
		       quality_names[with->quality], with->n_to, with->n_from, with->bound_ns,
		       with->is_chosen ? "true" : "false");
}

void ky_sync_put(struct ky_strbuf *out, const struct ky_sync *sync)
{
	ky_strbuf_addf(out, "{\n  \"kymo_sync\": %d,\n  \"trace\": \"%016" PRIx64 "\",\n",
		       SYNC_VERSION, sync->trace);
	ky_strbuf_addf(out, "  \"group\": \"%016" PRIx64 "\",\n  \"machine\": ", sync->group);
	ky_json_put_text(out, sync->machine, strlen(sync->machine));
	ky_strbuf_adds(out, ",\n  \"reference\": ");
	ky_json_put_text(out, sync->reference, strlen(sync->reference));
	ky_strbuf_addf(out, ",\n  \"quality\": \"%s\",\n", quality_names[sync->quality]);
	ky_strbuf_addf(out, "  \"at_ns\": %" PRId64 ",\n  \"shift_ns\": %" PRId64 ",\n",
		       sync->at_ns, sync->shift_ns);
	ky_strbuf_addf(out, "  \"drift\": %" PRId64 ",\n  \"drift_bound\": %" PRIu64 ",\n",
		       sync->drift, sync->drift_bound);
	ky_strbuf_addf(out, "  \"begin_ns\": %" PRId64 ",\n  \"end_ns\": %" PRId64 ",\n",
		       sync->begin_ns, sync->end_ns);
	ky_strbuf_addf(out,
		       "  \"begin_bound_ns\": %" PRIu64 ",\n  \"end_bound_ns\": %" PRIu64 ",\n",
		       sync->begin_bound_ns, sync->end_bound_ns);
	ky_strbuf_adds(out, "  \"pairs\": [");
	ky_vec_foreach(&sync->pairs, with) {
		ky_strbuf_adds(out, with == sync->pairs.data ? "" : ",");
		sync_file_put_pair(out, with);
	}
	ky_strbuf_adds(out, "\n  ]\n}\n");
}
