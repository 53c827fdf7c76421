/* SPDX-License-Identifier: MIT */
#include "view/tsp/tsp-parameters.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "ctf/json/json.h"

/* Nested deeper than any request. */
#define MAX_DEPTH 16
/* The times of the protocol: more than any trace's, and sums do not overflow. */
#define MAX_NS (INT64_MAX / 4)

struct take {
	struct ky_arena *arena;
	struct ky_tsp_request *request;
	struct kymo_error *err;
	const char *name; /* of the parameter, for messages */
};

/* ---- values ------------------------------------------------------------------------------ */

static int tsp_parameters_refuse(const struct take *take, const char *what)
{
	return ky_error_set(take->err, KYMO_E_INVALID, "the parameter '%s' is not %s", take->name,
			    what);
}

static int take_int(const struct take *take, const struct ky_json *value, int64_t min, int64_t max,
		    int64_t *out)
{
	int64_t number;

	if (!value || value->kind != KY_JSON_INTEGER ||
	    (!value->integer.negative && value->integer.u > INT64_MAX))
		return tsp_parameters_refuse(take, "an integer of 64 bits");
	number = (int64_t)value->integer.u;
	if (number < min || number > max)
		return ky_error_set(take->err, KYMO_E_INVALID,
				    "the parameter '%s' is not from %lld to %lld", take->name,
				    (long long)min, (long long)max);
	*out = number;
	return KYMO_OK;
}

static int tsp_parameters_take_text(const struct take *take, const struct ky_json *value,
				    size_t max_bytes, const char **out)
{
	if (!value || value->kind != KY_JSON_STRING)
		return tsp_parameters_refuse(take, "a text");
	if (value->string.len >= max_bytes || strlen(value->string.data) != value->string.len)
		return ky_error_set(take->err, KYMO_E_INVALID, "the parameter '%s' is too long",
				    take->name);
	*out = value->string.data;
	return KYMO_OK;
}

static int take_ints(const struct take *take, const struct ky_json *array, const int64_t **out,
		     size_t *n)
{
	int64_t *numbers;
	size_t i = 0;
	int ret = KYMO_OK;

	if (array->kind != KY_JSON_ARRAY)
		return tsp_parameters_refuse(take, "an array of integers");
	numbers = ky_arena_array(take->arena, array->list.len + 1, sizeof(*numbers));
	if (!numbers)
		return ky_error_nomem(take->err);
	for (const struct ky_json *one = array->list.first; one && !ret; one = one->next)
		ret = take_int(take, one, INT64_MIN, INT64_MAX, &numbers[i++]);
	*out = numbers;
	*n = i;
	return ret;
}

static int take_texts(const struct take *take, const struct ky_json *array, size_t max_bytes,
		      struct ky_tsp_texts *out)
{
	const char **texts;
	int ret = KYMO_OK;

	if (array->kind != KY_JSON_ARRAY)
		return tsp_parameters_refuse(take, "an array of texts");
	texts = ky_arena_array(take->arena, array->list.len + 1, sizeof(*texts));
	if (!texts)
		return ky_error_nomem(take->err);
	out->data = texts;
	out->len = 0;
	for (const struct ky_json *one = array->list.first; one && !ret; one = one->next)
		ret = tsp_parameters_take_text(take, one, max_bytes, &texts[out->len++]);
	return ret;
}

/* ---- parameters -------------------------------------------------------------------------- */

static int take_range(struct take *take, const struct ky_json *value)
{
	struct ky_tsp_request *request = take->request;
	const struct ky_json *times = ky_json_get(value, "nbTimes");
	int64_t n;
	int ret;

	if (value->kind != KY_JSON_OBJECT)
		return tsp_parameters_refuse(take, "an object");
	take->name = "start";
	ret = take_int(take, ky_json_get(value, "start"), -MAX_NS, MAX_NS, &request->begin_ns);
	take->name = "end";
	if (ret == KYMO_OK)
		ret = take_int(take, ky_json_get(value, "end"), -MAX_NS, MAX_NS, &request->end_ns);
	if (ret == KYMO_OK && request->end_ns < request->begin_ns)
		ret = ky_error_set(take->err, KYMO_E_INVALID, "the range ends before its begin");
	take->name = "nbTimes";
	if (ret == KYMO_OK && times) {
		ret = take_int(take, times, 1, KY_TSP_TIMES, &n);
		request->n_times = ret == KYMO_OK ? (size_t)n : 0;
	}
	request->has_range = ret == KYMO_OK;
	return ret;
}

