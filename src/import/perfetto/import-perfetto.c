/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's traces: packets of Protocol Buffers. Bundles of ftrace events and trees of processes become the trace "kernel", track events
 * the trace "perfetto".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/error.h"
#include "import/common/import-internal.h"
#include "import/common/import.h"
#include "import/perfetto/perfetto-trace.h"

#define FIRST_BYTES ((uint64_t)4 << 20)

enum {
	PACKET_FTRACE = 1,
	PACKET_PROCESSES = 2,
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_NAMES = 12,
	PACKET_FLAGS = 13,
	PACKET_COMPRESSED = 50,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
};

#define FLAG_CLEARED 1 /* what earlier packets of the sequence said is over */

struct packet {
	struct ky_pb_field ftrace, processes, clocks, event, names, compressed, defaults, track;
	uint64_t time, sequence, clock;
	bool has_time, is_cleared;
};

static const struct ky_maker_field kernel_context[] = {{.name = "tid", .kind = KY_MAKER_S32}};
static const struct ky_maker_field user_context[] = {
	{.name = "tid", .kind = KY_MAKER_S64},
	{.name = "pid", .kind = KY_MAKER_S64},
};

/* ---- packets ---------------------------------------------------------------------------- */

static void import_perfetto_parse(struct packet *packet, const uint8_t *data, size_t len,
				  bool *is_bad)
{
	struct ky_pb_reader reader = ky_pb_reader(data, len);
	struct ky_pb_field field;
	struct {
		uint32_t number;
		struct ky_pb_field *to;
	} const parts[] = {
		{PACKET_FTRACE, &packet->ftrace},     {PACKET_PROCESSES, &packet->processes},
		{PACKET_CLOCKS, &packet->clocks},     {PACKET_EVENT, &packet->event},
		{PACKET_NAMES, &packet->names},	      {PACKET_COMPRESSED, &packet->compressed},
		{PACKET_DEFAULTS, &packet->defaults}, {PACKET_TRACK, &packet->track},
	};

	memset(packet, 0, sizeof(*packet));
	while (ky_pb_next(&reader, &field)) {
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && field.has_bytes; i++) {
			if (parts[i].number == field.number)
				*parts[i].to = field;
		}
		if (field.number == PACKET_TIME && !field.has_bytes) {
			packet->time = field.value;
			packet->has_time = true;
		} else if (field.number == PACKET_SEQUENCE && !field.has_bytes) {
			packet->sequence = field.value;
		} else if (field.number == PACKET_CLOCK && !field.has_bytes) {
			packet->clock = field.value;
		} else if (field.number == PACKET_FLAGS && !field.has_bytes) {
			packet->is_cleared = field.value & FLAG_CLEARED;
		}
	}
	*is_bad = reader.is_bad;
}

/* ---- the pass --------------------------------------------------------------------------- */

static int import_perfetto_packets(struct ky_perfetto *perfetto, const uint8_t *data, size_t len);

static int import_perfetto_inflate(struct ky_perfetto *perfetto, const struct ky_pb_field *packed,
				   uint64_t offset)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	z_stream stream = {.next_in = (uint8_t *)(uintptr_t)packed->data,
			   .avail_in = (unsigned int)packed->len};
	uint8_t bytes[16384];
	int state = inflateInit(&stream), ret = KYMO_OK;

	while (state == Z_OK && ret == KYMO_OK) {
		stream.next_out = bytes;
		stream.avail_out = sizeof(bytes);
		state = inflate(&stream, Z_NO_FLUSH);
		ky_strbuf_add(&out, (const char *)bytes, sizeof(bytes) - stream.avail_out);
		ret = out.len > KY_FOREIGN_PIECE_MAX
			      ? ky_foreign_bad(&perfetto->file, offset,
					       "packets unpack to more than 256 MiB", perfetto->err)
			      : ky_foreign_unpack(&perfetto->file, offset,
						  sizeof(bytes) - stream.avail_out, perfetto->err);
	}
	inflateEnd(&stream);
	if (ret == KYMO_OK && state != Z_STREAM_END)
		ret = ky_foreign_bad(&perfetto->file, offset, "compressed packets are damaged",
				     perfetto->err);
	if (ret == KYMO_OK && ky_strbuf_failed(&out))
		ret = ky_error_nomem(perfetto->err);
	if (ret == KYMO_OK)
		ret = import_perfetto_packets(perfetto, (const uint8_t *)out.data, out.len);
	ky_strbuf_fini(&out);
	return ret;
}

