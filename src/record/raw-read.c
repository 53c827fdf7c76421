/* SPDX-License-Identifier: MIT */
/* A trace out of a raw recording: a session whose rings are files, and whose tracefs is a text. */
#include "record/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/packet.h"
#include "base/error.h"
#include "base/text.h"
#include "os/file.h"
#include "record/output.h"
#include "record/session-internal.h"

#define DESCRIPTION_MAX_BYTES (256u << 20)
#define METADATA_MAX_BYTES    (256u << 20)
#define CPU_MAX		      65536
#define LINE_MAX_BYTES	      600

struct replay {
	struct ky_session *session;
	const char *dir;
	struct ky_strbuf text; /* the description */
	const char *at, *end;
	uint32_t line;
	uint64_t end_cycles;
	struct ky_strbuf header; /* of pages */
};

bool ky_raw_is(const char *dir)
{
	char path[4200];

	return snprintf(path, sizeof(path), "%s/raw/recording", dir) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static int bad(const struct replay *replay, const char *what, struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_FORMAT, "%s", what);
	char path[4200];

	snprintf(path, sizeof(path), "%s/raw/recording", replay->dir);
	ky_error_path(err, path);
	ky_error_line(err, replay->line, 1);
	return code;
}

/* ---- the description ------------------------------------------------------------------ */

/* 1: @line is the next; 0: there is none; -1: it is too long. */
static int next_line(struct replay *replay, char line[LINE_MAX_BYTES])
{
	const char *stop;
	size_t len;

	if (replay->at >= replay->end)
		return 0;
	stop = memchr(replay->at, '\n', (size_t)(replay->end - replay->at));
	len = (size_t)((stop ? stop : replay->end) - replay->at);
	replay->line++;
	if (!stop || len >= LINE_MAX_BYTES)
		return -1;
	memcpy(line, replay->at, len);
	line[len] = '\0';
	replay->at = stop + 1;
	return 1;
}

static bool take_hex(const char *text, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int high = ky_digit_value(text[2 * i]);
		int low = high == KY_NO_DIGIT ? high : ky_digit_value(text[2 * i + 1]);

		if (low == KY_NO_DIGIT)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * n] == '\0';
}

/* Of a thread that was told before. */
static bool take_nice(struct replay *replay, const char *line)
{
	struct ky_thread *thread;
	int tid, nice;

	if (!replay->session->has_threads || sscanf(line, "nice %d %d", &tid, &nice) != 2)
		return false;
	thread = ky_map_get(&replay->session->threads.map, (uint32_t)tid);
	if (thread)
		thread->nice = nice;
	return thread != NULL;
}

static bool take_thread(struct replay *replay, const char *line)
{
	struct ky_thread thread = {0};
	int at = 0;

	if (!replay->session->has_threads ||
	    sscanf(line, "thread %d %d %d %d %n", &thread.tid, &thread.pid, &thread.ppid,
		   &thread.prio, &at) != 4 ||
	    !at || !take_hex(line + at, (uint8_t *)thread.comm, KY_COMM_BYTES))
		return false;
	thread.nice = ky_thread_nice(thread.prio, 0);
	return ky_threads_put(&replay->session->threads, &thread) == 0;
}

static bool take_cpu(struct replay *replay, const char *line)
{
	struct ky_session *session = replay->session;
	struct ky_session_cpu *cpu;
	unsigned int number;
	uint64_t lost;
	int online;

	if (sscanf(line, "cpu %u %d %" SCNu64, &number, &online, &lost) != 3 || number >= CPU_MAX ||
	    session->cpus.len >= CPU_MAX)
		return false;
	cpu = calloc(1, sizeof(*cpu));
	if (!cpu || ky_vec_push(&session->cpus, cpu) < 0) {
		free(cpu);
		return false;
	}
	cpu->session = session;
	cpu->stream = cpu->raw_fd = cpu->ring.fd = cpu->raw_flight.fd = -1;
	cpu->ring.pipe[0] = cpu->ring.pipe[1] = -1;
	cpu->online = online != 0;
	cpu->raw_lost = lost;
	cpu->convert.convert = &session->convert;
	cpu->convert.cpu = number;
	cpu->convert.data = cpu;
	return true;
}

/* The @len bytes that come next, and a line's end. NULL: they are not there. */
static const char *take_text(struct replay *replay, size_t len)
{
	const char *text = replay->at;

	if (len > (size_t)(replay->end - replay->at))
		return NULL;
	for (size_t i = 0; i < len; i++)
		replay->line += text[i] == '\n';
	replay->at += len;
	return text;
}

