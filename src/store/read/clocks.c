/* SPDX-License-Identifier: MIT */
#include "store/read/clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "store/read/sync-file.h"

#define NS_PER_S 1000000000

/* ---- shifting ---------------------------------------------------------------------------- */

/* "-1500", "+3ms", "2s": ns. */
static int parse_offset(const char *text, int64_t *ns)
{
	bool negative = *text == '-';
	uint64_t value;
	char *end;

	text += *text == '-' || *text == '+';
	if (*text < '0' || *text > '9')
		return KYMO_E_INVALID;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || (*end && ky_parse_duration(text, &value) < 0) || value > INT64_MAX)
		return KYMO_E_INVALID;
	*ns = negative ? -(int64_t)value : (int64_t)value;
	return KYMO_OK;
}

/*
 * Both what times are computed with, which is exact, and what metadata says, in whole cycles,
 * for those who write it again.
 */
static int shift_clock(struct ky_clock_class *clock, int64_t ns)
{
	int64_t seconds = ns / NS_PER_S, rest = ns % NS_PER_S;
	__int128 cycles;

	if (rest < 0) {
		rest += NS_PER_S;
		seconds--;
	}
	cycles = clock->offset_cycles + (__int128)rest * clock->frequency_hz / NS_PER_S;
	if (cycles > INT64_MAX ||
	    __builtin_add_overflow(clock->offset_s, seconds, &clock->offset_s) ||
	    __builtin_add_overflow(clock->base_ns, ns, &clock->base_ns))
		return KYMO_E_INVALID;
	clock->offset_cycles = (int64_t)cycles;
	/* CTF 2 wants less than a second of them. */
	if (clock->offset_cycles >= 0 && (uint64_t)clock->offset_cycles >= clock->frequency_hz) {
		clock->offset_s += (int64_t)((uint64_t)clock->offset_cycles / clock->frequency_hz);
		clock->offset_cycles =
			(int64_t)((uint64_t)clock->offset_cycles % clock->frequency_hz);
	}
	return KYMO_OK;
}

/* Does @pattern match @path, or what stands behind any '/' of it? */
static bool matches_end(const char *path, const char *pattern)
{
	bool found = ky_glob_match(pattern, path);

	for (const char *at = strchr(path, '/'); at && !found; at = strchr(at + 1, '/'))
		found = ky_glob_match(pattern, at + 1);
	return found;
}

bool ky_clocks_is_meant(const struct ky_trace *trace, const char *pattern)
{
	char *path = strdup(trace->path);
	size_t end = path ? strlen(path) : 0;
	bool found = path && matches_end(path, pattern);

	while (!found && end > trace->given_bytes) {
		while (end > trace->given_bytes && path[end - 1] != '/')
			end--;
		while (end > 1 && path[end - 1] == '/')
			end--;
		path[end] = '\0';
		found = end && matches_end(path, pattern);
	}
	free(path);
	return found;
}

/* Times are corrected as before the shift. */
static void move_sync(struct ky_trace *trace, int64_t ns)
{
	struct ky_sync *sync = trace->sync;

	ky_vec_foreach(&trace->cls->clocks, clock)
		(void)__builtin_add_overflow((*clock)->line.at_ns, ns, &(*clock)->line.at_ns);
	(void)__builtin_add_overflow(sync->at_ns, ns, &sync->at_ns);
	if (__builtin_add_overflow(sync->begin_ns, ns, &sync->begin_ns) ||
	    __builtin_add_overflow(sync->end_ns, ns, &sync->end_ns))
		sync->begin_ns = sync->end_ns = 0;
}

static int shift_trace(struct ky_trace *trace, int64_t ns, const char *offset,
		       struct kymo_error *err)
{
	trace->is_edited = true;
	ky_vec_foreach(&trace->cls->clocks, clock) {
		if (shift_clock(*clock, ns) < 0)
			return ky_error_set(err, KYMO_E_INVALID,
					    "the clock offset '%s' is too large", offset);
	}
	if (trace->sync)
		move_sync(trace, ns);
	return KYMO_OK;
}

