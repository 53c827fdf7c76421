/* SPDX-License-Identifier: MIT */
/*
 * Marks: events kymo:mark, which triggers write into the recording. They are a trace of their own, "marks", with
 * the recording's clock. It stays in memory until the traces are complete (a rotation, a snapshot, the end), so that
 * live readers need not wait for a stream that is almost always silent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "ctf/encode/packet-writer.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl.h"
#include "record/recording/recording-internal.h"
#include "store/directory/directory-store.h"
#include "store/packets/memory-trace.h"

/* The newest marks stay. */
#define KEEP_BYTES   (1u << 20)
#define PACKET_BYTES 16384u
#define TEXT_MAX     4096u
#define PLACE	     "marks"

/* ---- metadata -------------------------------------------------------------------------- */

static struct ky_clock_class *make_clock(struct ky_trace_class *trace,
					 const struct ky_os_clock *clock, struct kymo_error *err)
{
	struct ky_clock_class *cls = ky_clock_class_new(trace, clock->name);

	if (!cls) {
		ky_error_nomem(err);
		return NULL;
	}
	cls->description = clock->description;
	cls->has_uuid = true;
	memcpy(cls->uuid, clock->uuid, sizeof(cls->uuid));
	cls->is_unix_epoch = true;
	cls->frequency_hz = clock->frequency_hz;
	cls->offset_s = clock->offset_s;
	cls->offset_cycles = clock->offset_cycles;
	return ky_clock_finish(cls, err) < 0 ? NULL : cls;
}

static bool recording_marks_add_event(struct ky_stream_class *stream)
{
	struct ky_trace_class *trace = stream->trace;
	struct ky_event_class *event = ky_event_class_new(stream, 0, "kymo:mark");
	struct ky_field_class *st = event ? ky_struct_new(trace) : NULL;

	if (!st || !ky_struct_add_string(trace, st, "_name") ||
	    !ky_struct_add_string(trace, st, "_text") ||
	    !ky_struct_add_string(trace, st, "_event") ||
	    !ky_struct_add_int(trace, st, "_duration_ns", 64, false, 10))
		return false;
	event->payload = st;
	return true;
}

/* The trace model with @clock; NULL: @err says why. */
static struct ky_trace_class *make_model(const struct ky_recording_marks *marks,
					 const struct ky_os_clock *clock, struct kymo_error *err)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_clock_class *cls = trace ? make_clock(trace, clock, err) : NULL;
	struct ky_stream_class *stream = NULL;

	if (!trace) {
		ky_error_nomem(err);
		return NULL;
	}
	trace->has_uuid = true;
	memcpy(trace->uuid, marks->uuid, sizeof(trace->uuid));
	if (cls && !ky_env_add_text(trace, "domain", "kymo") &&
	    !ky_env_add_text(trace, "tracer_name", "kymo") &&
	    !ky_env_add_text(trace, "trace_name", PLACE) && !ky_lttng_layout_trace(trace))
		stream = ky_lttng_layout_stream(trace, 0, cls, false);
	if (cls && (!stream || !recording_marks_add_event(stream)))
		ky_error_nomem(err);
	else if (cls && ky_trace_class_finish(trace, true, err) == 0)
		return trace;
	ky_trace_class_free(trace);
	return NULL;
}

static int recording_marks_write_metadata(struct ky_recording_marks *marks,
					  const struct ky_os_clock *clock, struct kymo_error *err)
{
	struct ky_trace_class *trace = make_model(marks, clock, err);
	char *text = NULL;
	size_t len = 0;
	int ret;

	if (!trace)
		return err ? err->code : KYMO_E_MEMORY;
	ret = ky_tsdl_write(trace, &text, &len, err);
	if (!ret)
		ret = ky_store_metadata(marks->trace, text, len, err);
	free(text);
	ky_trace_class_free(trace);
	return ret;
}

/* ---- marks ----------------------------------------------------------------------------- */

static int open_marks(struct ky_recording_marks *marks, struct kymo_error *err)
{
	int ret;

	if (marks->trace)
		return KYMO_OK;
	if (getrandom(marks->uuid, sizeof(marks->uuid), 0) != sizeof(marks->uuid))
		return ky_error_errno(err, errno, "no random numbers");
	marks->uuid[6] = (marks->uuid[6] & 0x0f) | 0x40;
	marks->uuid[8] = (marks->uuid[8] & 0x3f) | 0x80;
	ret = ky_memory_trace_open(KEEP_BYTES, &marks->trace, err);
	if (!ret)
		marks->stream = ky_store_stream(marks->trace, "marks_0", err);
	if (!ret && marks->stream < 0)
		ret = marks->stream;
	if (!ret &&
	    ky_packet_writer_init(&marks->writer, PACKET_BYTES, marks->uuid, 0, 0, 0, false) < 0)
		ret = ky_error_nomem(err);
	return ret;
}