static int import_perfetto_events(struct ky_perfetto *perfetto,
				  struct ky_perfetto_sequence *sequence,
				  const struct packet *packet)
{
	int64_t ns = packet->has_time
			     ? ky_perfetto_time(perfetto, sequence, packet->clock, packet->time)
			     : 0;
	int ret = KYMO_OK;

	if (packet->ftrace.data)
		ret = ky_perfetto_ftrace(perfetto, packet->ftrace.data, packet->ftrace.len);
	if (ret == KYMO_OK && packet->processes.data)
		ret = ky_perfetto_processes(perfetto, packet->processes.data,
					    packet->processes.len);
	if (ret == KYMO_OK && packet->track.data)
		ret = ky_perfetto_describe(perfetto, packet->track.data, packet->track.len);
	if (ret == KYMO_OK && packet->event.data && packet->has_time)
		ret = ky_perfetto_event(perfetto, sequence, packet->event.data, packet->event.len,
					ns);
	return ret;
}

/* @is_inner: of compressed packets, in which there are none of these. */
static int import_perfetto_packet(struct ky_perfetto *perfetto, const uint8_t *data, size_t len,
				  uint64_t offset, bool is_inner)
{
	struct ky_perfetto_sequence *sequence;
	struct packet packet;
	bool is_bad;
	int ret = KYMO_OK;

	import_perfetto_parse(&packet, data, len, &is_bad);
	if (is_bad)
		ky_perfetto_damaged(perfetto, "a packet contradicts itself; what follows the "
					      "contradiction in it is left out");
	if (packet.compressed.data && !is_inner)
		return import_perfetto_inflate(perfetto, &packet.compressed, offset);
	sequence = ky_perfetto_sequence(perfetto, packet.sequence);
	if (!sequence)
		return perfetto->err->code;
	if (packet.is_cleared)
		ky_perfetto_clear(sequence);
	if (packet.defaults.data)
		ky_perfetto_defaults(sequence, &packet.defaults);
	if (packet.names.data)
		ret = ky_perfetto_intern(perfetto, sequence, &packet.names);
	if (ret == KYMO_OK && packet.clocks.data)
		ret = ky_perfetto_snapshot(perfetto, sequence, &packet.clocks);
	return ret ? ret : import_perfetto_events(perfetto, sequence, &packet);
}

/* Packets in memory. */
static int import_perfetto_packets(struct ky_perfetto *perfetto, const uint8_t *data, size_t len)
{
	struct ky_pb_reader reader = ky_pb_reader(data, len);
	struct ky_pb_field field;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && ky_pb_next(&reader, &field)) {
		if (field.number == 1 && field.has_bytes)
			ret = import_perfetto_packet(perfetto, field.data, field.len, 0, true);
	}
	ky_perfetto_check(perfetto, &reader);
	return ret;
}

/*
 * The place and length of the packet at *offset; *offset moves behind it. 1, 0: the file is over; KYMO_E_FORMAT. Fields of a trace that
 * are no packets do not exist.
 */
static int import_perfetto_next(struct ky_foreign_file *file, uint64_t *offset, uint64_t *at,
				uint64_t *len, struct kymo_error *err)
{
	uint64_t left = file->size_bytes - *offset;
	const uint8_t *head, *from;

	if (!left)
		return 0;
	head = ky_foreign_bytes(file, *offset, left < 11 ? left : 11, "a packet", err);
	if (!head)
		return err->code;
	from = head + 1;
	if (*head != 0x0a || !ky_pb_varint(&from, head + (left < 11 ? left : 11), len))
		return ky_foreign_bad(file, *offset, "this is no packet of Perfetto", err);
	*at = *offset + (uint64_t)(from - head);
	if (*len > file->size_bytes - *at)
		return ky_foreign_bad(file, *offset, "a packet is cut", err);
	*offset = *at + *len;
	return 1;
}

/* What knows no packets has limits without a place. */
static int import_perfetto_place(struct ky_perfetto *perfetto, int ret)
{
	if (ret == KYMO_E_LIMIT && !perfetto->err->path[0]) {
		ky_error_path(perfetto->err, perfetto->file.path);
		ky_error_offset(perfetto->err, perfetto->at);
	}
	return ret;
}

