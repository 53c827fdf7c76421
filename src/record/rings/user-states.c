/* SPDX-License-Identifier: MIT */
#include "record/rings/user-states.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/now.h"
#include "os/tsc.h"
#include "record/request/user-program.h"
#include "record/rings/user-dump-internal.h"
#include "record/rings/user-maps.h"

/* Nobody reads the ring while its notes are read: so many at a time. */
#define NOTES_AT_A_TIME 32
/* Notes that wait; further ones of a flood are left out. */
#define NOTES_MAX 16384
/* What is kept of the processes; the oldest ones go first. */
#define STATES_BYTES_MAX (8u << 20)
#define STATES_MAX	 4096u

struct note {
	struct ky_state_note head;
	char *body; /* with a NUL behind */
};

struct ky_user_states {
	KY_VEC(char *) names; /* of the notes to be read, as they came */
	size_t n_read;	      /* so many of them were */
	const struct ky_user_dir *dir;
	KY_VEC(struct ky_user_dumped *) list; /* of processes, the oldest first */
	uint64_t bytes;			      /* of their states */
	bool is_due;			      /* a new trace lacks them */
	uint64_t renewed_cycles;	      /* before its first event */
};

/* ---- notes ----------------------------------------------------------------------------- */

bool ky_user_is_state_note(const char *name)
{
	const char *suffix = NULL, *next = name;

	if (name[0] == '.')
		return false;
	/* A program may be called like one: the last suffix counts, and a number behind it. */
	for (; (next = strstr(next, KY_STATE_NOTE_SUFFIX)); next++)
		suffix = next + strlen(KY_STATE_NOTE_SUFFIX);
	return suffix && *suffix && !suffix[strspn(suffix, "0123456789")];
}

static struct ky_user_states *user_states_of(struct ky_user_ring *ring)
{
	if (!ring->states)
		ring->states = calloc(1, sizeof(*ring->states));
	return ring->states;
}

void ky_user_states_add_note(struct ky_user_ring *ring, const struct ky_user_dir *dir, char *name)
{
	struct ky_user_states *states = user_states_of(ring);

	if (states)
		states->dir = dir;
	if (!states || states->names.len - states->n_read >= NOTES_MAX ||
	    ky_vec_push(&states->names, name) < 0) {
		(void)unlinkat(dir->fd, name, 0);
		free(name);
	}
}

bool ky_user_states_are_behind(const struct ky_user_ring *ring)
{
	const struct ky_user_states *states = ring->states;

	return states && (states->is_due || states->n_read < states->names.len);
}

static bool read_body(int fd, uint64_t file_bytes, struct note *note)
{
	const struct ky_note *head = &note->head.note;

	if (note->head.magic != KY_STATE_NOTE_MAGIC || !note->head.pid ||
	    note->head.pid > INT32_MAX || head->bytes > file_bytes - sizeof(note->head))
		return false;
	note->body = malloc((size_t)head->bytes + 1);
	if (!note->body ||
	    pread(fd, note->body, head->bytes, sizeof(note->head)) != (ssize_t)head->bytes) {
		free(note->body);
		return false;
	}
	note->body[head->bytes] = 0;
	return true;
}

/* The file is removed. False: the file is no note, or makes no sense. */
static bool user_states_take_note(const struct ky_user_dir *dir, const char *name,
				  struct note *note)
{
	int fd = ky_user_dir_open_file(dir, name, O_RDONLY);
	bool is_good = false;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(note->head) &&
	    st.st_size <= (off_t)KY_STATE_NOTE_MAX &&
	    pread(fd, &note->head, sizeof(note->head), 0) == (ssize_t)sizeof(note->head))
		is_good = read_body(fd, (uint64_t)st.st_size, note);
	if (fd >= 0)
		close(fd);
	(void)unlinkat(dir->fd, name, 0);
	return is_good;
}

static int user_states_by_time(const void *a, const void *b)
{
	uint64_t left = ((const struct note *)a)->head.note.cycles;
	uint64_t right = ((const struct note *)b)->head.note.cycles;

	return (left > right) - (left < right);
}

/* ---- processes ------------------------------------------------------------------------- */

static void user_states_drop(struct ky_user_states *states, size_t i)
{
	struct ky_user_dumped *old = states->list.data[i];

	states->bytes -= old->state.len;
	ky_user_dumped_free(old);
	states->list.len--;
	memmove(&states->list.data[i], &states->list.data[i + 1],
		(states->list.len - i) * sizeof(states->list.data[0]));
}

/* NULL: no memory. */
static struct ky_user_dumped *user_states_find(struct ky_user_states *states, uint32_t pid)
{
	struct ky_user_dumped *dumped;

	for (size_t i = states->list.len; i-- > 0;)
		if (states->list.data[i]->pid == pid)
			return states->list.data[i];
	if (states->list.len >= STATES_MAX)
		user_states_drop(states, 0);
	dumped = calloc(1, sizeof(*dumped));
	if (!dumped || ky_vec_push(&states->list, dumped) < 0) {
		free(dumped);
		return NULL;
	}
	dumped->pid = pid;
	return dumped;
}