/* The time of the event in the trace's clock; never before the last mark. */
static uint64_t mark_cycles(const struct ky_recording *recording, int64_t ns)
{
	const struct ky_os_clock *clock = ky_recording_clock(recording);
	int64_t origin_ns = ky_os_clock_to_ns(clock, 0);
	uint64_t now = ky_os_clock_now(clock), cycles = 0;

	if (ns > origin_ns)
		cycles = ky_os_clock_cycles(clock, (uint64_t)(ns - origin_ns));
	if (cycles > now || cycles < recording->start_cycles)
		cycles = now;
	return cycles > recording->marks.last_cycles ? cycles : recording->marks.last_cycles + 1;
}

static uint8_t *recording_marks_put_text(uint8_t *at, const char *text)
{
	size_t len = strnlen(text, TEXT_MAX - 1);

	memcpy(at, text, len);
	at[len] = '\0';
	return at + len + 1;
}

static size_t text_bytes(const char *text)
{
	return strnlen(text, TEXT_MAX - 1) + 1;
}

int ky_recording_mark(struct ky_recording *recording, const struct ky_trigger_firing *firing,
		      const char *text, struct kymo_error *err)
{
	struct ky_recording_marks *marks = &recording->marks;
	const char *event = firing->event ? firing->event : "";
	uint64_t duration_ns = firing->hit.has_duration ? firing->hit.duration_ns : 0;
	struct ky_packet_out packet = {.n_events = 1};
	char name[32];
	uint8_t *at;
	int ret = open_marks(marks, err);

	if (ret < 0)
		return ret;
	snprintf(name, sizeof(name), "trigger %u", firing->trigger);
	marks->last_cycles = mark_cycles(recording, firing->hit.ns);
	ky_packet_writer_begin(&marks->writer, marks->last_cycles);
	packet.sequence = marks->writer.sequence;
	at = ky_packet_writer_event(&marks->writer, 0, marks->last_cycles,
				    (uint32_t)(text_bytes(text ? text : name) +
					       text_bytes(firing->condition) + text_bytes(event) +
					       sizeof(duration_ns)));
	if (!at)
		return ky_error_set(err, KYMO_E_LIMIT, "the mark is too long");
	at = recording_marks_put_text(at, text ? text : name);
	at = recording_marks_put_text(at, firing->condition);
	at = recording_marks_put_text(at, event);
	memcpy(at, &duration_ns, sizeof(duration_ns));
	packet.content_bits = UINT64_C(8) * marks->writer.used_bytes;
	packet.size_bytes = ky_packet_writer_close(&marks->writer, marks->last_cycles, 0, 8);
	packet.data = marks->writer.data;
	packet.begin_cycles = packet.end_cycles = marks->last_cycles;
	return ky_store_packet(marks->trace, marks->stream, &packet, err);
}

static int recording_marks_copy(struct ky_recording_marks *marks, struct ky_packet_store *store,
				const char *path, struct kymo_error *err)
{
	const struct ky_store_place place = {.path = path};
	struct ky_store_trace *to;
	uint64_t events = 0;
	int ret = ky_store_open(store, &place, &to, err), closed;

	if (ret < 0)
		return ret;
	ret = ky_memory_trace_copy_events(marks->trace, to, &events, err);
	closed = ky_store_close(to, ret < 0 ? NULL : err);
	return ret < 0 ? ret : closed;
}

int ky_recording_write_marks(struct ky_recording *recording, struct ky_packet_store *store,
			     const char *directory, const char *path,
			     const struct ky_os_clock *clock, struct kymo_error *err)
{
	struct ky_recording_marks *marks = &recording->marks;
	struct ky_packet_store *own = NULL;
	char place[PATH_MAX];
	int ret;

	if (!marks->trace)
		return KYMO_OK;
	ret = recording_marks_write_metadata(marks, clock, err);
	if (!ret && !store)
		ret = ky_directory_store_open(directory, &own, err);
	snprintf(place, sizeof(place), "%s%s" PLACE, path, *path ? "/" : "");
	if (!ret)
		ret = recording_marks_copy(marks, store ? store : own, place, err);
	ky_store_free(own);
	return ret;
}

void ky_recording_drop_marks(struct ky_recording *recording)
{
	struct ky_recording_marks *marks = &recording->marks;
	uint64_t last_cycles = marks->last_cycles;

	if (!marks->trace)
		return;
	(void)ky_store_close(marks->trace, NULL);
	ky_packet_writer_fini(&marks->writer);
	*marks = (struct ky_recording_marks){.last_cycles = last_cycles};
}
