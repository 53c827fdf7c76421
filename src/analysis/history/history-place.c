/* SPDX-License-Identifier: MIT */
/* The state history: where indexes are, which trace one belongs to, and when one must be built. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/history/history-format.h"
#include "analysis/history/history-internal.h"
#include "base/error.h"
#include "os/file.h"
#include "os/now.h"

/* Of the begin and the end of each file of a stream. */
#define SAMPLE_BYTES UINT64_C(512)
#define SECOND_NS    INT64_C(1000000000)
/* Publishing takes at most one of so many parts of the time. */
#define PUBLISH_PART 20
/* Between two looks at an index that another process builds. */
#define WAIT_NS 20000000

static void history_place_digest(uint8_t to[16], const struct ky_strbuf *text)
{
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t half = ky_history_checksum(i, ky_strbuf_text(text), text->len);

		memcpy(to + 8 * i, &half, sizeof(half));
	}
}

static void history_place_add_number(struct ky_strbuf *text, uint64_t number)
{
	ky_strbuf_add(text, (const char *)&number, sizeof(number));
}

static void add_sample(struct ky_strbuf *text, const uint8_t *data, uint64_t size_bytes)
{
	uint64_t len = size_bytes < SAMPLE_BYTES ? size_bytes : SAMPLE_BYTES;

	if (!data || !len)
		return;
	ky_strbuf_add(text, (const char *)data, (size_t)len);
	ky_strbuf_add(text, (const char *)data + size_bytes - len, (size_t)len);
}

static void history_place_add_part(struct ky_strbuf *text, const struct ky_stream *stream,
				   const struct ky_stream_part *part)
{
	struct stat st = {0};

	ky_strbuf_adds(text, part->path);
	history_place_add_number(text, part->size_bytes);
	history_place_add_number(text, part->device);
	history_place_add_number(text, part->inode);
	if (part->fd < 0 && stat(part->path, &st) == 0) {
		history_place_add_number(text, (uint64_t)st.st_size);
		history_place_add_number(text, (uint64_t)st.st_mtim.tv_sec);
		history_place_add_number(text, (uint64_t)st.st_mtim.tv_nsec);
	}
	if (stream->file.data && part->at_bytes + part->size_bytes <= stream->file.size_bytes)
		add_sample(text, stream->file.data + part->at_bytes, part->size_bytes);
}

static int history_place_add_trace(struct ky_strbuf *text, const struct ky_trace *trace,
				   struct kymo_error *err)
{
	struct ky_strbuf metadata = KY_STRBUF_INIT;
	int status = ky_trace_read_metadata(trace, &metadata, err);

	if (status >= 0) {
		ky_strbuf_add(text, ky_strbuf_text(&metadata), metadata.len);
		ky_strbuf_add(text, (const char *)trace->cls->uuid, sizeof(trace->cls->uuid));
		history_place_add_number(text, trace->recover);
		ky_vec_foreach(&trace->cls->clocks, clock) {
			history_place_add_number(text, (uint64_t)ky_clock_to_ns(*clock, 0));
			history_place_add_number(text, (*clock)->frequency_hz);
			history_place_add_number(text, (uint64_t)(*clock)->line.drift);
		}
		ky_vec_foreach(&trace->streams, stream) {
			ky_vec_foreach(&(*stream)->parts, part)
				history_place_add_part(text, *stream, part);
		}
	}
	ky_strbuf_fini(&metadata);
	return status;
}

static int add_place(struct ky_strbuf *text, const struct ky_trace *trace, struct kymo_error *err)
{
	char *path = ky_trace_real_path(trace);

	if (!path)
		return ky_error_errno(err, errno, "cannot find the trace again");
	ky_strbuf_add(text, path, strlen(path) + 1);
	free(path);
	return 0;
}

int ky_history_identify(const struct ky_trace_set *set, struct ky_history_identity *identity,
			struct kymo_error *err)
{
	struct ky_strbuf places = KY_STRBUF_INIT, contents = KY_STRBUF_INIT;
	int status = 0;

	ky_vec_foreach(&set->traces, trace) {
		if (status >= 0)
			status = add_place(&places, *trace, err);
		if (status >= 0)
			status = history_place_add_trace(&contents, *trace, err);
	}
	if (ky_strbuf_failed(&places) || ky_strbuf_failed(&contents))
		status = ky_error_nomem(err);
	history_place_digest(identity->place, &places);
	history_place_digest(identity->content, &contents);
	ky_strbuf_fini(&places);
	ky_strbuf_fini(&contents);
	return status;
}

/* ---- a pass ------------------------------------------------------------------------------------------ */

struct pass {
	int fd; /* of the index */
	const struct ky_trace_set *set;
	const struct ky_history_source *source;
	const struct ky_log *log; /* may be NULL */
	struct ky_history_identity identity;
	struct kymo_error *damage, *err;
};

