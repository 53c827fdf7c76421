/* SPDX-License-Identifier: MIT */
#include "record/rings/user-dump.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/elf-file.h"
#include "record/rings/user-dump-internal.h"
#include "record/rings/user-maps.h"
#include "record/request/user-program.h"
#include "record/rings/user-states.h"

#define BINARIES_MAX 4096u

KY_VEC_TYPE(binaries, struct ky_maps_binary);

/* ---- events --------------------------------------------------------------------------- */

static void user_dump_put(struct ky_user_dump *dump, const void *data, size_t bytes)
{
	if (bytes > sizeof(dump->body) - dump->used_bytes)
		return;
	memcpy(dump->body + dump->used_bytes, data, bytes);
	dump->used_bytes += (uint32_t)bytes;
}

static void put_u64(struct ky_user_dump *dump, uint64_t value)
{
	user_dump_put(dump, &value, sizeof(value));
}

static void user_dump_put_text(struct ky_user_dump *dump, const char *text, int bytes)
{
	user_dump_put(dump, text, (size_t)bytes);
	user_dump_put(dump, "", 1);
}

/* What was put becomes an event; the next one begins. */
static int user_dump_emit(struct ky_user_dump *dump, enum ky_user_dump_event id)
{
	struct ky_strbuf *to = dump->to;
	bool is_excluded = dump->ring->dump_excluded >> id & 1;
	const uint64_t no_ip = 0; /* nobody's code: the recorder looks from outside */
	uint32_t context_bytes = sizeof(dump->vpid) + (dump->has_ip ? sizeof(no_ip) : 0);
	struct ky_user_dump_head head = {.id = id, .bytes = context_bytes + dump->used_bytes};

	dump->used_bytes = 0;
	if (is_excluded)
		return KYMO_OK;
	ky_strbuf_add(to, (const char *)&head, sizeof(head));
	ky_strbuf_add(to, (const char *)&dump->vpid, sizeof(dump->vpid));
	if (dump->has_ip)
		ky_strbuf_add(to, (const char *)&no_ip, sizeof(no_ip));
	ky_strbuf_add(to, (const char *)dump->body, head.bytes - context_bytes);
	return ky_strbuf_failed(to) ? ky_error_nomem(dump->err) : KYMO_OK;
}

/* ---- binaries ------------------------------------------------------------------------- */

/* The file as the process sees it; of one that has ended (or is a zombie, which sees nothing), as we do. */
static bool read_elf(struct ky_user_dump *dump, const struct ky_maps_binary *binary,
		     struct ky_elf_info *info)
{
	char path[PATH_MAX + 16];
	bool is_read = false;
	struct stat st;
	int fd = -1;

	snprintf(path, sizeof(path), "root%.*s", binary->path_bytes, binary->path);
	if (dump->proc)
		fd = ky_file_open_regular(dirfd(dump->proc), path, O_RDONLY);
	if (fd < 0)
		fd = ky_file_open_regular(AT_FDCWD, path + strlen("root"), O_RDONLY);
	if (fd < 0)
		return false;
	/* Another file may have taken the name since. */
	if (fstat(fd, &st) == 0 && st.st_ino == binary->inode)
		is_read = ky_elf_read(fd, info);
	close(fd);
	return is_read;
}

/* @ids: of the state dump, or of a library that comes later: the first has no word of its position then. */
struct binary_events {
	enum ky_user_dump_event info, build_id, debug_link;
	bool has_is_pic;
};

static const struct binary_events of_state = {KY_USER_DUMP_BIN_INFO, KY_USER_DUMP_BUILD_ID,
					      KY_USER_DUMP_DEBUG_LINK, true};
static const struct binary_events of_loading = {KY_USER_DUMP_LOAD, KY_USER_DUMP_LOAD_BUILD_ID,
						KY_USER_DUMP_LOAD_DEBUG_LINK, false};

static int emit_binary(struct ky_user_dump *dump, const struct ky_maps_binary *binary,
		       const struct binary_events *ids)
{
	struct ky_elf_info info = {0};
	uint8_t flags[3];
	int ret;

	if (!read_elf(dump, binary, &info)) {
		memset(&info, 0, sizeof(info));
		info.is_pic = true;
		info.memory_bytes = binary->end - binary->base;
	}
	flags[0] = info.is_pic;
	flags[1] = info.build_id_bytes != 0;
	flags[2] = info.debug_link[0] != 0;
	put_u64(dump, binary->base);
	put_u64(dump, info.memory_bytes);
	user_dump_put_text(dump, binary->path, binary->path_bytes);
	user_dump_put(dump, flags + !ids->has_is_pic, sizeof(flags) - !ids->has_is_pic);
	ret = user_dump_emit(dump, ids->info);
	if (!ret && info.build_id_bytes) {
		put_u64(dump, binary->base);
		put_u64(dump, info.build_id_bytes);
		user_dump_put(dump, info.build_id, info.build_id_bytes);
		ret = user_dump_emit(dump, ids->build_id);
	}
	if (!ret && info.debug_link[0]) {
		put_u64(dump, binary->base);
		user_dump_put(dump, &info.debug_crc, sizeof(info.debug_crc));
		user_dump_put_text(dump, info.debug_link, (int)strlen(info.debug_link));
		ret = user_dump_emit(dump, ids->debug_link);
	}
	return ret;
}

