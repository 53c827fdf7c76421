/* SPDX-License-Identifier: MIT */
#include "net/relay/relay-session.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "net/files/relay-files.h"
#include "net/files/relay-symbols.h"
#include "os/file.h"
#include "store/live/live-file.h"

#define STATE_DIR   ".kymo"
#define STATE_MAGIC "KYMORLY1"
#define PATH_BYTES  512
/* More than a recording of one machine has programs at a time. */
#define TRACES_MAX 65536
/* How long the state of a complete session stays: its recorder may not know yet that it is complete. */
#define KEEP_S 3600
/* The others wait while the relay looks at states. */
#define CLEAN_AT_A_TIME 200

/* The file of a session's state, mapped. */
struct state {
	char magic[8];
	uint64_t next;	      /* number of the next frame */
	uint64_t is_complete; /* its last frame is carried out */
	char path[PATH_BYTES];
};

struct ky_relay_session {
	uint8_t id[16];
	int relay_fd, dir_fd;
	char state_name[40];
	char path[PATH_BYTES];
	struct state *state;
	uint64_t
		next; /* number of the next frame; the state's is lower while packets are in the batch */
	uint64_t bytes;
	struct ky_relay_batch *batch;
	bool has_failed; /* the batch lacks something, or could not be written */
	struct ky_relay_use use;
	bool is_complete;
	struct ky_map traces; /* the open ones, by their number */

	/* The frame that is coming in. */
	struct ky_frame frame;
	bool is_skipped; /* it was carried out before */
	uint64_t taken;	 /* bytes of the payload */
	struct ky_relay_trace *trace;
	struct ky_relay_symbols symbols;
	struct ky_relay_place place; /* of the last packet; of the next one, once that has ended */
	uint8_t fixed[KY_NET_TEXT_MAX + 16]; /* the beginning of the payload, or all of it */
};

/* ---- the state ------------------------------------------------------------------------ */

static int state_error(int errnum, const char *path, struct kymo_error *err)
{
	return ky_relay_io_error(path, errnum, "keep the session's state", err);
}