static int tsp_parameters_take_times(struct take *take, const struct ky_json *value)
{
	if (value->kind != KY_JSON_ARRAY || value->list.len != 1)
		return tsp_parameters_refuse(take, "an array with one time");
	take->request->has_time = true;
	return take_int(take, value->list.first, -MAX_NS, MAX_NS, &take->request->time_ns);
}

static int take_searches(struct take *take, const struct ky_json *value)
{
	struct ky_tsp_search *searches;
	size_t n = 0;
	int ret = KYMO_OK;

	if (value->kind != KY_JSON_OBJECT)
		return tsp_parameters_refuse(take, "an object");
	searches = ky_arena_array(take->arena, value->list.len + 1, sizeof(*searches));
	if (!searches)
		return ky_error_nomem(take->err);
	for (const struct ky_json *one = value->list.first; one && !ret; one = one->next, n++) {
		ret = tsp_parameters_take_text(take, one, KY_TSP_FILTER_BYTES,
					       &searches[n].pattern);
		if (ret == KYMO_OK && ky_parse_u64(one->key, &searches[n].column) < 0)
			ret = tsp_parameters_refuse(take, "an object with the ids of columns");
	}
	take->request->searches = searches;
	take->request->n_searches = n;
	return ret;
}

static int take_direction(struct take *take, const struct ky_json *value)
{
	const char *text = "";
	int ret = tsp_parameters_take_text(take, value, KY_TSP_NAME_BYTES, &text);

	if (ret == KYMO_OK && strcmp(text, "NEXT") != 0 && strcmp(text, "PREVIOUS") != 0)
		ret = tsp_parameters_refuse(take, "NEXT or PREVIOUS");
	take->request->has_direction = true;
	take->request->is_backward = strcmp(text, "PREVIOUS") == 0;
	return ret;
}

static int take_element(struct take *take, const struct ky_json *value)
{
	static const char *const names[][2] = {
		{"state", "STATE"}, {"arrow", "ARROW"}, {"annotation", "ANNOTATION"}};
	struct ky_tsp_request *request = take->request;
	const struct ky_json *target;
	const char *text = "";
	size_t i = 0;
	int ret;

	if (value->kind != KY_JSON_OBJECT)
		return tsp_parameters_refuse(take, "an object");
	take->name = "elementType";
	ret = tsp_parameters_take_text(take, ky_json_get(value, "elementType"), KY_TSP_NAME_BYTES,
				       &text);
	while (i < 3 && strcmp(text, names[i][0]) != 0 && strcmp(text, names[i][1]) != 0)
		i++;
	if (ret == KYMO_OK && i == 3)
		ret = tsp_parameters_refuse(take, "a state, an arrow or an annotation");
	request->element = (enum ky_tsp_element)i;
	take->name = "time";
	if (ret == KYMO_OK)
		ret = take_int(take, ky_json_get(value, "time"), -MAX_NS, MAX_NS,
			       &request->element_ns);
	take->name = "duration";
	if (ret == KYMO_OK)
		ret = take_int(take, ky_json_get(value, "duration"), 0, MAX_NS,
			       &request->element_duration_ns);
	take->name = "destinationId";
	target = ky_json_get(value, "destinationId");
	request->element_target = -1;
	return ret == KYMO_OK && target
		       ? take_int(take, target, -1, INT64_MAX, &request->element_target)
		       : ret;
}

#define FILTERS_MAX 64