static bool history_place_is_over(void *data)
{
	const struct pass *pass = data;

	return pass->source->progress && pass->source->progress(pass->source->data, 0) < 0;
}

static int history_place_publish(const struct pass *pass, struct ky_history_builder *builder)
{
	int status = ky_history_builder_publish(builder, pass->err);
	struct ky_history *history;
	struct kymo_error ignored;

	if (status >= 0 && pass->source->partial &&
	    ky_history_open_fd(pass->fd, &pass->identity, true, &history, &ignored) >= 0)
		pass->source->partial(pass->source->data, history);
	return status;
}

/* From time to time: readers see the index grow. */
static int show_progress(const struct pass *pass, struct ky_history_builder *builder,
			 int64_t *next_ns)
{
	int64_t ns = ky_os_now_ns();
	int status = 0;

	if (pass->source->progress)
		status = pass->source->progress(pass->source->data,
						ky_history_builder_events(builder));
	if (status < 0 || ns < *next_ns || !ky_history_builder_is_due(builder))
		return status;
	status = history_place_publish(pass, builder);
	*next_ns = ky_os_now_ns() + (ky_os_now_ns() - ns) * PUBLISH_PART + SECOND_NS;
	return status;
}

#define PROGRESS_EVENTS 65536

static int feed_all(const struct pass *pass, struct ky_history_builder *builder,
		    struct ky_flow *flow)
{
	int64_t next_ns = ky_os_now_ns() + SECOND_NS / 4;
	uint64_t n = 0;
	struct ky_batch batch;
	int status;

	while ((status = ky_flow_next(flow, &batch, pass->damage)) > 0) {
		status = ky_history_builder_feed(builder, &batch, pass->err);
		n += batch.n_events;
		if (status >= 0 && n >= PROGRESS_EVENTS) {
			n = 0;
			status = show_progress(pass, builder, &next_ns);
		}
		if (status < 0)
			return status;
	}
	/* The trace ends here, or is damaged here: what was read counts. */
	if (status == KYMO_E_MEMORY)
		return ky_error_nomem(pass->err);
	return status < 0 ? ky_history_builder_damage(builder, flow, pass->err) : 0;
}

static int history_place_build(struct pass *pass, int fd)
{
	struct ky_history_builder *builder;
	struct ky_flow *flow;
	int status;

	pass->fd = fd;
	status = pass->source->open(pass->source->data, pass->set, &flow, pass->err);

	if (status < 0)
		return status;
	status = ky_history_builder_open(pass->set, &pass->identity, fd, &builder, pass->err);
	if (status >= 0) {
		ky_history_builder_set_stop(builder, history_place_is_over, pass);
		status = feed_all(pass, builder, flow);
		if (status >= 0)
			status = ky_history_builder_end(builder, pass->err);
		ky_history_builder_free(builder);
	}
	ky_flow_close(flow);
	return status;
}

/* ---- finding ------------------------------------------------------------------------------------------ */

/* The directory of indexes, or -1. */
static int open_directory(void)
{
	struct kymo_error ignored;
	char *directory = ky_history_directory(&ignored);
	int dir = -1;

	if (directory)
		dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	return dir;
}

