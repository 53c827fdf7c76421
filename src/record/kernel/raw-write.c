/* SPDX-License-Identifier: MIT */
/*
 * While recording raw: whole pages go from the ring to the disk (raw-direct.c), or into blocks and these to the disk;
 * the recorder does not decode them.
 * The page that is being written is read only at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/kernel/session-internal.h"
#include "store/directory/trace-dir.h"

/* Of a CPU, before others get their turn. */
#define ROUND_BYTES (4u << 20)

int ky_raw_failed(const struct ky_session_cpu *cpu, int errnum, const char *what,
		  struct kymo_error *err)
{
	int code = ky_error_errno(err, errnum, "cannot %s", what);
	char path[4200];

	snprintf(path, sizeof(path), "%s/raw/cpu%u", cpu->session->raw_output,
		 cpu->kernel.convert.cpu);
	ky_error_path(err, path);
	ky_trace_dir_hint(errnum, err);
	return code;
}

int ky_raw_make_dir(const struct ky_session *session, struct kymo_error *err)
{
	char path[4200];
	int code;

	snprintf(path, sizeof(path), "%s/raw", session->raw_output);
	if (mkdir(path, 0700) == 0)
		return KYMO_OK;
	code = errno == EEXIST ? ky_error_set(err, KYMO_E_INVALID, "a recording exists already")
			       : ky_error_errno(err, errno, "cannot create the directory");
	ky_error_path(err, path);
	return code;
}

int ky_raw_open_file(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	char path[4200];

	if (cpu->raw_fd >= 0)
		return KYMO_OK;
	snprintf(path, sizeof(path), "%s/raw/cpu%u", cpu->session->raw_output,
		 cpu->kernel.convert.cpu);
	cpu->raw_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (cpu->raw_fd < 0)
		return ky_raw_failed(cpu, errno, "create the file", err);
	if (!cpu->session->blocks)
		return KYMO_OK; /* a flight recorder's */
	cpu->raw_file = ky_block_file_open(cpu->session->blocks, cpu->raw_fd);
	if (cpu->raw_file)
		return KYMO_OK;
	close(cpu->raw_fd);
	cpu->raw_fd = -1;
	return ky_error_nomem(err);
}

static int raw_write_put_block(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	int ret;

	/* Without a file the recording has failed already, and is being ended. */
	if (!cpu->block_bytes || !cpu->raw_file)
		return KYMO_OK;
	ret = ky_block_file_put(cpu->raw_file, cpu->kernel.block, cpu->block_bytes);
	cpu->kernel.block = NULL;
	cpu->block_bytes = 0;
	return ret < 0 ? ky_raw_failed(cpu, -ret, "write", err) : KYMO_OK;
}

/* 1: a page is in the block; 0: none exists. */
static int take_page(struct ky_session_cpu *cpu, bool final, struct kymo_error *err)
{
	struct ky_cpu_ring *ring = &cpu->kernel.ring;
	int ret;

	if (ring->page_bytes > KY_RAW_BLOCK_BYTES)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "sub-buffers of %u KiB are too large",
				    ring->page_bytes / 1024);
	if (!cpu->kernel.block)
		cpu->kernel.block = ky_block_take(cpu->session->blocks);
	if (!cpu->kernel.block)
		return ky_error_nomem(err);
	ret = ky_cpu_ring_copy(ring, final, cpu->kernel.block->data + cpu->block_bytes, err);
	if (ret <= 0)
		return ret;
	cpu->block_bytes += ring->page_bytes;
	cpu->raw_bytes += ring->page_bytes;
	ret = ky_raw_open_file(cpu, err);
	if (!ret && cpu->block_bytes + ring->page_bytes > KY_RAW_BLOCK_BYTES)
		ret = raw_write_put_block(cpu, err);
	return ret < 0 ? ret : 1;
}

static int wait_for_files(struct ky_session *session, struct kymo_error *err)
{
	ky_vec_foreach(&session->cpus, cpu) {
		int ret = (*cpu)->raw_file ? ky_block_file_wait((*cpu)->raw_file) : 0;

		if (ret < 0)
			return ky_raw_failed(*cpu, -ret, "write", err);
	}
	return KYMO_OK;
}

int ky_raw_copy(struct ky_session_cpu *cpu, bool final, struct kymo_error *err)
{
	uint64_t limit = cpu->raw_bytes + ROUND_BYTES;
	int ret = 1;

	while (ret > 0 && (final || cpu->raw_bytes < limit))
		ret = take_page(cpu, final, err);
	return ret < 0 ? ret : raw_write_put_block(cpu, err);
}

int ky_raw_round(struct ky_session *session, bool final, struct kymo_error *err)
{
	int ret;

	if (session->options.overwrite)
		return final ? ky_raw_take_rings(session, err) : KYMO_OK;
	ret = ky_raw_direct_begin(session, err);
	ky_vec_foreach(&session->cpus, it) {
		uint64_t before = (*it)->raw_bytes;

		if (!ret)
			ret = ky_raw_direct_read(*it, err);
		if (ret > 0 || (!ret && final))
			ret = ky_raw_copy(*it, final, err);
		ky_raw_direct_took(session, (*it)->raw_bytes - before);
	}
	ky_raw_direct_end(session);
	return final && !ret ? wait_for_files(session, err) : ret;
}

/* ---- what is needed to read it -------------------------------------------------------- */

static void describe_thread(struct ky_strbuf *text, const struct ky_thread *thread)
{
	ky_strbuf_addf(text, "thread %d %d %d %d ", thread->tid, thread->pid, thread->ppid,
		       thread->prio);
	for (int i = 0; i < KY_COMM_BYTES; i++)
		ky_strbuf_addf(text, "%02x", (unsigned char)thread->comm[i]);
	ky_strbuf_addc(text, '\n');
	if (thread->nice != ky_thread_nice(thread->prio, 0))
		ky_strbuf_addf(text, "nice %d %d\n", thread->tid, thread->nice);
}