static int import_perfetto_run(struct ky_perfetto *perfetto)
{
	uint64_t offset = 0, at, len;
	const uint8_t *data;
	int ret;

	while ((ret = import_perfetto_next(&perfetto->file, &offset, &at, &len, perfetto->err)) >
	       0) {
		if (!len)
			continue;
		data = ky_foreign_bytes(&perfetto->file, at, len, "a packet", perfetto->err);
		if (!data)
			return perfetto->err->code;
		perfetto->at = at;
		ret = import_perfetto_packet(perfetto, data, (size_t)len, at, false);
		if (ret < 0)
			return import_perfetto_place(perfetto, ret);
	}
	return ret;
}

/* ---- the traces ------------------------------------------------------------------------- */

/* Unix time of the clock's 0, by the first snapshot that tells. */
static int64_t import_perfetto_origin(struct ky_perfetto *perfetto)
{
	uint64_t offset = 0, at, len, real, boot;
	struct kymo_error ignored;
	struct packet packet;
	const uint8_t *data;
	bool is_bad;

	while (offset < FIRST_BYTES &&
	       import_perfetto_next(&perfetto->file, &offset, &at, &len, &ignored) > 0) {
		data = len ? ky_foreign_bytes(&perfetto->file, at, len, "a packet", &ignored)
			   : NULL;
		if (!data)
			continue;
		import_perfetto_parse(&packet, data, (size_t)len, &is_bad);
		if (packet.clocks.data &&
		    ky_perfetto_clock_value(&packet.clocks, KY_PERFETTO_CLOCK_REAL, &real) &&
		    ky_perfetto_clock_value(&packet.clocks, KY_PERFETTO_CLOCK_BOOT, &boot) &&
		    real < INT64_MAX && boot < INT64_MAX)
			return (int64_t)real - (int64_t)boot;
	}
	return 0;
}

static int import_perfetto_make(struct ky_perfetto *perfetto, struct ky_log_file *log,
				const struct ky_maker_about *common, const char *name,
				struct ky_packet_store *store)
{
	struct ky_maker_about about = *common;
	bool is_kernel = log == &perfetto->kernel;

	about.path = name;
	about.domain = name;
	about.context = is_kernel ? kernel_context : user_context;
	about.n_context = is_kernel ? 1 : 2;
	about.reorders = !is_kernel;
	about.has_cpus = is_kernel;
	ky_arena_init(&log->arena);
	log->err = perfetto->err;
	return ky_maker_open(&log->maker, store, &about, perfetto->err);
}

static int import_perfetto_begin(struct ky_perfetto *perfetto, struct ky_packet_store *stores[2])
{
	const struct ky_maker_about about = {
		.name = perfetto->file.path,
		.tracer = "perfetto",
		.clock = "perfetto",
		.description = "the clock of Perfetto's trace",
		.offset_ns = import_perfetto_origin(perfetto),
	};
	int ret = import_perfetto_make(perfetto, &perfetto->kernel, &about, "kernel", stores[0]);

	return ret ? ret
		   : import_perfetto_make(perfetto, &perfetto->user, &about, "perfetto", stores[1]);
}

static int import_perfetto_end(struct ky_log_file *log, int ret)
{
	struct ky_maker *maker = log->maker;

	log->maker = NULL;
	if (maker && ret == KYMO_OK)
		ret = ky_maker_close(maker, log->err);
	else if (maker)
		(void)ky_maker_close(maker, NULL);
	ky_map_fini(&log->classes);
	ky_arena_fini(&log->arena);
	ky_strbuf_fini(&log->unescaped);
	return ret;
}

static void import_perfetto_fini(struct ky_perfetto *perfetto)
{
	ky_vec_foreach(&perfetto->all_sequences, sequence) {
		for (int i = 0; i < KY_PERFETTO_TABLES; i++)
			ky_map_fini(&(*sequence)->names[i]);
		ky_vec_fini(&(*sequence)->clocks);
	}
	ky_vec_foreach(&perfetto->all_tracks, track) {
		ky_vec_foreach(&(*track)->open, name)
			free(*name);
		ky_vec_fini(&(*track)->open);
	}
	ky_vec_fini(&perfetto->all_sequences);
	ky_vec_fini(&perfetto->all_tracks);
	ky_vec_fini(&perfetto->clocks);
	ky_vec_fini(&perfetto->threads);
	ky_map_fini(&perfetto->told);
	ky_map_fini(&perfetto->sequences);
	ky_map_fini(&perfetto->tracks);
	ky_map_fini(&perfetto->cpus);
	ky_map_fini(&perfetto->calls);
	ky_strbuf_fini(&perfetto->scratch);
	ky_arena_fini(&perfetto->arena);
	ky_arena_fini(&perfetto->of_event);
	ky_foreign_close(&perfetto->file);
}