static void history_place_name(const struct ky_history_identity *identity, const char *suffix,
			       char name[KY_HISTORY_NAME_BYTES])
{
	char hex[33];

	for (size_t i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", identity->place[i]);
	snprintf(name, KY_HISTORY_NAME_BYTES, "%s.%s", hex, suffix);
}

/* Is @fd still the file of that name? */
static bool is_still(int fd, int dir, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* A damaged file is not believed again. */
static void discard_in(int dir, int fd, const char *name, const struct ky_log *log)
{
	if (is_still(fd, dir, name) && unlinkat(dir, name, 0) == 0)
		ky_log_warning(log,
			       "the state history on disk was damaged: kymo has removed it, and "
			       "builds it again where it is needed");
}

void ky_history_discard(const struct ky_history *history)
{
	char name[KY_HISTORY_NAME_BYTES];
	int dir = open_directory();

	if (dir < 0)
		return;
	history_place_name(&history->head.identity, "history", name);
	discard_in(dir, history->fd, name, history->log);
	close(dir);
}

/* An index that is right and complete. 0 or a negative status. */
static int open_kept(const struct pass *pass, int dir, const char *name,
		     struct ky_history **history, struct kymo_error *err)
{
	int fd = ky_file_open_regular(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), status;

	if (fd < 0)
		return ky_error_errno(err, -fd, "cannot open the state history");
	status = ky_history_open_fd(fd, &pass->identity, false, history, err);
	/* Only complete ones have this name. */
	if (status == KYMO_E_FORMAT || status == KYMO_E_AGAIN)
		discard_in(dir, fd, name, pass->log);
	if (status >= 0) {
		(*history)->is_kept = true;
		(*history)->log = pass->log;
		/* The time of its last use. */
		(void)futimens(fd, NULL);
	}
	close(fd);
	return status;
}

/* Another process may need minutes: waiting ends when nobody wants the index any more. 0 or -errno. */
static int lock_or_end(struct pass *pass, int fd)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return -errno;
		if (history_place_is_over(pass))
			return -EINTR;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* Lock the file that becomes the index: one process builds, others wait. A descriptor or -errno. */
static int lock_part(struct pass *pass, int dir, const char *name)
{
	for (;;) {
		int fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
				0600);

		int status = fd < 0 ? -errno : lock_or_end(pass, fd);

		if (status < 0 && fd >= 0)
			close(fd);
		if (status < 0)
			return status;
		/* Another process has finished it meanwhile. */
		if (is_still(fd, dir, name))
			return fd;
		close(fd);
	}
}

static int build_locked(struct pass *pass, int dir, int fd, const char *part, const char *name,
			struct ky_history **history)
{
	int status;

	if (ftruncate(fd, 0) < 0)
		status = ky_error_errno(pass->err, errno, "cannot write the state history");
	else
		status = history_place_build(pass, fd);
	if (status >= 0)
		status = ky_history_open_fd(fd, &pass->identity, true, history, pass->err);
	/* What a damaged trace lacks may come back. */
	if (status >= 0 && !pass->damage->code && renameat(dir, part, dir, name) == 0) {
		(*history)->is_kept = true;
		(*history)->log = pass->log;
		ky_history_evict(dir, name);
		return 0;
	}
	(void)unlinkat(dir, part, 0);
	return status;
}

/* For pictures, which show names. */
static int use_kept(struct pass *pass, struct ky_history **history)
{
	int status = ky_history_name_functions(*history, pass->set, pass->err);

	if (status >= 0)
		return 0;
	ky_history_close(*history);
	*history = NULL;
	return status;
}

static int get_kept(struct pass *pass, int dir, struct ky_history **history, bool *built)
{
	char name[KY_HISTORY_NAME_BYTES], part[KY_HISTORY_NAME_BYTES];
	struct kymo_error ignored;
	int fd, status;

	history_place_name(&pass->identity, "history", name);
	history_place_name(&pass->identity, "part", part);
	if (open_kept(pass, dir, name, history, &ignored) >= 0)
		return use_kept(pass, history);
	fd = lock_part(pass, dir, part);
	if (fd == -EINTR)
		return ky_error_set(pass->err, KYMO_E_INTERRUPTED,
				    "the state history was stopped: its user has ended");
	if (fd < 0)
		return ky_error_errno(pass->err, -fd, "cannot write the state history");
	if (open_kept(pass, dir, name, history, &ignored) >= 0) {
		(void)unlinkat(dir, part, 0);
		close(fd);
		return use_kept(pass, history);
	}
	*built = true;
	status = build_locked(pass, dir, fd, part, name, history);
	close(fd);
	return status;
}

static int get_unnamed(struct pass *pass, struct ky_history **history, bool *built)
{
	const char *temp = getenv("TMPDIR");
	int fd = ky_file_open_unnamed(temp && temp[0] == '/' ? temp : "/tmp"), status;

	if (fd < 0)
		return ky_error_errno(pass->err, -fd, "cannot write the state history");
	*built = true;
	status = history_place_build(pass, fd);
	if (status >= 0)
		status = ky_history_open_fd(fd, &pass->identity, true, history, pass->err);
	close(fd);
	return status;
}

/* Contents of traces without files of their own change their identity each time. */
static bool is_lasting(const struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace) {
		if ((*trace)->scratch || (*trace)->feed || (*trace)->live.is_written)
			return false;
	}
	return true;
}

struct ky_history *ky_history_find(const struct ky_trace_set *set, const struct ky_log *log)
{
	struct pass pass = {.set = set, .log = log};
	char name[KY_HISTORY_NAME_BYTES];
	struct ky_history *history = NULL;
	struct kymo_error ignored;
	int dir;

	if (!is_lasting(set) || ky_history_identify(set, &pass.identity, &ignored) < 0)
		return NULL;
	dir = open_directory();
	if (dir < 0)
		return NULL;
	history_place_name(&pass.identity, "history", name);
	if (open_kept(&pass, dir, name, &history, &ignored) < 0)
		history = NULL;
	close(dir);
	return history;
}

int ky_history_get(const struct ky_trace_set *set, const struct ky_history_source *source,
		   struct ky_history **history, bool *built, struct kymo_error *damage,
		   struct kymo_error *err)
{
	struct pass pass = {
		.set = set, .source = source, .log = source->log, .damage = damage, .err = err};
	int dir = -1, status;

	*history = NULL;
	*built = false;
	ky_error_clear(damage);
	if (is_lasting(set)) {
		status = ky_history_identify(set, &pass.identity, err);
		if (status < 0)
			return status;
		dir = open_directory();
	}
	if (dir < 0)
		return get_unnamed(&pass, history, built);
	status = get_kept(&pass, dir, history, built);
	close(dir);
	return status;
}
