/* SPDX-License-Identifier: MIT */
#include "record/request/user-program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

/* ---- one control file ----------------------------------------------------------------- */

const char *ky_off_text(uint32_t off)
{
	static const char *const texts[] = {
		[KY_OFF_NOT] = "it is on",
		[KY_OFF_VERSION] = "its library is of another version",
		[KY_OFF_DIRECTORY] = "it cannot open the session's directory (a container?)",
		[KY_OFF_OWNER] = "the session's directory does not belong to its user",
		[KY_OFF_SESSION] = "it cannot read the session's file",
		[KY_OFF_NO_RECORDER] = "the session's recorder is dead",
		[KY_OFF_NO_EVENT] = "it has none of these events",
		[KY_OFF_FILE_SIZE] = "its limit of file sizes (ulimit -f) is too low",
		[KY_OFF_SPACE] = "no space for its ring buffer",
		[KY_OFF_CREATE] = "it cannot create its ring buffer",
		[KY_OFF_MEMORY] = "it has no memory",
		[KY_OFF_SLOTS] = "it is in 8 sessions already",
		[KY_OFF_TABLE] = "its event table is full",
		[KY_OFF_FILTER] = "its library does not support a part of the filter",
		[KY_OFF_CONTEXT] = "it cannot give all of the context fields",
		[KY_OFF_OFTEN] = "it was asked to join, or to change its rules, too often",
		[KY_OFF_FIELD] = "none of these events has the fields of the filter",
	};

	return off < sizeof(texts) / sizeof(texts[0]) ? texts[off] : "for an unknown reason";
}

/* Memory that cannot shrink cannot raise SIGBUS. */
static bool user_program_is_safe(int fd, struct stat *st)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_size == KY_CONTROL_BYTES &&
	       seals >= 0 && (seals & F_SEAL_SHRINK);
}

static void copy_identity(struct ky_program *program)
{
	const struct ky_control *control = program->control;

	program->own_pid = control->pid;
	program->off = control->off;
	program->start_ns = control->start_ns;
	memcpy(program->procname, control->procname, sizeof(program->procname));
	program->procname[sizeof(program->procname) - 1] = 0;
}

int ky_program_open(int fd, struct ky_program **out, struct kymo_error *err)
{
	struct ky_program *program = calloc(1, sizeof(*program));
	int ret = KYMO_E_FORMAT;
	struct stat st;
	void *map;

	*out = NULL;
	if (!program) {
		close(fd);
		return ky_error_nomem(err);
	}
	program->fd = fd;
	if (!user_program_is_safe(fd, &st)) {
		ky_error_set(err, ret, "not a control file, or not sealed");
		ky_program_free(program);
		return ret;
	}
	program->device = st.st_dev;
	program->inode = st.st_ino;
	program->uid = st.st_uid;
	map = mmap(NULL, KY_CONTROL_ENABLE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		/* There are too many of them: not our want of memory. */
		ky_program_free(program);
		return ky_error_set(err, KYMO_E_LIMIT, "cannot map a control file");
	}
	program->control = map;
	/* Acquire: the rest is valid then. Partner: the program's release of magic. */
	if (__atomic_load_n(&program->control->magic, __ATOMIC_ACQUIRE) != KY_CONTROL_MAGIC) {
		ky_program_free(program);
		return ky_error_set(err, KYMO_E_FORMAT, "a control file that is not ready");
	}
	copy_identity(program);
	if (program->control->version != KY_CONTROL_VERSION)
		program->blocked = "its library is of another version";
	*out = program;
	return KYMO_OK;
}

void ky_program_free(struct ky_program *program)
{
	if (!program)
		return;
	if (program->control)
		munmap(program->control, KY_CONTROL_ENABLE);
	if (program->fd >= 0)
		close(program->fd);
	free(program->table);
	free(program);
}

/* So much of it is records, good or bad ones, one behind the other. */
static size_t valid_bytes(const uint8_t *table, size_t bytes)
{
	struct ky_user_event event;
	size_t at = 0, next;
	bool is_good;

	while ((next = ky_user_event_next(table + at, table + bytes, &event, &is_good)))
		at += next;
	return at;
}

int ky_program_read_table(struct ky_program *program, struct kymo_error *err)
{
	/* Acquire: so many bytes are valid. Partner: the program's release. */
	uint64_t bytes = __atomic_load_n(&program->control->table_bytes, __ATOMIC_ACQUIRE);
	uint8_t *table;
	ssize_t got;

	if (program->blocked)
		return KYMO_OK;
	if (bytes > KY_CONTROL_TABLE_BYTES)
		bytes = KY_CONTROL_TABLE_BYTES;
	table = malloc(bytes ? bytes : 1);
	if (!table)
		return ky_error_nomem(err);
	got = pread(program->fd, table, bytes, KY_CONTROL_TABLE);
	if (got < 0) {
		free(table);
		return ky_error_errno(err, errno, "cannot read a control file");
	}
	free(program->table);
	program->table = table;
	program->table_bytes = valid_bytes(table, (size_t)got);
	/* A file that claims more bytes than it has: keep nothing. */
	table = realloc(table, program->table_bytes ? program->table_bytes : 1);
	if (table)
		program->table = table;
	return KYMO_OK;
}