static bool take_line_end(struct replay *replay)
{
	if (replay->at >= replay->end || *replay->at != '\n')
		return false;
	replay->at++;
	replay->line++;
	return true;
}

static bool take_header(struct replay *replay, const char *line)
{
	const char *text;
	size_t len, rest;

	if (sscanf(line, "header %zu %zu", &len, &rest) != 2 || rest || len > KY_TRACEFS_TEXT_MAX)
		return false;
	text = take_text(replay, len);
	if (text)
		ky_strbuf_add(&replay->header, text, len);
	return text && take_line_end(replay);
}

static bool take_event(struct replay *replay, const char *line)
{
	struct ky_catalogue *catalogue = &replay->session->catalogue;
	char system[KY_EVENT_NAME_BYTES], event[KY_EVENT_NAME_BYTES], name[KY_EVENT_NAME_BYTES];
	struct ky_event_source source = {0};
	const char *format, *filter;
	size_t len, filter_len;
	int selected, hidden;

	if (sscanf(line, "event %127s %127s %d %d %zu %zu", system, event, &selected, &hidden, &len,
		   &filter_len) != 6 ||
	    len > KY_TRACEFS_TEXT_MAX || filter_len > KY_TRACEFS_TEXT_MAX)
		return false;
	format = take_text(replay, len);
	filter = format ? take_text(replay, filter_len) : NULL;
	if (!filter || !take_line_end(replay))
		return false;
	ky_event_name(system, event, name);
	source.system = ky_arena_strdup(&catalogue->arena, system);
	source.event = ky_arena_strdup(&catalogue->arena, event);
	source.name = ky_arena_strdup(&catalogue->arena, name);
	source.format = format;
	source.format_len = len;
	source.selected = selected & 1;
	source.stacks = source.selected
				? (unsigned int)selected >> 1 & (KY_STACK_KERNEL | KY_STACK_USER)
				: 0;
	source.hidden = hidden != 0;
	if (filter_len)
		source.filter = ky_arena_strndup(&catalogue->arena, filter, filter_len);
	return source.system && source.event && source.name && (!filter_len || source.filter) &&
	       ky_vec_push(&catalogue->events, source) == 0;
}

static bool starts(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

static bool take_line(struct replay *replay, const char *line)
{
	struct ky_session *session = replay->session;
	int threads;

	if (starts(line, "uuid "))
		return take_hex(line + 5, session->uuid, 16);
	if (starts(line, "order "))
		return strcmp(line + 6,
			      __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "big" : "little") == 0;
	if (starts(line, "page "))
		return sscanf(line, "page %u", &session->page_bytes) == 1 &&
		       session->page_bytes >= 1024 && session->page_bytes <= 1u << 20;
	if (starts(line, "context "))
		return sscanf(line, "context %u", &session->options.context) == 1 &&
		       !(session->options.context &
			 ~((KY_CONTEXT_OF_THREADS | KY_CONTEXT_OF_RECORDS | KY_CONTEXT_OF_STACKS) &
			   ~KY_CONTEXT_OF_IDS));
	if (starts(line, "threads ")) {
		if (sscanf(line, "threads %d", &threads) != 1)
			return false;
		/* Never taken back: those that were read by then have to be freed. */
		session->has_threads |= threads != 0;
		return true;
	}
	if (starts(line, "own "))
		return sscanf(line, "own %d %d %d %d", &session->convert.own_tids[0],
			      &session->convert.own_tids[1], &session->convert.own_tids[2],
			      &session->convert.own_tids[3]) >= 2;
	if (starts(line, "time "))
		return sscanf(line, "time %" SCNu64 " %" SCNu64, &session->start_cycles,
			      &replay->end_cycles) == 2;
	if (strcmp(line, "flight") == 0)
		return session->options.overwrite = true;
	if (starts(line, "cpu "))
		return take_cpu(replay, line);
	if (starts(line, "thread "))
		return take_thread(replay, line);
	if (starts(line, "nice "))
		return take_nice(replay, line);
	if (starts(line, "header "))
		return take_header(replay, line);
	return starts(line, "event ") && take_event(replay, line);
}

static int read_description(struct replay *replay, struct kymo_error *err)
{
	char line[LINE_MAX_BYTES], path[4200];
	int ret;

	snprintf(path, sizeof(path), "%s/raw/recording", replay->dir);
	ret = ky_read_file(AT_FDCWD, path, DESCRIPTION_MAX_BYTES, &replay->text);
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, path);
		return ret;
	}
	replay->at = ky_strbuf_text(&replay->text);
	replay->end = replay->at + replay->text.len;
	if (next_line(replay, line) != 1 || strcmp(line, "kymo-raw 1") != 0)
		return bad(replay, "this is no raw recording that we can read", err);
	while ((ret = next_line(replay, line)) > 0)
		if (!take_line(replay, line))
			return bad(replay, "this line makes no sense, or memory ran out", err);
	if (ret < 0)
		return bad(replay, "the file is cut, or a line is too long", err);
	if (!replay->session->page_bytes || !replay->header.len ||
	    !replay->session->catalogue.events.len)
		return bad(replay, "the description is incomplete", err);
	return KYMO_OK;
}

