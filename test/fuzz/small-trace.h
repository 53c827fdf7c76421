/* SPDX-License-Identifier: MIT */
/* A small kernel trace for fuzzers that read one: 20 switches, wake-ups, and marks, with names that want quotes. */
#ifndef KY_TEST_FUZZ_SMALL_TRACE_H
#define KY_TEST_FUZZ_SMALL_TRACE_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/strbuf.h"

static const char small_metadata[] =
	"/* CTF 1.8 */ typealias integer { size = 8; align = 8; } := u8;\n"
	"typealias integer { size = 16; align = 8; } := u16;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := s32;\n"
	"typealias integer { size = 8; align = 8; encoding = UTF8; } := c8;\n"
	"trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u8 stream_id; }; };\n"
	"env { hostname = \"h\"; domain = \"kernel\"; tracer_name = \"lttng-modules\"; };\n"
	"clock { name = c; freq = 1000000000; };\n"
	"typealias integer { size = 16; align = 8; map = clock.c.value; } := t16;\n"
	"stream { id = 1; packet.context := struct { t16 timestamp_begin; t16 timestamp_end;\n"
	"u16 content_size; u16 packet_size; u8 cpu_id; u8 events_discarded; };\n"
	"event.header := struct { u8 id; t16 timestamp; }; };\n"
	"event { name = sched_switch; id = 0; stream_id = 1; fields := struct { c8 prev_comm[4]; s32 prev_tid; s32 prev_prio; "
	"s32 prev_state; c8 next_comm[4]; s32 next_tid; s32 next_prio; }; };\n"
	"event { name = sched_waking; id = 1; stream_id = 1; fields := struct { c8 comm[4]; s32 tid; s32 prio; "
	"s32 target_cpu; }; };\n"
	"event { name = \"kymo:mark\"; id = 2; stream_id = 1; fields := struct { s32 n; }; };\n";

static inline void add32(struct ky_strbuf *out, int32_t value)
{
	for (int i = 0; i < 4; i++)
		ky_strbuf_addc(out, (char)((uint32_t)value >> (8 * i)));
}

static inline void add16(struct ky_strbuf *out, size_t value)
{
	ky_strbuf_addc(out, (char)value);
	ky_strbuf_addc(out, (char)(value >> 8));
}

static inline void add_head(struct ky_strbuf *out, int id, size_t ns)
{
	ky_strbuf_addc(out, (char)id);
	add16(out, ns);
}

static inline void add_switch(struct ky_strbuf *out, size_t ns, int32_t from, int32_t to)
{
	add_head(out, 0, ns);
	ky_strbuf_add(out, "<b>\0", 4);
	add32(out, from);
	add32(out, 20);
	add32(out, from == 7);
	ky_strbuf_add(out, "\xff\"&\0", 4);
	add32(out, to);
	add32(out, 20);
}

static inline void write_file(int directory, const char *name, const char *data, size_t len)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || close(fd) < 0)
		abort();
}

static inline void add_events(struct ky_strbuf *out)
{
	for (size_t i = 0; i < 20; i++) {
		size_t ns = 1000 + i * 100;

		add_switch(out, ns, i % 3 ? 7 : 0, i % 3 == 2 ? 0 : 7 + (int32_t)(i % 2));
		add_head(out, 1, ns + 50);
		ky_strbuf_add(out, "t8\0\0", 4);
		add32(out, 8);
		add32(out, 20);
		add32(out, 0);
		if (i % 5 == 0) {
			add_head(out, 2, ns + 60);
			add32(out, (int32_t)i);
		}
	}
}

/* Into the directory @path: metadata and stream. */
static inline void small_trace_write(const char *path)
{
	struct ky_strbuf events = KY_STRBUF_INIT, packet = KY_STRBUF_INIT;
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		abort();
	add_events(&events);
	ky_strbuf_addc(&packet, 1);
	add16(&packet, 1000);
	add16(&packet, 3000);
	add16(&packet, (events.len + 11) * 8);
	add16(&packet, (events.len + 11) * 8);
	ky_strbuf_addc(&packet, 0);
	ky_strbuf_addc(&packet, 3);
	ky_strbuf_add(&packet, events.data, events.len);
	write_file(directory, "metadata", small_metadata, sizeof(small_metadata) - 1);
	write_file(directory, "stream", packet.data, packet.len);
	ky_strbuf_fini(&events);
	ky_strbuf_fini(&packet);
	close(directory);
}

#endif
