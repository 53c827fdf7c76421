/* SPDX-License-Identifier: MIT */
/* Clock classes of CTF 2. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "ctf/ctf2/ctf2-read.h"

static int read_offset(struct ky_ctf2_reader *r, const struct ky_json *fragment,
		       struct ky_clock_class *clock)
{
	const struct ky_json *offset = ky_json_get(fragment, "offset-from-origin"), *seconds;
	uint64_t cycles = 0;
	int ret;

	if (!offset)
		return KYMO_OK;
	if (ky_ctf2_need_object(r, offset, "'offset-from-origin'") < 0)
		return KYMO_E_FORMAT;
	seconds = ky_json_get(offset, "seconds");
	if (seconds && (seconds->kind != KY_JSON_INTEGER ||
			(!seconds->integer.negative && seconds->integer.u > INT64_MAX)))
		return ky_json_error(r->err, seconds, "'seconds' must be a 64-bit integer");
	ret = ky_ctf2_uint(r, offset, "cycles", false, &cycles);
	if (ret < 0)
		return ret;
	if (cycles >= clock->frequency_hz)
		return ky_json_error(r->err, offset, "'cycles' must be less than the frequency");
	clock->offset_s = seconds ? (int64_t)seconds->integer.u : 0;
	clock->offset_cycles = (int64_t)cycles;
	return KYMO_OK;
}

/* Of an origin, or of the clock itself: namespace (which may be missing), name and uid. */
static int read_identity(struct ky_ctf2_reader *r, const struct ky_json *object, bool required,
			 struct ky_identity *identity)
{
	int ret = ky_ctf2_string(r, object, "namespace", false, &identity->space);

	if (ret == KYMO_OK)
		ret = ky_ctf2_string(r, object, "name", required, &identity->name);
	if (ret == KYMO_OK)
		ret = ky_ctf2_string(r, object, "uid", required, &identity->uid);
	return ret;
}

/* What clocks are compared by, when there is enough of it. */
static int name_clock(struct ky_ctf2_reader *r, const char *kind, const struct ky_identity *of,
		      struct ky_clock_class *clock)
{
	if (!of->name || !of->uid)
		return KYMO_OK;
	clock->identity = ky_arena_printf(&r->trace->arena, "%s\n%s\n%s\n%s", kind,
					  of->space ? of->space : "", of->name, of->uid);
	return clock->identity ? KYMO_OK : ky_error_nomem(r->err);
}

static int read_self(struct ky_ctf2_reader *r, const struct ky_json *fragment,
		     struct ky_clock_class *clock)
{
	int ret = read_identity(r, fragment, false, &clock->self);

	/* A UID may be any text; that of a clock that CTF 1.8 described is its UUID. */
	if (ret == KYMO_OK && clock->self.uid)
		clock->has_uuid = ky_parse_uuid(clock->self.uid, clock->uuid);
	return ret;
}

static int read_origin(struct ky_ctf2_reader *r, const struct ky_json *fragment,
		       struct ky_clock_class *clock)
{
	const struct ky_json *origin = ky_json_get(fragment, "origin");
	int ret;

	if (!origin)
		return name_clock(r, "clock", &clock->self, clock);
	if (origin->kind == KY_JSON_STRING) {
		clock->is_unix_epoch = strcmp(origin->string.data, "unix-epoch") == 0;
		return clock->is_unix_epoch
			       ? KYMO_OK
			       : ky_json_error(r->err, origin, "unknown clock origin '%s'",
					       origin->string.data);
	}
	if (ky_ctf2_need_object(r, origin, "'origin'") < 0)
		return KYMO_E_FORMAT;
	ret = read_identity(r, origin, true, &clock->origin);
	return ret < 0 ? ret : name_clock(r, "origin", &clock->origin, clock);
}

struct ky_clock_class *ky_ctf2_find_clock(struct ky_ctf2_reader *r, const char *id)
{
	return ky_names_get(&r->clocks, id);
}

int ky_ctf2_clock(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	struct ky_clock_class *clock;
	const char *id;
	int ret = ky_ctf2_string(r, fragment, "id", true, &id);

	if (ret < 0)
		return ret;
	if (ky_ctf2_find_clock(r, id))
		return ky_json_error(r->err, fragment, "there is a clock class '%s' already", id);
	clock = ky_clock_class_new(r->trace, id);
	if (!clock || ky_names_set(&r->clocks, clock->name, clock) < 0)
		return ky_error_nomem(r->err);
	ret = ky_ctf2_uint(r, fragment, "frequency", true, &clock->frequency_hz);
	if (ret == KYMO_OK && !clock->frequency_hz)
		return ky_json_error(r->err, fragment, "a clock's frequency must not be 0");
	if (ret == KYMO_OK)
		ret = ky_ctf2_string(r, fragment, "description", false, &clock->description);
	if (ret == KYMO_OK)
		ret = ky_ctf2_uint(r, fragment, "precision", false, &clock->precision_cycles);
	if (ret == KYMO_OK)
		ret = ky_ctf2_uint(r, fragment, "accuracy", false, &clock->accuracy_cycles);
	clock->has_accuracy = ky_json_get(fragment, "accuracy");
	if (ret == KYMO_OK)
		ret = ky_ctf2_attributes(r, fragment, &clock->attributes);
	if (ret == KYMO_OK)
		ret = read_self(r, fragment, clock);
	if (ret == KYMO_OK)
		ret = read_origin(r, fragment, clock);
	return ret < 0 ? ret : read_offset(r, fragment, clock);
}