static int import_perfetto_convert(struct ky_perfetto *perfetto, struct ky_packet_store *stores[2],
				   uint64_t n_events[2], struct kymo_error *broken)
{
	int ret = import_perfetto_begin(perfetto, stores), end;

	if (ret == KYMO_OK)
		ret = import_perfetto_run(perfetto);
	n_events[0] = perfetto->kernel.maker ? ky_maker_events(perfetto->kernel.maker) : 0;
	n_events[1] = perfetto->user.maker ? ky_maker_events(perfetto->user.maker) : 0;
	/* Packets before the break are events. */
	if ((ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT) && n_events[0] + n_events[1]) {
		*broken = *perfetto->err;
		ky_error_clear(perfetto->err);
		ret = KYMO_OK;
	}
	end = import_perfetto_end(&perfetto->kernel, ret);
	ret = import_perfetto_end(&perfetto->user, ret);
	return ret ? ret : end;
}

static void import_perfetto_tell(const struct ky_perfetto *perfetto, const struct ky_log *log)
{
	if (perfetto->n_unknown)
		ky_log_warning(log,
			       "%s: %" PRIu64 " events of the kernel are of kinds whose fields "
			       "Kymo does not know; they are left out",
			       perfetto->file.path, perfetto->n_unknown);
	if (perfetto->n_damaged > 1)
		ky_log_warning(log, "%s: %" PRIu64 " messages in packets are damaged",
			       perfetto->file.path, perfetto->n_damaged);
}

static int import_perfetto_open(struct ky_import *imports, const char *path,
				const struct ky_log *log, struct kymo_error *err)
{
	static const char *const names[2] = {"kernel", "perfetto"};
	struct ky_perfetto perfetto = {.err = err};
	struct ky_scratch_trace *scratch[2] = {NULL};
	struct ky_packet_store *stores[2] = {NULL};
	struct kymo_error broken = {0};
	uint64_t n_events[2] = {0};
	int ret = ky_foreign_open(&perfetto.file, path, imports->unpacked_fd, err);

	ky_arena_init(&perfetto.arena);
	ky_arena_init(&perfetto.of_event);
	for (int i = 0; i < 2 && ret == KYMO_OK; i++) {
		scratch[i] = ky_import_new_trace(imports);
		ret = scratch[i] ? ky_scratch_store_open(scratch[i], &stores[i], err)
				 : ky_error_nomem(err);
	}
	if (ret == KYMO_OK)
		ret = import_perfetto_convert(&perfetto, stores, n_events, &broken);
	if (ret == KYMO_OK)
		import_perfetto_tell(&perfetto, log);
	for (int i = 0; i < 2; i++) {
		ky_store_free(stores[i]);
		/* A trace without events is shown only where both are. */
		if (ret == KYMO_OK && (n_events[i] || (i && !n_events[0])))
			ret = ky_import_add_place(imports, path, names[i], scratch[i], err);
	}
	if (!broken.code)
		broken = perfetto.damage;
	import_perfetto_fini(&perfetto);
	if (ret == KYMO_OK && broken.code)
		ky_import_broken(imports, &broken);
	return ret;
}

/* The first two packets are whole, and have fields that packets have. */
static bool import_perfetto_is(const char *path)
{
	struct ky_foreign_file file;
	uint64_t offset = 0, at, len;
	struct kymo_error ignored;
	struct packet packet;
	const uint8_t *data;
	bool is_it = ky_foreign_open(&file, path, -1, &ignored) == 0, is_bad;
	int n = 0;

	while (is_it && n < 2 && import_perfetto_next(&file, &offset, &at, &len, &ignored) > 0) {
		data = len && len < FIRST_BYTES ? ky_foreign_bytes(&file, at, len, "", &ignored)
						: NULL;
		if (!data)
			break;
		import_perfetto_parse(&packet, data, (size_t)len, &is_bad);
		is_it = !is_bad && (packet.sequence || packet.has_time || packet.clocks.data ||
				    packet.compressed.data || n > 0);
		n++;
	}
	ky_foreign_close(&file);
	return is_it && n > 0;
}

const struct ky_import_format ky_import_perfetto = {
	.name = "perfetto",
	.probe = import_perfetto_is,
	.open = import_perfetto_open,
};