static int map_state(struct ky_relay_session *session, int fd, struct kymo_error *err)
{
	/* Without its blocks on the disk, a store to the mapping would end the relay when the disk is full. */
	int errnum = posix_fallocate(fd, 0, sizeof(*session->state));
	void *map;

	if (errnum)
		return state_error(errnum, session->state_name, err);
	map = mmap(NULL, sizeof(*session->state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return state_error(errno, session->state_name, err);
	session->state = map;
	return KYMO_OK;
}

/* The state of a new session is written only when its directory is there. */
static int relay_session_begin_session(struct ky_relay_session *session, int fd,
				       const struct ky_relay_session_spec *spec,
				       struct kymo_error *err)
{
	int ret = spec->refusal ? spec->refusal->code : map_state(session, fd, err);

	if (spec->refusal && err)
		*err = *spec->refusal;
	if (!ret)
		ret = ky_relay_make_unique(session->relay_fd, spec->host, spec->name, session->path,
					   PATH_BYTES, err);
	if (ret < 0) {
		/* Refused recorders leave nothing, however often they come. */
		(void)unlinkat(session->relay_fd, session->state_name, 0);
		return ret;
	}
	session->use.added_bytes += KY_RELAY_ENTRY_BYTES;
	memcpy(session->state->path, session->path, PATH_BYTES);
	session->state->next = 1;
	memcpy(session->state->magic, STATE_MAGIC, sizeof(session->state->magic));
	return KYMO_OK;
}

static int resume_session(struct ky_relay_session *session, int fd, struct kymo_error *err)
{
	int ret = map_state(session, fd, err);

	if (ret < 0)
		return ret;
	memcpy(session->path, session->state->path, PATH_BYTES);
	session->path[PATH_BYTES - 1] = '\0';
	session->is_complete = session->state->is_complete != 0;
	if (!ky_net_is_path(session->path, strlen(session->path)))
		return ky_error_set(err, KYMO_E_IO, "the session's state is damaged");
	return KYMO_OK;
}

static int open_state(struct ky_relay_session *session, const struct ky_relay_session_spec *spec,
		      struct kymo_error *err)
{
	char magic[sizeof(session->state->magic)] = "";
	int fd, ret;

	if (mkdirat(session->relay_fd, STATE_DIR, 0700) < 0 && errno != EEXIST)
		return state_error(errno, STATE_DIR, err);
	fd = ky_file_open(session->relay_fd, session->state_name,
			  O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return state_error(errno, session->state_name, err);
	if (pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	    memcmp(magic, STATE_MAGIC, sizeof(magic)) == 0)
		ret = resume_session(session, fd, err);
	else
		ret = relay_session_begin_session(session, fd, spec, err);
	close(fd);
	if (ret < 0)
		return ret;
	session->dir_fd = ky_file_open(session->relay_fd, session->path,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (session->dir_fd < 0)
		return state_error(errno, session->path, err);
	/* Readers of the directory wait for traces while the recorder is connected. */
	if (!session->is_complete)
		ky_live_claim(session->dir_fd);
	return KYMO_OK;
}

int ky_relay_session_open(int dir_fd, const struct ky_relay_session_spec *spec,
			  struct ky_relay_batch *batch, struct ky_relay_session **out,
			  struct kymo_error *err)
{
	struct ky_relay_session *session = calloc(1, sizeof(*session));
	int at, ret;

	*out = NULL;
	if (!session)
		return ky_error_nomem(err);
	session->relay_fd = dir_fd;
	session->dir_fd = -1;
	session->symbols = (struct ky_relay_symbols)KY_RELAY_SYMBOLS_INIT;
	session->batch = batch;
	memcpy(session->id, spec->id, sizeof(session->id));
	at = snprintf(session->state_name, sizeof(session->state_name), STATE_DIR "/");
	for (int i = 0; i < 16; i++, at += 2)
		snprintf(session->state_name + at, 3, "%02x", session->id[i]);
	ret = open_state(session, spec, err);
	if (ret < 0) {
		ky_relay_session_close(session);
		return ret;
	}
	session->next = session->state->next;
	*out = session;
	return KYMO_OK;
}

void ky_relay_session_drop_part(struct ky_relay_session *session)
{
	ky_relay_symbols_fini(&session->symbols, &session->use.removed_bytes);
	if (session->trace)
		ky_relay_trace_drop_part(session->trace);
}

void ky_relay_session_close(struct ky_relay_session *session)
{
	void *trace;
	uint64_t number;
	size_t at = 0;

	if (!session)
		return;
	ky_relay_session_drop_part(session);
	while (ky_map_next(&session->traces, &at, &number, &trace))
		ky_relay_trace_free(trace);
	ky_map_fini(&session->traces);
	if (session->state)
		munmap(session->state, sizeof(*session->state));
	if (session->dir_fd >= 0)
		close(session->dir_fd);
	free(session);
}

const uint8_t *ky_relay_session_id(const struct ky_relay_session *session)
{
	return session->id;
}

const char *ky_relay_session_path(const struct ky_relay_session *session)
{
	return session->path;
}

uint64_t ky_relay_session_next(const struct ky_relay_session *session)
{
	return session->state->next;
}

uint64_t ky_relay_session_bytes(const struct ky_relay_session *session)
{
	return session->bytes;
}

const struct ky_relay_use *ky_relay_session_use(const struct ky_relay_session *session)
{
	return &session->use;
}

const struct ky_relay_place *ky_relay_session_place(const struct ky_relay_session *session)
{
	return &session->place;
}

bool ky_relay_session_is_complete(const struct ky_relay_session *session)
{
	return session->is_complete;
}

uint32_t ky_relay_session_delay_ms(const struct ky_relay_session *session)
{
	return ky_live_delay_ms(session->dir_fd);
}

static bool read_state(int dir_fd, const char *name, struct state *state, struct stat *st)
{
	int fd = ky_file_open(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	bool is_state;

	if (fd < 0)
		return false;
	is_state = fstat(fd, st) == 0 && S_ISREG(st->st_mode) &&
		   pread(fd, state, sizeof(*state), 0) == sizeof(*state) &&
		   memcmp(state->magic, STATE_MAGIC, sizeof(state->magic)) == 0;
	close(fd);
	return is_state;
}

/* The state of a complete session that its recorder asks for no more. */
static bool is_old(int dir_fd, const char *name)
{
	struct state state;
	struct stat st;

	return read_state(dir_fd, name, &state, &st) && state.is_complete &&
	       time(NULL) - st.st_mtime > KEEP_S;
}

int ky_relay_session_list_open(int dir_fd, int (*take)(void *data, const char *path), void *data)
{
	DIR *dir = ky_dir_open(dir_fd, STATE_DIR);
	struct dirent *entry;
	struct state state;
	struct stat st;
	int ret = KYMO_OK;

	while (dir && !ret && (entry = readdir(dir)))
		if (read_state(dirfd(dir), entry->d_name, &state, &st) && !state.is_complete &&
		    memchr(state.path, '\0', sizeof(state.path)))
			ret = take(data, state.path);
	if (dir)
		closedir(dir);
	return ret;
}

bool ky_relay_session_clean(int dir_fd, DIR **at)
{
	const struct dirent *entry;

	if (!*at)
		*at = ky_dir_open(dir_fd, STATE_DIR);
	for (int i = 0; *at && i < CLEAN_AT_A_TIME; i++) {
		entry = readdir(*at);
		if (entry && is_old(dirfd(*at), entry->d_name))
			(void)unlinkat(dirfd(*at), entry->d_name, 0);
		if (entry)
			continue;
		closedir(*at);
		*at = NULL;
	}
	return *at != NULL;
}

/* ---- traces --------------------------------------------------------------------------- */

static int no_such_trace(uint32_t number, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "there is no trace %" PRIu32, number);
}

static int relay_session_open_trace(struct ky_relay_session *session, uint32_t flags,
				    const char *path, struct kymo_error *err)
{
	uint32_t number = session->frame.trace;
	struct ky_relay_trace *trace;
	int ret;

	if (!number)
		return no_such_trace(number, err);
	if (ky_map_get(&session->traces, number))
		return KYMO_OK;
	if (session->traces.len >= TRACES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "the session has too many traces");
	ret = ky_relay_trace_new(session->dir_fd, path, flags & KY_OPEN_IS_PART, &session->use,
				 session->batch, &trace, err);
	if (ret < 0)
		return ret;
	if (ky_map_set(&session->traces, number, trace) == 0)
		return KYMO_OK;
	ky_relay_trace_free(trace);
	return ky_error_nomem(err);
}

static void forget_trace(struct ky_relay_session *session)
{
	ky_map_del(&session->traces, session->frame.trace);
	ky_relay_trace_free(session->trace);
	session->trace = NULL;
}

/* ---- frames --------------------------------------------------------------------------- */

/* How many bytes at the beginning of the payload are collected; the rest goes to a file. */
static size_t fixed_bytes(const struct ky_frame *frame)
{
	if (frame->type == KY_FRAME_DATA)
		return sizeof(struct ky_net_data);
	if (frame->type == KY_FRAME_FILE)
		return sizeof(struct ky_net_file);
	return frame->type == KY_FRAME_METADATA ? 0 : (size_t)frame->bytes;
}

static bool needs_trace(uint32_t type)
{
	return type == KY_FRAME_STREAM || (type >= KY_FRAME_DATA && type < KY_FRAME_BYE);
}

int ky_relay_session_begin(struct ky_relay_session *session, const struct ky_frame *frame,
			   struct kymo_error *err)
{
	uint64_t next = session->next;
	int ret = frame->type == KY_FRAME_DATA ? KYMO_OK : ky_relay_session_flush(session, err);

	if (ret < 0)
		return ret;
	session->frame = *frame;
	session->taken = 0;
	session->trace = NULL;
	session->is_skipped = frame->number && frame->number < next;
	if (frame->number > next)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "frame %" PRIu64 " comes before frame %" PRIu64, frame->number,
				    next);
	if (session->is_complete && frame->number)
		return ky_error_set(err, KYMO_E_FORMAT, "a frame comes after the end");
	if (session->is_skipped || !needs_trace(frame->type))
		return KYMO_OK;
	session->trace = ky_map_get(&session->traces, frame->trace);
	if (!session->trace)
		return no_such_trace(frame->trace, err);
	return frame->type == KY_FRAME_METADATA ? ky_relay_trace_metadata(session->trace, err)
						: KYMO_OK;
}

/* The fixed part of a packet's frame is here: its bytes follow. */
static int relay_session_begin_packet(struct ky_relay_session *session, struct kymo_error *err)
{
	struct ky_net_data data;

	memcpy(&data, session->fixed, sizeof(data));
	data.stream = le32toh(data.stream);
	data.index_bytes = le32toh(data.index_bytes);
	data.offset_bytes = le64toh(data.offset_bytes);
	data.entry = le64toh(data.entry);
	session->place =
		(struct ky_relay_place){data.offset_bytes, KY_FRAME_HEAD_BYTES + sizeof(data),
					session->frame.bytes - sizeof(data)};
	return ky_relay_trace_packet(session->trace, &data, session->frame.bytes - sizeof(data),
				     err);
}

/* The fixed part of a frame whose other bytes go to a file is here. */
static int relay_session_begin_bytes(struct ky_relay_session *session, struct kymo_error *err)
{
	struct ky_net_file file;

	if (session->frame.type == KY_FRAME_DATA)
		return relay_session_begin_packet(session, err);
	if (session->frame.type != KY_FRAME_FILE)
		return KYMO_OK;
	memcpy(&file, session->fixed, sizeof(file));
	return ky_relay_symbols_begin(&session->symbols, session->dir_fd, &file,
				      &session->use.added_bytes, err);
}

static int relay_session_write(struct ky_relay_session *session, const uint8_t *data, size_t bytes,
			       struct kymo_error *err)
{
	return session->frame.type == KY_FRAME_FILE
		       ? ky_relay_symbols_write(&session->symbols, data, bytes,
						&session->use.added_bytes, err)
		       : ky_relay_trace_write(session->trace, data, bytes, err);
}

int ky_relay_session_take(struct ky_relay_session *session, const uint8_t *data, size_t bytes,
			  struct kymo_error *err)
{
	size_t fixed = fixed_bytes(&session->frame), part;
	int ret = KYMO_OK;

	if (session->is_skipped)
		return KYMO_OK;
	if (session->taken < fixed) {
		part = fixed - session->taken < bytes ? fixed - (size_t)session->taken : bytes;
		memcpy(session->fixed + session->taken, data, part);
		session->taken += part;
		data += part;
		bytes -= part;
		if (session->taken == fixed)
			ret = relay_session_begin_bytes(session, err);
	}
	session->taken += bytes;
	session->bytes += bytes;
	if (!ret && bytes)
		ret = relay_session_write(session, data, bytes, err);
	session->has_failed |= ret < 0;
	return ret;
}

/* The payload behind @skip bytes, as a path or a name. */
static char *relay_session_take_text(struct ky_relay_session *session, size_t skip)
{
	session->fixed[session->frame.bytes] = '\0';
	return (char *)session->fixed + skip;
}

static uint32_t u32_at(const struct ky_relay_session *session, size_t at)
{
	uint32_t value;

	memcpy(&value, session->fixed + at, sizeof(value));
	return le32toh(value);
}

static uint64_t u64_at(const struct ky_relay_session *session, size_t at)
{
	uint64_t value;

	memcpy(&value, session->fixed + at, sizeof(value));
	return le64toh(value);
}

static int relay_session_take_path(struct ky_relay_session *session, size_t skip, const char **path,
				   struct kymo_error *err)
{
	*path = relay_session_take_text(session, skip);
	if (strlen(*path) != session->frame.bytes - skip || !ky_net_is_path(*path, strlen(*path)))
		return ky_error_set(err, KYMO_E_FORMAT, "a path cannot be used");
	return KYMO_OK;
}

static int end_definition(struct ky_relay_session *session, struct kymo_error *err)
{
	const char *text;
	int ret;

	if (session->frame.type == KY_FRAME_OPEN) {
		ret = relay_session_take_path(session, 4, &text, err);
		return ret < 0 ? ret
			       : relay_session_open_trace(session, u32_at(session, 0), text, err);
	}
	ret = relay_session_take_path(session, 8, &text, err);
	if (!ret && strchr(text, '/'))
		ret = ky_error_set(err, KYMO_E_FORMAT, "a name of a stream cannot be used");
	return ret < 0 ? ret : ky_relay_trace_stream(session->trace, u32_at(session, 0), text, err);
}

static int relay_session_end_rotation(struct ky_relay_session *session, struct kymo_error *err)
{
	const char *archive;
	int ret = relay_session_take_path(session, 8, &archive, err);

	return ret < 0 ? ret
		       : ky_relay_trace_rotate(session->trace, archive, u32_at(session, 0) != 0,
					       err);
}

static int end_removal(struct ky_relay_session *session, struct kymo_error *err)
{
	const char *path;
	int ret = relay_session_take_path(session, 0, &path, err);

	if (ret < 0)
		return ret;
	session->use.removed_bytes += ky_relay_remove_below(session->dir_fd, path);
	return KYMO_OK;
}

static int relay_session_end_frame(struct ky_relay_session *session, struct kymo_error *err)
{
	struct ky_relay_trace *trace = session->trace;

	switch (session->frame.type) {
	case KY_FRAME_OPEN:
	case KY_FRAME_STREAM:
		return end_definition(session, err);
	case KY_FRAME_DATA:
		session->place.offset_bytes += session->place.data_bytes;
		return ky_relay_trace_packet_end(trace, err);
	case KY_FRAME_METADATA:
		return ky_relay_trace_metadata_end(trace, err);
	case KY_FRAME_PATCH:
		return ky_relay_trace_patch(trace, u64_at(session, 0), session->fixed + 8,
					    (size_t)session->frame.bytes - 8, err);
	case KY_FRAME_BEACON:
		return ky_relay_trace_beacon(trace, u64_at(session, 0), err);
	case KY_FRAME_END:
		ky_relay_trace_end(trace);
		return KYMO_OK;
	case KY_FRAME_CLOSE:
		ky_relay_trace_close(trace);
		forget_trace(session);
		return KYMO_OK;
	case KY_FRAME_DISCARD:
		ky_relay_trace_discard(trace);
		forget_trace(session);
		return KYMO_OK;
	case KY_FRAME_ROTATE:
		return relay_session_end_rotation(session, err);
	case KY_FRAME_REMOVE:
		return end_removal(session, err);
	case KY_FRAME_FILE:
		return ky_relay_symbols_end(&session->symbols, &session->use.added_bytes,
					    &session->use.removed_bytes, err);
	case KY_FRAME_BYE:
		session->is_complete = true;
		session->state->is_complete = 1;
		return KYMO_OK;
	default:
		return ky_error_set(err, KYMO_E_FORMAT, "a frame of type %u comes here",
				    session->frame.type);
	}
}

int ky_relay_session_end(struct ky_relay_session *session, struct kymo_error *err)
{
	int ret;

	if (session->is_skipped)
		return KYMO_OK;
	ret = relay_session_end_frame(session, err);
	session->has_failed |= ret < 0;
	if (ret < 0 || !session->frame.number)
		return ret;
	session->next = session->frame.number + 1;
	if (session->frame.type != KY_FRAME_DATA)
		session->state->next = session->next;
	return KYMO_OK;
}

int ky_relay_session_flush_data(struct ky_relay_session *session, struct kymo_error *err)
{
	int ret = ky_relay_trace_flush_data(session->batch, err);

	session->has_failed |= ret < 0;
	return ret;
}

int ky_relay_session_flush(struct ky_relay_session *session, struct kymo_error *err)
{
	int ret = ky_relay_trace_flush(session->batch, err);

	session->has_failed |= ret < 0;
	if (!session->has_failed)
		session->state->next = session->next;
	return ret;
}