static int user_states_apply(struct ky_user_ring *ring, const struct note *note,
			     uint64_t now_cycles, struct kymo_error *err)
{
	struct ky_user_states *states = ring->states;
	struct ky_user_dumped *dumped = user_states_find(states, note->head.pid);
	struct ky_user_dump *dump;
	int ret;

	if (!dumped)
		return ky_error_nomem(err);
	/* A program, or a child, that begins: the process may have been another one. */
	if (note->head.flags & KY_STATE_NOTE_JOINS) {
		ky_vec_clear(&dumped->known);
		dumped->has_state = false;
	}
	dump = ky_user_dump_new(ring, dumped, dumped->pid, note->head.procname, err);
	if (!dump)
		return ky_error_nomem(err);
	states->bytes -= dumped->state.len;
	ret = ky_user_dump_note(dump, &note->head.note, note->body, now_cycles);
	states->bytes += dumped->state.len;
	ky_user_dump_free(dump);
	while (states->bytes > STATES_BYTES_MAX && states->list.len > 1)
		user_states_drop(states, 0);
	return ret;
}

/* Some of those that wait, in the order of their times: programs run side by side. */
static int user_states_read_some(struct ky_user_ring *ring, uint64_t now_cycles,
				 struct kymo_error *err)
{
	struct ky_user_states *states = ring->states;
	struct note notes[NOTES_AT_A_TIME];
	size_t n = 0;
	int ret = KYMO_OK;

	while (n < NOTES_AT_A_TIME && states->n_read < states->names.len) {
		char *name = states->names.data[states->n_read++];

		n += user_states_take_note(states->dir, name, &notes[n]);
		free(name);
	}
	if (states->n_read == states->names.len)
		states->n_read = states->names.len = 0;
	qsort(notes, n, sizeof(notes[0]), user_states_by_time);
	for (size_t i = 0; i < n; i++) {
		if (!ret)
			ret = user_states_apply(ring, &notes[i], now_cycles, err);
		free(notes[i].body);
	}
	return ret;
}

int ky_user_states_read(struct ky_user_ring *ring, const struct ky_os_clock *clock,
			struct kymo_error *err)
{
	uint64_t now_cycles = ky_os_clock_now(clock);
	struct ky_user_states *states = ring->states;
	int ret = KYMO_OK;

	if (!states)
		return 1;
	if (states->is_due) {
		states->is_due = false;
		ky_user_states_gather(ring);
		ret = ky_user_ring_write_dump(ring, states->renewed_cycles, err);
	}
	if (!ret)
		ret = user_states_read_some(ring, now_cycles, err);
	return ret < 0 ? ret : 1;
}

/* ---- new traces ------------------------------------------------------------------------ */

static bool has_ring(pid_t pid, const struct ky_user_ring *ring)
{
	struct ky_strbuf maps = KY_STRBUF_INIT;
	char path[32];
	bool has;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	has = ky_read_file(AT_FDCWD, path, KY_USER_DUMP_MAPS_MAX, &maps) == 0 &&
	      ky_maps_has_file(ky_strbuf_text(&maps), ring->device, ring->inode);
	ky_strbuf_fini(&maps);
	return has;
}

/* Processes in other PID namespaces are called otherwise there. @lives: one for each process. */
static void look_elsewhere(const struct ky_user_ring *ring, bool *lives)
{
	const struct ky_user_states *states = ring->states;
	DIR *dir = ky_dir_open(AT_FDCWD, "/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		pid_t outer = isdigit((unsigned char)entry->d_name[0])
				      ? (pid_t)strtol(entry->d_name, NULL, 10)
				      : 0;
		uint32_t inner = outer > 0 ? ky_program_inner_pid(outer) : 0;

		if (!inner || inner == (uint32_t)outer)
			continue;
		for (size_t i = 0; i < states->list.len; i++)
			if (!lives[i] && states->list.data[i]->pid == inner)
				lives[i] = has_ring(outer, ring);
	}
	if (dir)
		closedir(dir);
}

void ky_user_states_forget_ended(struct ky_user_ring *ring)
{
	struct ky_user_states *states = ring->states;
	bool *lives = states && states->list.len ? calloc(states->list.len, sizeof(*lives)) : NULL;
	size_t n_ended = 0;

	if (states)
		states->renewed_cycles = ring->clock.kind == KY_CLOCK_RECORD_TSC
						 ? ky_tsc_read()
						 : (uint64_t)ky_os_now_ns();
	if (!lives)
		return;
	for (size_t i = 0; i < states->list.len; i++) {
		lives[i] = has_ring((pid_t)states->list.data[i]->pid, ring);
		n_ended += !lives[i];
	}
	if (n_ended)
		look_elsewhere(ring, lives);
	for (size_t i = states->list.len; i-- > 0;)
		if (!lives[i])
			user_states_drop(states, i);
	free(lives);
}

void ky_user_states_renew(struct ky_user_ring *ring)
{
	if (ring->states && ring->states->list.len)
		ring->states->is_due = true;
}

void ky_user_states_gather(struct ky_user_ring *ring)
{
	ky_strbuf_clear(&ring->dump);
	for (size_t i = 0; ring->states && i < ring->states->list.len; i++) {
		const struct ky_strbuf *state = &ring->states->list.data[i]->state;

		ky_strbuf_add(&ring->dump, ky_strbuf_text(state), state->len);
	}
}

void ky_user_states_free(struct ky_user_states *states)
{
	if (!states)
		return;
	for (size_t i = states->n_read; i < states->names.len; i++)
		free(states->names.data[i]);
	ky_vec_fini(&states->names);
	ky_vec_foreach(&states->list, dumped)
		ky_user_dumped_free(*dumped);
	ky_vec_fini(&states->list);
	free(states);
}