/* ---- the session ---------------------------------------------------------------------- */

/*
 * A flight recorder's file begins with a page that the ring had been reading before most of the rest was
 * overwritten: it goes from the last gap on.
 */
static int skip_to_last_gap(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	struct ky_ring *ring = &cpu->ring;
	struct ky_page page;
	off_t at = 0, from = 0;

	while (pread(ring->fd, ring->page, ring->page_bytes, at) == (ssize_t)ring->page_bytes) {
		if (ky_page_open(&ring->layout, ring->page, ring->page_bytes, &page, NULL) == 0 &&
		    page.missed)
			from = at;
		at += ring->page_bytes;
	}
	if (from && lseek(ring->fd, from, SEEK_SET) < 0)
		return ky_error_errno(err, errno, "cannot read the pages");
	return KYMO_OK;
}

static int open_cpu(struct replay *replay, struct ky_session_cpu *cpu, struct kymo_error *err)
{
	struct ky_session *session = replay->session;
	char path[4200];
	int ret;

	snprintf(path, sizeof(path), "%s/raw/cpu%u", replay->dir, cpu->convert.cpu);
	ret = ky_ring_open_file(&cpu->ring, path, cpu->convert.cpu, session->page_bytes,
				&session->page_layout, err);
	if (!ret &&
	    ky_packet_writer_init(&cpu->convert.writer, KY_SESSION_PACKET_BYTES, session->uuid, 0,
				  cpu->convert.cpu, cpu->convert.cpu, session->compact_header) < 0)
		ret = ky_error_nomem(err);
	if (!ret && session->options.overwrite)
		ret = skip_to_last_gap(cpu, err);
	if (!ret)
		ky_packet_writer_begin(&cpu->convert.writer, session->start_cycles);
	return ret;
}

/* What the kernel could not decide. */
static void set_filters(struct ky_session *session)
{
	ky_vec_foreach(&session->catalogue.events, source)
		if (source->selected && source->filter)
			ky_session_leave_to_recorder(session, source);
}

static int prepare(struct replay *replay, struct kymo_error *err)
{
	struct ky_session *session = replay->session;
	int32_t own[KY_CONVERT_OWN_TIDS];
	int ret = read_description(replay, err);

	if (ret < 0)
		return ret;
	memcpy(own, session->convert.own_tids, sizeof(own));
	session->merge = (session->options.context & KY_CONTEXT_OF_THREADS) != 0;
	ret = ky_page_layout_parse(ky_strbuf_text(&replay->header), replay->header.len,
				   &session->page_layout, err);
	if (!ret)
		ret = ky_convert_init(&session->convert, session->options.context, err);
	if (ret < 0)
		return ret;
	memcpy(session->convert.own_tids, own, sizeof(own));
	if (session->has_threads)
		session->convert.threads = &session->threads;
	/* Times stay cycles; what they mean is said by the metadata that was recorded. */
	session->clock.name = "tsc";
	session->clock.description = "";
	session->clock.frequency_hz = 1000000000;
	ret = ky_session_build_model(session, err);
	if (!ret)
		set_filters(session);
	ky_session_use_convert(session);
	ky_vec_foreach(&session->cpus, cpu)
		if (!ret)
			ret = open_cpu(replay, *cpu, err);
	return ret;
}

/* ---- the trace ------------------------------------------------------------------------ */