/* {"filter_expressions_map": {"1": dim what does not match, "4": exclude it}} */
static int take_state_filter(struct take *take, const struct ky_json *value)
{
	const struct ky_json *map;
	int ret = KYMO_OK;

	if (value->kind != KY_JSON_OBJECT)
		return tsp_parameters_refuse(take, "an object");
	map = ky_json_get(value, "filter_expressions_map");
	take->name = "filter_expressions_map";
	if (!map || map->kind != KY_JSON_OBJECT)
		return map && map->kind == KY_JSON_NULL ? KYMO_OK
							: tsp_parameters_refuse(take, "an object");
	for (const struct ky_json *one = map->list.first; one && !ret; one = one->next) {
		struct ky_tsp_texts *texts =
			strcmp(one->key, "4") == 0 ? &take->request->exclude : &take->request->dim;

		if (strcmp(one->key, "1") != 0 && strcmp(one->key, "4") != 0)
			return tsp_parameters_refuse(take, "an object with the keys 1 and 4");
		ret = take_texts(take, one, KY_TSP_FILTER_BYTES, texts);
		/* Each state is compared with each. */
		if (!ret && texts->len > FILTERS_MAX)
			ret = tsp_parameters_refuse(take, "at most 64 expressions");
	}
	return ret;
}

static int tsp_parameters_take_number(struct take *take, const struct ky_json *value,
				      unsigned int bit)
{
	struct ky_tsp_request *request = take->request;
	int64_t number = 0;
	int ret;

	request->has_start |= bit == KY_TSP_HAS_PATH_START;
	request->has_end |= bit == KY_TSP_HAS_PATH_END;
	if (bit == KY_TSP_HAS_TID)
		return take_int(take, value, 0, INT32_MAX, &request->tid);
	if (bit == KY_TSP_HAS_START || bit == KY_TSP_HAS_PATH_START)
		return take_int(take, value, -MAX_NS, MAX_NS, &request->begin_ns);
	if (bit == KY_TSP_HAS_END || bit == KY_TSP_HAS_PATH_END)
		return take_int(take, value, -MAX_NS, MAX_NS, &request->end_ns);
	ret = take_int(take, value, 0, bit == KY_TSP_HAS_COUNT ? KY_TSP_LINES : INT64_MAX, &number);
	if (bit == KY_TSP_HAS_COUNT) {
		request->count = (uint64_t)number;
	} else {
		request->index = (uint64_t)number;
		request->has_index = true;
	}
	return ret;
}

static int take_list(struct take *take, const struct ky_json *value, unsigned int bit)
{
	struct ky_tsp_request *request = take->request;

	switch (bit) {
	case KY_TSP_HAS_ITEMS:
		return take_ints(take, value, &request->items, &request->n_items);
	case KY_TSP_HAS_COLUMNS:
		request->has_columns = true;
		return take_ints(take, value, &request->columns, &request->n_columns);
	case KY_TSP_HAS_TRACES:
		return take_texts(take, value, KY_TSP_UUID_BYTES, &request->traces);
	case KY_TSP_HAS_CATEGORIES:
		request->has_categories = true;
		return take_texts(take, value, KY_TSP_NAME_BYTES, &request->categories);
	default:
		return tsp_parameters_take_times(take, value);
	}
}

static int take_one(struct take *take, const struct ky_json *value, unsigned int bit)
{
	struct ky_tsp_request *request = take->request;

	switch (bit) {
	case KY_TSP_HAS_URI:
		return tsp_parameters_take_text(take, value, KY_TSP_PATH_BYTES, &request->uri);
	case KY_TSP_HAS_NAME:
		return tsp_parameters_take_text(take, value, KY_TSP_NAME_BYTES, &request->name);
	case KY_TSP_HAS_FILTER:
		return tsp_parameters_take_text(take, value, KY_TSP_FILTER_BYTES, &request->filter);
	case KY_TSP_HAS_RANGE:
		return take_range(take, value);
	case KY_TSP_HAS_SEARCH:
		return take_searches(take, value);
	case KY_TSP_HAS_DIRECTION:
		return take_direction(take, value);
	case KY_TSP_HAS_ELEMENT:
		return take_element(take, value);
	case KY_TSP_HAS_STATE_FILTER:
		return take_state_filter(take, value);
	case KY_TSP_HAS_TID:
	case KY_TSP_HAS_PATH_START:
	case KY_TSP_HAS_PATH_END:
	case KY_TSP_HAS_START:
	case KY_TSP_HAS_END:
	case KY_TSP_HAS_INDEX:
	case KY_TSP_HAS_COUNT:
		return tsp_parameters_take_number(take, value, bit);
	default:
		return take_list(take, value, bit);
	}
}