static int emit_unload(struct ky_user_dump *dump, const struct ky_user_dump_known *known)
{
	put_u64(dump, known->base);
	return user_dump_emit(dump, KY_USER_DUMP_UNLOAD);
}

/* ---- a look at what is mapped ---------------------------------------------------------- */

/* Those of @maps that have code, the first BINARIES_MAX. */
static int list_binaries(const char *maps, struct binaries *list, struct kymo_error *err)
{
	struct ky_maps_binary binary;

	while (list->len < BINARIES_MAX && ky_maps_next(&maps, &binary)) {
		if (binary.has_code && binary.path_bytes < PATH_MAX &&
		    ky_vec_push(list, binary) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static bool user_dump_is_same(const struct ky_user_dump_known *known,
			      const struct ky_maps_binary *binary)
{
	return known->base == binary->base && known->inode == binary->inode;
}

/* Those that are not in @now any more; both lists are in the order of addresses. */
static int emit_gone(struct ky_user_dump *dump, const struct binaries *now)
{
	struct ky_user_dumped *dumped = dump->dumped;
	int ret = KYMO_OK;
	size_t k = 0;

	for (size_t i = 0; i < dumped->known.len && !ret; i++) {
		const struct ky_user_dump_known *known = &dumped->known.data[i];

		while (k < now->len && now->data[k].base < known->base)
			k++;
		if (k == now->len || !user_dump_is_same(known, &now->data[k]))
			ret = emit_unload(dump, known);
	}
	return ret;
}

/* Those of @now that are new. */
static int emit_come(struct ky_user_dump *dump, const struct binaries *now,
		     const struct binary_events *events)
{
	struct ky_user_dumped *dumped = dump->dumped;
	int ret = KYMO_OK;
	size_t k = 0;

	for (size_t i = 0; i < now->len && !ret; i++) {
		while (k < dumped->known.len && dumped->known.data[k].base < now->data[i].base)
			k++;
		if (k == dumped->known.len ||
		    !user_dump_is_same(&dumped->known.data[k], &now->data[i]))
			ret = emit_binary(dump, &now->data[i], events);
	}
	return ret;
}

static int know(struct ky_user_dump *dump, const struct binaries *now)
{
	struct ky_user_dumped *dumped = dump->dumped;

	ky_vec_clear(&dumped->known);
	ky_vec_foreach(now, binary) {
		struct ky_user_dump_known known = {binary->base, binary->end, binary->inode};

		if (ky_vec_push(&dumped->known, known) < 0)
			return ky_error_nomem(dump->err);
	}
	return KYMO_OK;
}

/* All that is mapped, as a state dump. It replaces what was put before: a flight recorder's snapshot has the last one. */
static int emit_state(struct ky_user_dump *dump, const struct binaries *now)
{
	int ret;

	ky_vec_clear(&dump->dumped->known);
	ky_strbuf_clear(dump->to);
	ret = user_dump_emit(dump, KY_USER_DUMP_START);
	user_dump_put(dump, dump->procname, sizeof(dump->procname));
	if (!ret)
		ret = user_dump_emit(dump, KY_USER_DUMP_PROCNAME);
	if (!ret)
		ret = emit_come(dump, now, &of_state);
	return ret ? ret : user_dump_emit(dump, KY_USER_DUMP_END);
}

/* Of a process that shares its ring: the state as it is now, for a trace or a snapshot that begins later. */
static int keep_state(struct ky_user_dump *dump, const struct binaries *now, bool is_first)
{
	struct ky_strbuf *state = &dump->dumped->state, *events = dump->to;
	int ret;

	dump->to = state;
	ret = emit_state(dump, now);
	dump->to = events;
	if (!ret && is_first && !dump->ring->is_flight)
		ky_strbuf_add(events, ky_strbuf_text(state), state->len);
	return ret ? ret : ky_strbuf_failed(events) ? ky_error_nomem(dump->err) : KYMO_OK;
}

static int emit_changes(struct ky_user_dump *dump, const struct binaries *now)
{
	int ret = emit_gone(dump, now);

	return ret ? ret : emit_come(dump, now, &of_loading);
}

/*
 * At @cycles, @maps said what is mapped. After the first look only what has come and gone is written: readers take another
 * state dump for all there is.
 */
static int dump_look(struct ky_user_dump *dump, const char *maps, uint64_t cycles)
{
	struct ky_user_dumped *dumped = dump->dumped;
	bool is_first = dump->ring->is_flight || !dumped->has_state;
	struct binaries now = KY_VEC_INIT;
	int ret = list_binaries(maps, &now, dump->err);

	if (!ret && !is_first)
		ret = emit_changes(dump, &now);
	if (!ret && dump->ring->is_shared)
		ret = keep_state(dump, &now, is_first);
	else if (!ret && is_first)
		ret = emit_state(dump, &now);
	dumped->has_state = true;
	if (!ret)
		ret = know(dump, &now);
	ky_vec_fini(&now);
	return ret ? ret : ky_user_ring_write_dump(dump->ring, cycles, dump->err);
}

static int dump_unload(struct ky_user_dump *dump, uint64_t address, uint64_t cycles)
{
	struct ky_user_dumped *dumped = dump->dumped;
	size_t n = 0;
	int ret = KYMO_OK;

	/* A flight recorder keeps what is loaded in the end. */
	if (dump->ring->is_flight)
		return KYMO_OK;
	for (size_t i = 0; i < dumped->known.len; i++) {
		const struct ky_user_dump_known known = dumped->known.data[i];

		if (address >= known.base && address < known.end)
			ret = ret ? ret : emit_unload(dump, &known);
		else
			dumped->known.data[n++] = known;
	}
	dumped->known.len = n;
	return ret ? ret : ky_user_ring_write_dump(dump->ring, cycles, dump->err);
}

struct ky_user_dump *ky_user_dump_new(struct ky_user_ring *ring, struct ky_user_dumped *dumped,
				      uint32_t pid, const char *procname, struct kymo_error *err)
{
	struct ky_user_blob blob = {ky_user_ring_blob(ring), ring->blob_bytes};
	struct ky_user_dump *dump = calloc(1, sizeof(*dump));
	char path[32];

	if (!dump)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	dump->ring = ring;
	dump->dumped = dumped;
	dump->to = &ring->dump;
	dump->err = err;
	dump->vpid = (int32_t)pid;
	memcpy(dump->procname, procname, sizeof(dump->procname) - 1);
	dump->has_ip = ky_user_blob_has_context(&blob, "ip");
	dump->proc = ky_dir_open(AT_FDCWD, path);
	return dump;
}

/* Of the ring's only program, as process @pid, if that is there. NULL: no memory. */
static struct ky_user_dump *dump_new(struct ky_user_ring *ring, pid_t pid, struct kymo_error *err)
{
	const struct ky_blob *blob = ky_user_ring_blob(ring);
	struct ky_user_dump *dump;

	if (!ring->dumped)
		ring->dumped = calloc(1, sizeof(*ring->dumped));
	if (!ring->dumped)
		return NULL;
	dump = ky_user_dump_new(ring, ring->dumped, (uint32_t)pid, blob->procname, err);
	if (dump)
		dump->vpid = (int32_t)blob->pid;
	return dump;
}

void ky_user_dump_free(struct ky_user_dump *dump)
{
	if (dump && dump->proc)
		closedir(dump->proc);
	free(dump);
}

void ky_user_dump_renew(struct ky_user_ring *ring)
{
	if (ring->is_shared)
		ky_user_states_renew(ring);
	if (!ring->dumped)
		return;
	ky_vec_clear(&ring->dumped->known);
	ring->dumped->has_state = false;
}

void ky_user_dumped_free(struct ky_user_dumped *dumped)
{
	if (dumped) {
		ky_vec_fini(&dumped->known);
		ky_strbuf_fini(&dumped->state);
	}
	free(dumped);
}

int ky_user_dump(struct ky_user_ring *ring, pid_t pid, const struct ky_os_clock *clock,
		 struct kymo_error *err)
{
	struct ky_user_dump *dump = dump_new(ring, pid, err);
	struct ky_strbuf maps = KY_STRBUF_INIT;
	int ret = 0;

	if (!dump)
		return ky_error_nomem(err);
	if (dump->proc &&
	    ky_read_file(dirfd(dump->proc), "maps", KY_USER_DUMP_MAPS_MAX, &maps) == 0 &&
	    ky_maps_has_file(ky_strbuf_text(&maps), ring->device, ring->inode)) {
		ret = dump_look(dump, ky_strbuf_text(&maps), ky_os_clock_now(clock));
		ret = ret < 0 ? ret : 1;
	}
	ky_strbuf_fini(&maps);
	ky_user_dump_free(dump);
	return ret;
}

/* ---- the program's notes ---------------------------------------------------------------- */

/* How many bytes there are. The program is believed as little as in all that the ring has. */
static uint32_t notes_bytes(const struct ky_user_ring *ring)
{
	const struct kymo_ring_info *info =
		ring->reader ? kymo_ring_reader_info(ring->reader) : NULL;
	const struct ky_blob *shared = info ? info->client_region : NULL;
	uint32_t bytes;

	if (!shared || info->client_bytes < KY_BLOB_BYTES + KY_NOTES_BYTES)
		return 0;
	/* Partner: the program's release. */
	bytes = __atomic_load_n(&shared->notes_bytes, __ATOMIC_ACQUIRE);
	return bytes > KY_NOTES_BYTES ? 0 : bytes;
}

bool ky_user_dump_is_behind(const struct ky_user_ring *ring)
{
	if (ring->is_shared)
		return ky_user_states_are_behind(ring);
	return notes_bytes(ring) > (ring->dumped ? ring->dumped->notes_bytes : 0);
}

/* The note's bytes stand at @body. */
int ky_user_dump_note(struct ky_user_dump *dump, const struct ky_note *note, const char *body,
		      uint64_t now_cycles)
{
	uint64_t cycles = note->cycles < now_cycles ? note->cycles : now_cycles, address;
	char *text;
	int ret;

	if (note->kind == KY_NOTE_UNLOAD && note->bytes >= sizeof(address)) {
		memcpy(&address, body, sizeof(address));
		return dump_unload(dump, address, cycles);
	}
	if (note->kind != KY_NOTE_MAPS)
		return KYMO_OK;
	text = strndup(body, note->bytes);
	if (!text)
		return ky_error_nomem(dump->err);
	ret = dump_look(dump, text, cycles);
	free(text);
	return ret;
}

/* @notes: @bytes of them, a copy. What makes no sense ends them. */
static int dump_notes(struct ky_user_dump *dump, const char *notes, uint32_t bytes,
		      uint64_t now_cycles)
{
	struct ky_note note;
	uint64_t at = 0;
	int ret = KYMO_OK;

	while (!ret && at + sizeof(note) <= bytes) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		if (note.bytes > bytes - at)
			break;
		ret = ky_user_dump_note(dump, &note, notes + at, now_cycles);
		at += ((uint64_t)note.bytes + 7) / 8 * 8;
	}
	return ret;
}

int ky_user_dump_notes(struct ky_user_ring *ring, const struct ky_os_clock *clock,
		       struct kymo_error *err)
{
	uint64_t now_cycles = ky_os_clock_now(clock);
	uint32_t bytes = notes_bytes(ring), begin;
	struct ky_user_dump *dump;
	char *copy;
	int ret = KYMO_OK;

	if (ring->is_shared)
		return ky_user_states_read(ring, clock, err);
	if (!ky_user_dump_is_behind(ring))
		return ring->dumped && ring->dumped->has_state;
	dump = dump_new(ring, (pid_t)ky_user_ring_blob(ring)->pid, err);
	if (!dump)
		return ky_error_nomem(err);
	begin = ring->dumped->notes_bytes;
	ring->dumped->notes_bytes = bytes;
	copy = malloc(bytes - begin);
	if (!copy)
		ret = ky_error_nomem(err);
	else if (pread(ring->fd, copy, bytes - begin,
		       (off_t)(ring->blob_offset + KY_BLOB_BYTES + begin)) ==
		 (ssize_t)(bytes - begin))
		ret = dump_notes(dump, copy, bytes - begin, now_cycles);
	free(copy);
	ky_user_dump_free(dump);
	return ret < 0 ? ret : ring->dumped->has_state;
}

/* ---- other PID namespaces ------------------------------------------------------------- */

int ky_user_dump_elsewhere(struct ky_user_ring *ring, const struct ky_os_clock *clock,
			   struct kymo_error *err)
{
	uint32_t pid = ky_user_ring_blob(ring)->pid;
	DIR *dir = ky_dir_open(AT_FDCWD, "/proc");
	struct dirent *entry;
	int ret = 0;

	while (dir && !ret && (entry = readdir(dir))) {
		pid_t outer = isdigit((unsigned char)entry->d_name[0])
				      ? (pid_t)strtol(entry->d_name, NULL, 10)
				      : 0;

		if (outer > 0 && (uint32_t)outer != pid && ky_program_inner_pid(outer) == pid)
			ret = ky_user_dump(ring, outer, clock, err);
	}
	if (dir)
		closedir(dir);
	return ret;
}