static int copy_metadata(struct replay *replay, struct kymo_error *err)
{
	static const char *const names[] = {"metadata.ctf", "metadata"};
	struct ky_packet_sink *sink = replay->session->sink;
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[4200];
	int ret = -ENOENT;

	for (int i = 0; i < 2 && ret == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/raw/state/%s", replay->dir, names[i]);
		ret = ky_read_file(AT_FDCWD, path, METADATA_MAX_BYTES, &text);
	}
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, path);
	} else {
		ret = sink->ops->metadata(sink, ky_strbuf_text(&text), text.len, err);
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* The packets of the state dump; the first that makes no sense ends it. */
static int copy_packets(struct ky_packet_sink *sink, const uint8_t *data, size_t len,
			struct kymo_error *err)
{
	struct ky_packet_prolog prolog;
	int ret = KYMO_OK, stream = sink->ops->stream(sink, "statedump_0", err);

	if (stream < 0)
		return stream;
	for (size_t at = 0; !ret && len - at >= sizeof(prolog);) {
		struct ky_packet_out out = {.data = data + at};

		memcpy(&prolog, data + at, sizeof(prolog));
		if (prolog.magic != KY_CTF_MAGIC || prolog.packet_bits % 8 ||
		    prolog.packet_bits / 8 < sizeof(prolog) || prolog.packet_bits / 8 > len - at ||
		    prolog.content_bits > prolog.packet_bits)
			break;
		out.size_bytes = prolog.packet_bits / 8;
		out.content_bits = prolog.content_bits;
		out.begin_cycles = prolog.begin_cycles;
		out.end_cycles = prolog.end_cycles;
		out.discarded = prolog.discarded;
		out.sequence = prolog.sequence;
		out.stream_class_id = prolog.stream_class_id;
		out.stream_id = prolog.stream_id;
		ret = sink->ops->packet(sink, stream, &out, err);
		at += out.size_bytes;
	}
	return ret;
}

static int copy_state(struct replay *replay, struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	char path[4200];
	int ret;

	snprintf(path, sizeof(path), "%s/raw/state/statedump_0", replay->dir);
	ret = ky_read_file(AT_FDCWD, path, SIZE_MAX / 4, &bytes);
	if (ret == 0)
		ret = copy_packets(replay->session->sink, (const uint8_t *)ky_strbuf_text(&bytes),
				   bytes.len, err);
	else if (ret == -ENOENT)
		ret = KYMO_OK; /* a recorder that was killed early */
	else
		ret = ky_error_errno(err, -ret, "cannot read the state dump");
	ky_strbuf_fini(&bytes);
	return ret;
}

static int write_trace(struct replay *replay, const char *output, struct kymo_error *err)
{
	struct ky_session *session = replay->session;
	char path[4200];
	int ret;

	snprintf(path, sizeof(path), "%s/kernel", output);
	ret = ky_dir_sink_open(path, &session->sink, err);
	if (!ret)
		ret = copy_metadata(replay, err);
	if (!ret)
		ret = copy_state(replay, err);
	if (!ret)
		ret = ky_session_read_round(session, true, err);
	if (!ret)
		ret = ky_session_end_streams(session, replay->end_cycles, err);
	return ret;
}

static void count(const struct replay *replay, struct ky_raw_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	ky_vec_foreach(&replay->session->cpus, cpu) {
		stats->events += (*cpu)->convert.events;
		stats->lost += (*cpu)->convert.lost;
		stats->bad += (*cpu)->convert.bad + (*cpu)->ring.bad_pages;
	}
}

int ky_raw_convert(const char *dir, const char *output, const struct ky_log *log,
		   struct ky_raw_stats *stats, struct kymo_error *err)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	struct ky_session *session;
	struct ky_raw_stats all;
	bool made = false;
	int ret, closed;

	if (!replay)
		return ky_error_nomem(err);
	ret = ky_session_new(&(struct ky_session_options){.output = output, .uid = -1}, &session,
			     err);
	if (ret < 0) {
		free(replay);
		return ret;
	}
	replay->session = session;
	replay->dir = dir;
	session->is_replay = true;
	ret = prepare(replay, err);
	if (!ret)
		ret = ky_output_make(output, &made, err);
	if (!ret)
		ret = write_trace(replay, output, err);
	count(replay, &all);
	if (!ret && all.bad)
		ky_log_warning(log,
			       "%s: %" PRIu64 " records or pages made no sense and are left out",
			       dir, all.bad);
	if (stats)
		*stats = all;
	session->started = true; /* what is there stays */
	closed = ky_session_close(session, ret < 0 ? NULL : err);
	ky_strbuf_fini(&replay->text);
	ky_strbuf_fini(&replay->header);
	free(replay);
	return ret < 0 ? ret : closed;
}
