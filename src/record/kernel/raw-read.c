/* SPDX-License-Identifier: MIT */
/* A trace out of a raw recording: its rings are files, and its tracefs is a text. */
#include "record/kernel/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/packet.h"
#include "base/error.h"
#include "os/file.h"
#include "record/common/record-dir.h"
#include "record/kernel/raw-replay.h"
#include "store/directory/directory-store.h"

#define METADATA_MAX_BYTES (256u << 20)

bool ky_raw_is(const char *dir)
{
	char path[4200];

	return snprintf(path, sizeof(path), "%s/raw/recording", dir) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* ---- the rings ---------------------------------------------------------------------- */

/*
 * A flight recorder's file begins with a page that the ring had been reading before most of the rest was
 * overwritten: it goes from the last gap on.
 */
static int skip_to_last_gap(struct ky_kernel_cpu *cpu, struct kymo_error *err)
{
	struct ky_cpu_ring *ring = &cpu->ring;
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

static int raw_read_open_cpu(struct ky_raw_replay *replay, struct ky_kernel_cpu *cpu,
			     struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = &replay->kernel;
	char path[4200];
	int ret;

	snprintf(path, sizeof(path), "%s/raw/cpu%u", replay->dir, cpu->convert.cpu);
	ret = ky_cpu_ring_open_file(&cpu->ring, path, cpu->convert.cpu, kernel->page_bytes,
				    &kernel->page_layout, err);
	if (!ret)
		ret = ky_kernel_cpu_begin(cpu, err);
	if (!ret && kernel->is_flight)
		ret = skip_to_last_gap(cpu, err);
	return ret;
}

/* What the kernel decided when it recorded, and what it did not. */
static void set_filters(struct ky_kernel_trace *kernel)
{
	ky_vec_foreach(&kernel->catalogue.events, source)
		if (source->selected && source->filter)
			ky_kernel_trace_leave_to_recorder(kernel, source);
}

static int raw_read_prepare(struct ky_raw_replay *replay, struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = &replay->kernel;
	int32_t own[KY_CONVERT_OWN_TIDS];
	int ret = ky_raw_read_description(replay, err);

	if (ret < 0)
		return ret;
	memcpy(own, kernel->convert.own_tids, sizeof(own));
	kernel->merge = (kernel->context & KY_CONTEXT_OF_THREADS) != 0;
	ret = ky_page_layout_parse(ky_strbuf_text(&replay->header), replay->header.len,
				   &kernel->page_layout, err);
	if (!ret)
		ret = ky_convert_init(&kernel->convert, kernel->context, err);
	if (ret < 0)
		return ret;
	memcpy(kernel->convert.own_tids, own, sizeof(own));
	if (kernel->has_threads)
		kernel->convert.threads = &kernel->threads;
	/* Times stay cycles; what they mean is said by the metadata that was recorded. */
	kernel->clock.name = "tsc";
	kernel->clock.description = "";
	kernel->clock.frequency_hz = 1000000000;
	ret = ky_kernel_trace_build(kernel, err);
	if (!ret)
		set_filters(kernel);
	ky_vec_foreach(&kernel->cpus, cpu)
		if (!ret)
			ret = raw_read_open_cpu(replay, *cpu, err);
	return ret;
}

/* ---- the trace ------------------------------------------------------------------------ */

static int raw_read_copy_metadata(struct ky_raw_replay *replay, struct kymo_error *err)
{
	static const char *const names[] = {"metadata.ctf", "metadata"};
	struct ky_store_trace *to = replay->kernel.packets;
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[4200];
	int ret = -ENOENT;

	for (int i = 0; i < 2 && ret == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/raw/state/%s", replay->dir, names[i]);
		ret = ky_read_regular(AT_FDCWD, path, METADATA_MAX_BYTES, &text);
	}
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, path);
	} else {
		ret = ky_store_metadata(to, ky_strbuf_text(&text), text.len, err);
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* A packet of the state dump that is longer makes no sense. */
#define STATE_PACKET_MAX_BYTES ((uint64_t)64 << 20)

KY_VEC_TYPE(state_packet, uint8_t);

/* Read @size bytes at @at of @fd. Fewer are no error: *got. 0 or -errno. */
static int raw_read_at(int fd, void *to, size_t size, uint64_t at, size_t *got)
{
	for (*got = 0; *got < size;) {
		ssize_t n = pread(fd, (char *)to + *got, size - *got, (off_t)(at + *got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		*got += (size_t)n;
	}
	return 0;
}

/* The packet of the state dump at byte @at of @fd goes to @bytes; *size 0: none exists that makes sense. 0 or -errno. */
static int raw_read_packet(int fd, uint64_t at, struct ky_packet_prolog *prolog,
			   struct state_packet *bytes, size_t *size)
{
	size_t got;
	int ret = raw_read_at(fd, prolog, sizeof(*prolog), at, &got);

	*size = 0;
	if (ret < 0 || got < sizeof(*prolog) || prolog->magic != KY_CTF_MAGIC ||
	    prolog->packet_bits % 8 || prolog->packet_bits / 8 < sizeof(*prolog) ||
	    prolog->packet_bits / 8 > STATE_PACKET_MAX_BYTES ||
	    prolog->content_bits > prolog->packet_bits)
		return ret;
	if (ky_vec_reserve(bytes, prolog->packet_bits / 8) < 0)
		return -ENOMEM;
	ret = raw_read_at(fd, bytes->data, prolog->packet_bits / 8, at, &got);
	if (ret == 0 && got == prolog->packet_bits / 8)
		*size = got;
	return ret;
}

/* The packets of the state dump; the first that makes no sense ends it. The file may claim any length. */
static int raw_read_copy_packets(struct ky_store_trace *to, int fd, struct kymo_error *err)
{
	struct state_packet bytes = KY_VEC_INIT;
	int ret = KYMO_OK, stream = ky_store_stream(to, "statedump_0", err);
	struct ky_packet_prolog prolog;
	size_t size = 1;

	for (uint64_t at = 0; stream >= 0 && !ret && size; at += size) {
		int failed = raw_read_packet(fd, at, &prolog, &bytes, &size);
		struct ky_packet_out out = {
			.data = bytes.data,
			.size_bytes = size,
			.content_bits = prolog.content_bits,
			.begin_cycles = prolog.begin_cycles,
			.end_cycles = prolog.end_cycles,
			.discarded = prolog.discarded,
			.sequence = prolog.sequence,
			.stream_class_id = prolog.stream_class_id,
			.stream_id = prolog.stream_id,
		};

		if (failed < 0)
			ret = ky_error_errno(err, -failed, "cannot read the state dump");
		else if (size)
			ret = ky_store_packet(to, stream, &out, err);
	}
	ky_vec_fini(&bytes);
	return stream < 0 ? stream : ret;
}

static int copy_state(struct ky_raw_replay *replay, struct kymo_error *err)
{
	char path[4200];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/raw/state/statedump_0", replay->dir);
	fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY);
	/* A recorder that was killed early. */
	if (fd == -ENOENT)
		return KYMO_OK;
	if (fd < 0) {
		ret = ky_error_errno(err, -fd, "cannot read the state dump");
		ky_error_path(err, path);
		return ret;
	}
	ret = raw_read_copy_packets(replay->kernel.packets, fd, err);
	close(fd);
	return ret;
}

static int write_trace(struct ky_raw_replay *replay, struct kymo_error *err)
{
	int ret = raw_read_copy_metadata(replay, err);

	if (!ret)
		ret = copy_state(replay, err);
	if (!ret)
		ret = ky_kernel_trace_read_round(&replay->kernel, true, err);
	if (!ret)
		ret = ky_kernel_trace_end_streams(&replay->kernel, replay->end_cycles, err);
	return ret;
}

static void raw_read_count(const struct ky_raw_replay *replay, struct ky_raw_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	ky_vec_foreach(&replay->kernel.cpus, cpu) {
		stats->events += (*cpu)->convert.events;
		stats->lost += (*cpu)->convert.lost;
		stats->bad += (*cpu)->convert.bad + (*cpu)->ring.bad_pages;
		stats->own += (*cpu)->convert.own;
		stats->hidden += (*cpu)->convert.hidden;
		stats->filtered += (*cpu)->convert.filtered;
	}
}

static void raw_read_init(struct ky_raw_replay *replay, const char *dir)
{
	memset(replay, 0, sizeof(*replay));
	replay->dir = dir;
	ky_kernel_trace_init(&replay->kernel);
	replay->kernel.name = dir;
}

/* @ret: how it went until now. */
static int raw_read_fini(struct ky_raw_replay *replay, int ret, const struct ky_log *log,
			 struct ky_raw_stats *stats, struct kymo_error *err)
{
	struct ky_raw_stats all;
	int closed;

	raw_read_count(replay, &all);
	if (!ret && all.bad)
		ky_log_warning(log, "%s: %" PRIu64 " malformed records or pages were skipped",
			       replay->dir, all.bad);
	if (stats)
		*stats = all;
	closed = ky_store_close(replay->kernel.packets, ret < 0 ? NULL : err);
	ky_vec_foreach(&replay->kernel.cpus, cpu) {
		ky_kernel_cpu_fini(*cpu);
		free(*cpu);
	}
	ky_kernel_trace_fini(&replay->kernel);
	ky_strbuf_fini(&replay->text);
	ky_strbuf_fini(&replay->header);
	return ret < 0 ? ret : closed;
}

int ky_raw_convert(const char *dir, struct ky_packet_store *store, const struct ky_log *log,
		   struct ky_raw_stats *stats, struct kymo_error *err)
{
	const struct ky_store_place place = {.path = "kernel"};
	struct ky_raw_replay replay;
	int ret;

	raw_read_init(&replay, dir);
	ret = raw_read_prepare(&replay, err);
	if (!ret)
		ret = ky_store_open(store, &place, &replay.kernel.packets, err);
	if (!ret)
		ret = write_trace(&replay, err);
	return raw_read_fini(&replay, ret, log, stats, err);
}

int ky_raw_convert_to_directory(const char *dir, const char *output, const struct ky_log *log,
				struct ky_raw_stats *stats, struct kymo_error *err)
{
	struct ky_packet_store *store;
	bool made;
	int ret = ky_record_dir_make(output, &made, err);

	if (!ret)
		ret = ky_directory_store_open(output, &store, err);
	if (ret < 0)
		return ret;
	ret = ky_raw_convert(dir, store, log, stats, err);
	ky_store_free(store);
	/* Unless there is something in it. */
	if (ret < 0 && made)
		(void)rmdir(output);
	return ret;
}