bool ky_program_next_event(const struct ky_program *program, size_t *at,
			   struct ky_user_event *event)
{
	const uint8_t *end = program->table ? program->table + program->table_bytes : NULL;
	bool is_good = false;

	while (*at < program->table_bytes) {
		size_t bytes = ky_user_event_next(program->table + *at, end, event, &is_good);

		if (!bytes)
			return false;
		*at += bytes;
		if (is_good && event->record->kind != KY_EVENT_CONTEXT &&
		    !(event->record->flags & KY_EVENT_GONE))
			return true;
	}
	return false;
}

/* ---- slots ---------------------------------------------------------------------------- */

static bool user_program_is_dead(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* A slot for @cookie: the one that has it, or a free one that is ours now. -1: none. */
static int user_program_take_slot(struct ky_control *control, uint64_t cookie, bool *is_new)
{
	*is_new = false;
	for (int i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (__atomic_load_n(&control->slots[i].cookie, __ATOMIC_ACQUIRE) == cookie)
			return i;
	}
	*is_new = true;
	for (int i = 0; i < KY_CONTROL_SLOTS; i++) {
		struct ky_control_slot *slot = &control->slots[i];
		uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_RELAXED);

		if (owner && (__atomic_load_n(&slot->cookie, __ATOMIC_ACQUIRE) ||
			      !user_program_is_dead(owner)))
			continue;
		if (__atomic_compare_exchange_n(&slot->owner, &owner, (uint32_t)getpid(), false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return i;
	}
	return -1;
}

static void set_enable_bits(struct ky_program *program, uint8_t *bytes, int slot,
			    bool (*wants)(void *data, const struct ky_user_event *event),
			    void *data)
{
	/* Acquire: pages below it are in use. Partner: the program's release. */
	uint32_t n_pages = __atomic_load_n(&program->control->n_pages, __ATOMIC_ACQUIRE);
	struct ky_user_event event;

	for (size_t at = 0; ky_program_next_event(program, &at, &event);) {
		const struct ky_event_record *record = event.record;

		if (record->page < n_pages && wants(data, &event))
			__atomic_fetch_or(bytes + (uint32_t)record->page * KY_ENABLE_BYTES +
						  record->enable_byte,
					  (uint8_t)(1u << slot), __ATOMIC_RELEASE);
	}
}

int ky_program_join(struct ky_program *program, uint64_t cookie, const char *directory,
		    bool (*wants)(void *data, const struct ky_user_event *event), void *data,
		    struct kymo_error *err)
{
	size_t size = KY_CONTROL_PAGES * KY_ENABLE_BYTES;
	struct ky_control_slot *slot;
	uint8_t *bytes;
	bool is_new;
	int number;

	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, program->fd,
		     KY_CONTROL_ENABLE);
	if (bytes == MAP_FAILED)
		return ky_error_errno(err, errno, "cannot map a control file");
	number = user_program_take_slot(program->control, cookie, &is_new);
	if (number >= 0) {
		slot = &program->control->slots[number];
		if (is_new) {
			snprintf(slot->directory, sizeof(slot->directory), "%s", directory);
			__atomic_store_n(&slot->flags, 0, __ATOMIC_RELAXED);
			/* Release: the directory is there. Partner: the program's acquire. */
			__atomic_store_n(&slot->cookie, cookie, __ATOMIC_RELEASE);
		}
		set_enable_bits(program, bytes, number, wants, data);
	}
	munmap(bytes, size);
	return number < 0 ? ky_error_set(err, KYMO_E_LIMIT, "it is in %d sessions already",
					 KY_CONTROL_SLOTS)
			  : KYMO_OK;
}

static void program_replace_slot(struct ky_program *program, uint64_t cookie, uint64_t other, int i)
{
	struct ky_control_slot *slot = &program->control->slots[i];
	uint64_t expected = cookie;

	if (program->is_sandboxed && __atomic_load_n(&slot->cookie, __ATOMIC_RELAXED) == cookie)
		__atomic_store_n(&slot->flags, KY_SLOT_NO_CALLS, __ATOMIC_RELAXED);
	/* Release: the flags are there. Partner: the program's acquire. */
	__atomic_compare_exchange_n(&program->control->slots[i].cookie, &expected, other, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void ky_program_replace(struct ky_program *program, uint64_t cookie, uint64_t other)
{
	/* To look at the session anew takes system calls. */
	if (other && program->is_sandboxed)
		return;
	for (int i = 0; i < KY_CONTROL_SLOTS; i++)
		program_replace_slot(program, cookie, other, i);
}

void ky_program_leave(struct ky_program *program, uint64_t cookie)
{
	ky_program_replace(program, cookie, 0);
}

void ky_program_state(const struct ky_program *program, uint64_t cookie,
		      struct ky_program_state *state)
{
	memset(state, 0, sizeof(*state));
	for (int i = 0; i < KY_CONTROL_SLOTS; i++) {
		const struct ky_control_slot *slot = &program->control->slots[i];

		if (__atomic_load_n(&slot->cookie, __ATOMIC_RELAXED) != cookie)
			continue;
		state->has_slot = true;
		/* Acquire: what was written before it is there. Partner: the program. */
		state->has_joined = __atomic_load_n(&slot->joined, __ATOMIC_ACQUIRE) == cookie;
		state->reason = slot->reason;
		state->os_error = slot->os_error;
		return;
	}
}