static void describe_threads(struct ky_session *session, struct ky_strbuf *text)
{
	size_t pos = 0;
	uint64_t key;
	void *value;

	while (ky_map_next(&session->kernel.threads.map, &pos, &key, &value))
		describe_thread(text, value);
}

/* "NAME LEN LEN", then both texts on lines of their own. */
static void describe_text(const char *head, const struct ky_strbuf *body, const char *tail,
			  struct ky_strbuf *text)
{
	ky_strbuf_addf(text, "%s %zu %zu\n", head, body->len, strlen(tail));
	ky_strbuf_add(text, ky_strbuf_text(body), body->len);
	ky_strbuf_addf(text, "%s\n", tail);
}

static int describe_events(struct ky_session *session, struct ky_strbuf *text,
			   struct kymo_error *err)
{
	struct ky_strbuf body = KY_STRBUF_INIT;
	int ret =
		ky_tracefs_read(session->fs.fd, session->fs.path, "events/header_page", &body, err);

	if (!ret)
		describe_text("header", &body, "", text);
	ky_vec_foreach(&session->kernel.catalogue.events, source) {
		char head[400];

		if (ret < 0)
			break;
		if (!source->selected && !source->hidden)
			continue;
		snprintf(head, sizeof(head), "event %s %s %d %d", source->system, source->event,
			 (int)(source->selected | source->stacks << 1), source->hidden);
		ret = ky_event_source_format(source, &session->fs, &body, err);
		if (!ret)
			describe_text(head, &body,
				      source->selected && source->filter ? source->filter : "",
				      text);
	}
	ky_strbuf_fini(&body);
	return ret;
}

static void describe_session(struct ky_session *session, uint64_t end_cycles,
			     struct ky_strbuf *text)
{
	ky_strbuf_adds(text, "kymo-raw 1\nuuid ");
	for (int i = 0; i < 16; i++)
		ky_strbuf_addf(text, "%02x", session->kernel.uuid[i]);
	ky_strbuf_addf(text, "\norder %s\npage %u\ncontext %u\nthreads %d\nown",
		       __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "big" : "little",
		       session->kernel.page_bytes, session->options.context,
		       session->kernel.has_threads);
	for (int i = 0; i < KY_CONVERT_OWN_TIDS; i++)
		ky_strbuf_addf(text, " %d", session->kernel.convert.own_tids[i]);
	ky_strbuf_addf(text, "\ntime %" PRIu64 " %" PRIu64 "\n", session->kernel.start_cycles,
		       end_cycles);
	if (session->options.overwrite)
		ky_strbuf_adds(text, "flight\n");
	if (session->kernel.has_constants)
		ky_strbuf_addf(text, "constants\n%s", ky_strbuf_text(&session->kernel.constants));
	ky_vec_foreach(&session->cpus, it)
		ky_strbuf_addf(text, "cpu %u %d %" PRIu64 "\n", (*it)->kernel.convert.cpu,
			       (*it)->kernel.online, (*it)->kernel.convert.lost);
}

int ky_raw_describe(struct ky_session *session, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[4200];
	int ret, fd;

	describe_session(session, end_cycles, &text);
	if (session->kernel.has_threads)
		describe_threads(session, &text);
	ret = describe_events(session, &text, err);
	if (!ret && ky_strbuf_failed(&text))
		ret = ky_error_nomem(err);
	snprintf(path, sizeof(path), "%s/raw", session->raw_output);
	fd = ret ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!ret) {
		ret = fd < 0 ? -errno
			     : ky_file_replace(fd, "recording", ky_strbuf_text(&text), text.len);
		if (ret < 0) {
			ret = ky_error_errno(err, -ret, "cannot write the recording's description");
			ky_error_path(err, path);
		}
	}
	if (fd >= 0)
		close(fd);
	ky_strbuf_fini(&text);
	return ret;
}

int ky_raw_count(struct ky_session *session, struct kymo_error *err)
{
	ky_vec_foreach(&session->cpus, it) {
		struct ky_session_cpu *cpu = *it;
		struct ky_cpu_ring_stats stats;
		int ret =
			ky_cpu_ring_stats(&session->instance, cpu->kernel.convert.cpu, &stats, err);

		if (ret < 0)
			return ret;
		cpu->kernel.convert.events = stats.read;
		cpu->kernel.convert.lost = stats.commit_overrun + stats.dropped;
		if (session->options.overwrite)
			cpu->kernel.convert.events = cpu->raw_flight.events;
		else
			cpu->kernel.convert.lost += stats.overrun;
		/* Write everything that was read. After a failure, do not wait for the other blocks. */
		if (cpu->raw_file)
			(void)ky_block_file_wait(cpu->raw_file);
		session->raw_bytes +=
			cpu->raw_file ? ky_block_file_written(cpu->raw_file) : cpu->raw_bytes;
		if (cpu->kernel.online || cpu->raw_bytes)
			cpu->kernel.stream = 0;
	}
	return KYMO_OK;
}

int ky_raw_finish(struct ky_session *session, uint64_t end_cycles, struct kymo_error *err)
{
	/* Who was started since the beginning: that may have been overwritten. */
	int scanned = session->options.overwrite && session->kernel.has_threads
			      ? ky_threads_scan(&session->kernel.threads, err)
			      : KYMO_OK;

	return scanned < 0 ? scanned : ky_raw_describe(session, end_cycles, err);
}