/* Those that @pattern matches; NULL: all. */
static int shift_matching(struct ky_trace_set *set, const char *pattern, int64_t ns,
			  const char *offset, struct kymo_error *err)
{
	bool any = false;
	int ret = KYMO_OK;

	ky_vec_foreach(&set->traces, trace) {
		if (ret < 0 || (pattern && !ky_clocks_is_meant(*trace, pattern)))
			continue;
		any = true;
		ret = shift_trace(*trace, ns, offset, err);
	}
	return any ? ret
		   : ky_error_set(err, KYMO_E_INVALID, "no trace matches the clock offset '%s'",
				  offset);
}

static int clocks_shift(struct ky_trace_set *set, const char *offset, struct kymo_error *err)
{
	const char *colon = strrchr(offset, ':');
	size_t len = colon ? (size_t)(colon - offset) : 0;
	char *pattern;
	int64_t ns;
	int ret;

	if (parse_offset(colon ? colon + 1 : offset, &ns) < 0) {
		ky_error_set(err, KYMO_E_INVALID, "'%s' is not a clock offset", offset);
		ky_error_hint(err, "give nanoseconds or a unit: -1500, 3ms, or TRACE:-2s");
		return KYMO_E_INVALID;
	}
	if (!colon)
		return shift_matching(set, NULL, ns, offset, err);
	while (len > 1 && offset[len - 1] == '/')
		len--;
	pattern = strndup(offset, len);
	ret = pattern ? shift_matching(set, pattern, ns, offset, err) : ky_error_nomem(err);
	free(pattern);
	return ret;
}

int ky_clocks_shift(struct ky_trace_set *set, const char *const *offsets, size_t n_offsets,
		    struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < n_offsets && ret == KYMO_OK; i++)
		ret = clocks_shift(set, offsets[i], err);
	return ret;
}

/* ---- correlation ------------------------------------------------------------------------- */

static bool same_origin(const struct ky_clock_class *a, const struct ky_clock_class *b)
{
	if (a->is_unix_epoch || b->is_unix_epoch)
		return a->is_unix_epoch && b->is_unix_epoch;
	if (a->identity && b->identity)
		return strcmp(a->identity, b->identity) == 0;
	/* What one of CTF 1.8 and one of CTF 2 have in common. */
	if (a->has_uuid && b->has_uuid)
		return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
	if (a->identity || b->identity)
		return false;
	/* Without an identity in both, the same name decides. */
	return !a->has_uuid && !b->has_uuid && strcmp(a->name, b->name) == 0;
}

/* One run of `kymo sync` corrected both. */
static bool clocks_are_synced(const struct ky_trace *a, const struct ky_trace *b)
{
	return a->sync && b->sync && a->sync->group == b->sync->group;
}

int ky_clocks_correlate(const struct ky_trace_set *set, struct kymo_error *err)
{
	const struct ky_stream *first = NULL;

	ky_vec_foreach(&set->streams, it) {
		const struct ky_stream *stream = *it;

		/* Events without a time stand before all others: there is nothing to compare. */
		if (!stream->cls || !stream->cls->clock)
			continue;
		if (!first)
			first = stream;
		if (stream->trace == first->trace ||
		    clocks_are_synced(stream->trace, first->trace) ||
		    same_origin(stream->cls->clock, first->cls->clock))
			continue;
		ky_error_set(
			err, KYMO_E_FORMAT,
			"its clock \"%s\" and clock \"%s\" of %.200s do not count from the same "
			"origin: their times cannot be compared",
			stream->cls->clock->name, first->cls->clock->name, first->trace->path);
		ky_error_path(err, stream->trace->path);
		return KYMO_E_FORMAT;
	}
	return KYMO_OK;
}
