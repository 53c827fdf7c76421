/* SPDX-License-Identifier: MIT */
/*
 * Probes in programs as events of trackers: in the words of kymo record --probe and --sdt, and found by the same code. The
 * kernel gets no definitions: BPF programs are attached to the places, and fetch the arguments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "kernel/probe/probe.h"
#include "kernel/tracefs/format.h"
#include "latency/tracker/tracker-internal.h"

#define UPROBE	  "uprobe:"
#define URETPROBE "uretprobe:"
#define SDT	  "sdt:"

static const char *tracker_probe_behind(const char *pattern, const char *word)
{
	size_t len = strlen(word);

	return strncmp(pattern, word, len) == 0 ? pattern + len : NULL;
}

bool ky_tracker_is_probe(const char *pattern)
{
	return tracker_probe_behind(pattern, UPROBE) || tracker_probe_behind(pattern, URETPROBE) ||
	       tracker_probe_behind(pattern, SDT);
}

void ky_tracker_event_fini(struct ky_tracker_event *event)
{
	for (size_t i = 0; i < event->probe.n; i++)
		free(event->probe.places[i].path);
	event->probe.n = 0;
}

/* Without a list, a function's fields are what registers have, and its result. */
static int tracker_probe_add(struct ky_probes *probes, const char *pattern, struct kymo_error *err)
{
	const char *sdt = tracker_probe_behind(pattern, SDT),
		   *entry = tracker_probe_behind(pattern, UPROBE);
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	if (sdt)
		return ky_probes_add_sdt(probes, sdt, err);
	ky_strbuf_adds(&text, entry ? entry : tracker_probe_behind(pattern, URETPROBE));
	if (!strchr(ky_strbuf_text(&text), '('))
		ky_strbuf_adds(&text, entry ? "(arg1,arg2,arg3,arg4,arg5,arg6)" : "($retval)");
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : ky_probes_add_function(probes, ky_strbuf_text(&text), err);
	ky_strbuf_fini(&text);
	return ret;
}

/* "PATH:0x12(0x34) arg1=...": what stands before the arguments. */
static int tracker_probe_take_place(const char *text, struct ky_tracker_probe *probe,
				    struct kymo_error *err)
{
	size_t len = strcspn(text, " ");
	const char *colon = memrchr(text, ':', len);
	char *end;

	if (probe->n == KY_TRACKER_PLACES)
		return ky_error_set(err, KYMO_E_LIMIT,
				    "a tracker follows a probe in at most %d places",
				    KY_TRACKER_PLACES);
	if (!colon)
		return ky_error_set(err, KYMO_E_INVALID, "'%.200s' is no place", text);
	probe->places[probe->n].path = strndup(text, (size_t)(colon - text));
	if (!probe->places[probe->n].path)
		return ky_error_nomem(err);
	probe->places[probe->n].offset = strtoull(colon + 1, &end, 16);
	probe->places[probe->n].semaphore = *end == '(' ? strtoull(end + 1, NULL, 16) : 0;
	probe->n++;
	return KYMO_OK;
}

/* The fields " NAME=FETCH NAME=FETCH" of a place; all places of a probe have the same ones. */
static int take_fields(const char *definition, struct ky_arena *arena,
		       struct ky_tracker_place *place, struct ky_format *format,
		       struct kymo_error *err)
{
	size_t n = 0;
	int ret = KYMO_OK;

	for (const char *at = strchr(definition, ' '); at && n < KY_TRACKER_FETCHES && !ret;
	     at = strchr(at + 1, ' ')) {
		struct ky_format_field field = {.offset = (uint16_t)(n * KY_TRACKER_FETCH_BYTES)};
		size_t len = strcspn(at + 1, " "), name = strcspn(at + 1, "=");

		if (name >= len)
			continue;
		ret = ky_tracker_fetch(at + name + 2, len - name - 1, &place->fetches[n], &field,
				       err);
		field.name = ky_arena_strndup(arena, at + 1, name);
		if (!ret && !field.name)
			ret = ky_error_nomem(err);
		if (!ret)
			format->fields[n++] = field;
	}
	format->n_fields = n;
	return ret;
}

/* The one event that there is: a function's entry or its return, or an SDT probe. */
static int tracker_probe_choose(const struct ky_probes *probes, const char *pattern,
				const struct ky_probe_event **event, struct kymo_error *err)
{
	char type = tracker_probe_behind(pattern, URETPROBE) ? 'r' : 'p';
	size_t n = 0;

	ky_vec_foreach(&probes->events, it) {
		n += it->type == type;
		if (it->type == type && n == 1)
			*event = it;
	}
	if (n == 1)
		return KYMO_OK;
	if (!n) {
		ky_error_set(err, KYMO_E_INVALID, "'%s' has %s", pattern,
			     type == 'p' ? "only a result" : "no result among its arguments");
		ky_error_hint(err, "uprobe: has arguments, uretprobe: has $retval");
		return KYMO_E_INVALID;
	}
	ky_error_set(err, KYMO_E_INVALID, "'%s' is %zu probes, or has arguments of several types",
		     pattern, n);
	ky_error_hint(err, "name one probe, and the types of its arguments: (arg1:u64)");
	return KYMO_E_INVALID;
}

static int tracker_probe_take(const struct ky_probe_event *found, struct ky_arena *arena,
			      struct ky_tracker_event *event, struct ky_tracker_side *side,
			      struct ky_format *format, struct kymo_error *err)
{
	int ret = KYMO_OK;

	event->probe.is_return = found->type == 'r';
	format->name = ky_arena_strdup(arena, found->name);
	format->fields = ky_arena_alloc(arena, KY_TRACKER_FETCHES * sizeof(*format->fields));
	if (!format->name || !format->fields)
		return ky_error_nomem(err);
	ky_vec_foreach(&found->places, place) {
		size_t n = event->probe.n;

		if (!ret)
			ret = tracker_probe_take_place(*place, &event->probe, err);
		if (!ret) {
			side->places[n].offset = event->probe.places[n].offset;
			ret = take_fields(*place, arena, &side->places[n], format, err);
		}
	}
	side->n_places = (uint32_t)event->probe.n;
	return ret;
}

int ky_tracker_probe_find(const char *pattern, const struct ky_log *log, struct ky_arena *arena,
			  struct ky_tracker_event *event, struct ky_tracker_side *side,
			  struct ky_format *format, struct kymo_error *err)
{
	const struct ky_probe_event *found = NULL;
	struct ky_probes probes;
	int ret;

	ky_probes_init(&probes, log);
	ret = tracker_probe_add(&probes, pattern, err);
	if (!ret)
		ret = tracker_probe_choose(&probes, pattern, &found, err);
	if (!ret)
		ret = tracker_probe_take(found, arena, event, side, format, err);
	if (!ret)
		ky_probes_tell(&probes);
	ky_probes_fini(&probes);
	return ret;
}

static void tracker_probe_use(struct ky_tracker_side *side, const struct ky_condition_field *field)
{
	if (field->source == KY_CONDITION_INTEGER || field->source == KY_CONDITION_CHARS)
		side->used |= 1u << field->offset / KY_TRACKER_FETCH_BYTES;
}

void ky_tracker_probe_settle(struct ky_tracker_side *side)
{
	for (uint32_t i = 0; i < side->n_keys; i++)
		tracker_probe_use(side, &side->keys[i]);
	for (uint32_t i = 0; i < side->condition.n_steps; i++)
		tracker_probe_use(side, &side->condition.steps[i].field);
}