static const struct {
	const char *name;
	unsigned int bit;
} keys[] = {
	{"uri", KY_TSP_HAS_URI},
	{"name", KY_TSP_HAS_NAME},
	{"traces", KY_TSP_HAS_TRACES},
	{"start", KY_TSP_HAS_START},
	{"end", KY_TSP_HAS_END},
	{"tid", KY_TSP_HAS_TID},
	{"start", KY_TSP_HAS_PATH_START},
	{"end", KY_TSP_HAS_PATH_END},
	{"requested_timerange", KY_TSP_HAS_RANGE},
	{"requested_items", KY_TSP_HAS_ITEMS},
	{"requested_times", KY_TSP_HAS_TIMES},
	{"requested_table_index", KY_TSP_HAS_INDEX},
	{"requested_table_count", KY_TSP_HAS_COUNT},
	{"requested_table_column_ids", KY_TSP_HAS_COLUMNS},
	{"table_search_expressions", KY_TSP_HAS_SEARCH},
	{"table_search_direction", KY_TSP_HAS_DIRECTION},
	{"requested_element", KY_TSP_HAS_ELEMENT},
	{"filter_query_parameters", KY_TSP_HAS_STATE_FILTER},
	{"requested_marker_categories", KY_TSP_HAS_CATEGORIES},
	{"kymo_filter", KY_TSP_HAS_FILTER}, /* our own: the language of --filter */
};

static int tsp_parameters_take_all(struct take *take, const struct ky_json *object,
				   unsigned int needs, unsigned int may)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && ret == KYMO_OK; i++) {
		const struct ky_json *value;

		if (!(keys[i].bit & (needs | may)))
			continue;
		value = ky_json_get(object, keys[i].name);
		take->name = keys[i].name;
		if (value && (keys[i].bit & needs || value->kind != KY_JSON_NULL))
			ret = take_one(take, value, keys[i].bit);
		else if (keys[i].bit & needs)
			ret = ky_error_set(take->err, KYMO_E_INVALID,
					   "the parameter '%s' is missing", keys[i].name);
	}
	return ret;
}

/* A configuration's name and type are beside its parameters. */
static int tsp_parameters_take_configuration(struct take *take, const struct ky_json *root)
{
	const struct ky_json *name = ky_json_get(root, "name");
	const struct ky_json *type = ky_json_get(root, "sourceTypeId");
	int ret = KYMO_OK;

	take->request->has_range = take->request->has_start && take->request->has_end;
	take->name = "name";
	if (name)
		ret = tsp_parameters_take_text(take, name, KY_TSP_NAME_BYTES, &take->request->name);
	take->name = "sourceTypeId";
	if (ret == KYMO_OK && type)
		ret = tsp_parameters_take_text(take, type, KY_TSP_NAME_BYTES,
					       &take->request->source_type);
	return ret;
}

/* ---- the body ---------------------------------------------------------------------------- */

int ky_tsp_parameters(const char *body, size_t len, unsigned int needs, unsigned int may,
		      struct ky_arena *arena, struct ky_tsp_request *request,
		      struct kymo_error *err)
{
	struct take take = {arena, request, err, "parameters"};
	struct ky_json_reader reader = {
		body, body + len, body, 1, arena, err, MAX_DEPTH,
	};
	const struct ky_json *root = ky_json_read(&reader), *object;

	if (!root && err && err->code == KYMO_E_MEMORY)
		return KYMO_E_MEMORY;
	if (!root || ky_json_more(&reader))
		return ky_error_set(err, KYMO_E_INVALID, "the body is not one JSON value");
	if (root->kind != KY_JSON_OBJECT)
		return ky_error_set(err, KYMO_E_INVALID, "the body is not a JSON object");
	object = ky_json_get(root, "parameters");
	if (!object || object->kind != KY_JSON_OBJECT)
		return tsp_parameters_refuse(&take, "an object");
	if (tsp_parameters_take_all(&take, object, needs, may) < 0)
		return err && err->code ? err->code : KYMO_E_INVALID;
	if (needs & KY_TSP_HAS_TID && tsp_parameters_take_configuration(&take, root) < 0)
		return err && err->code ? err->code : KYMO_E_INVALID;
	if (needs & KY_TSP_HAS_START && request->end_ns < request->begin_ns)
		return ky_error_set(err, KYMO_E_INVALID, "the bookmark ends before its begin");
	return KYMO_OK;
}
