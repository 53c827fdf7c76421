/* SPDX-License-Identifier: MIT */
#include "record/user-program.h"

#include <ctype.h>
#include <dirent.h>
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

/* Control files of one process: its own, and one of each library that brings the tracer along. */
#define PROCESS_FILES_MAX 64
#define STATUS_BYTES_MAX  65536
#define MAPS_BYTES_MAX	  (16u << 20)
#define MEMFD_PREFIX	  "/memfd:" KY_CONTROL_MEMFD

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
		[KY_OFF_SLOTS] = "it takes part in 8 sessions already",
		[KY_OFF_TABLE] = "its event table is full",
		[KY_OFF_FILTER] = "its library does not know something in the filter",
		[KY_OFF_CONTEXT] = "it cannot give all of the context fields",
		[KY_OFF_OFTEN] = "it was asked to join, or to change its rules, too often",
		[KY_OFF_FIELD] = "none of these events has what the filter is about",
	};

	return off < sizeof(texts) / sizeof(texts[0]) ? texts[off] : "for an unknown reason";
}

/*
 * Where the kernel keeps memfds: no other file is on that device, as nobody can mount it. 0: there are none.
 */
static dev_t memfd_device(void)
{
	int fd = memfd_create("kymo-device", MFD_CLOEXEC);
	struct stat st = {0};

	if (fd < 0)
		return 0;
	(void)fstat(fd, &st);
	close(fd);
	return st.st_dev;
}

/*
 * A name that speaks of a memfd may be any file's: of a bind mount in a user namespace, say. So what it is
 * gets looked at before it is opened, which has effects on devices, and is not for files that others protect.
 */
static int open_control(dev_t device, int dir_fd, const char *name)
{
	int place = openat(dir_fd, name, O_PATH | O_CLOEXEC), fd = -1;
	struct stat st;

	if (place < 0)
		return -1;
	if (fstat(place, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == device &&
	    st.st_nlink == 0 && st.st_size == KY_CONTROL_BYTES)
		fd = ky_file_reopen(place, O_RDWR);
	close(place);
	return fd;
}

/* Memory that cannot shrink cannot raise SIGBUS. */
static bool is_safe(int fd, struct stat *st)
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
	if (!is_safe(fd, &st)) {
		ky_error_set(err, ret, "not a control file, or not sealed");
		ky_program_free(program);
		return ret;
	}
	program->device = st.st_dev;
	program->inode = st.st_ino;
	program->uid = st.st_uid;
	map = mmap(NULL, KY_CONTROL_ENABLE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		ret = ky_error_errno(err, errno, "cannot map a control file");
		ky_program_free(program);
		return ret;
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
	/* Whoever claims more than there is has us keep none of it. */
	table = realloc(table, program->table_bytes ? program->table_bytes : 1);
	if (table)
		program->table = table;
	return KYMO_OK;
}

bool ky_program_next_event(const struct ky_program *program, size_t *at,
			   struct ky_user_event *event)
{
	const uint8_t *end = program->table + program->table_bytes;
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

static bool is_dead(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* A slot for @cookie: the one that has it, or a free one that is ours now. -1: none. */
static int take_slot(struct ky_control *control, uint64_t cookie, bool *is_new)
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

		if (owner && (__atomic_load_n(&slot->cookie, __ATOMIC_ACQUIRE) || !is_dead(owner)))
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
	number = take_slot(program->control, cookie, &is_new);
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
	return number < 0 ? ky_error_set(err, KYMO_E_LIMIT, "it takes part in %d sessions already",
					 KY_CONTROL_SLOTS)
			  : KYMO_OK;
}

void ky_program_replace(struct ky_program *program, uint64_t cookie, uint64_t other)
{
	/* To look at the session anew takes system calls. */
	if (other && program->is_sandboxed)
		return;
	for (int i = 0; i < KY_CONTROL_SLOTS; i++) {
		struct ky_control_slot *slot = &program->control->slots[i];
		uint64_t expected = cookie;

		if (program->is_sandboxed &&
		    __atomic_load_n(&slot->cookie, __ATOMIC_RELAXED) == cookie)
			__atomic_store_n(&slot->flags, KY_SLOT_NO_CALLS, __ATOMIC_RELAXED);
		/* Release: the flags are there. Partner: the program's acquire. */
		__atomic_compare_exchange_n(&program->control->slots[i].cookie, &expected, other,
					    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
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

/* ---- finding them --------------------------------------------------------------------- */

uint32_t ky_program_inner_pid(pid_t pid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *line, *end;
	uint32_t inner = 0;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (ky_read_file(AT_FDCWD, path, STATUS_BYTES_MAX, &text) == 0 &&
	    (line = strstr(ky_strbuf_text(&text), "\nNSpid:"))) {
		end = line + 1 + strcspn(line + 1, "\n");
		while (end > line && end[-1] != '\t' && end[-1] != ' ')
			end--;
		inner = (uint32_t)strtoul(end, NULL, 10);
	}
	ky_strbuf_fini(&text);
	return inner;
}

/* Programs that may make few system calls would be killed by those of the library. */
static bool has_seccomp(int proc_fd)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *line;
	bool has = false;

	if (ky_read_file(proc_fd, "status", STATUS_BYTES_MAX, &text) == 0) {
		line = strstr(ky_strbuf_text(&text), "\nSeccomp:");
		has = line && strtol(line + 9, NULL, 10) > 0;
	}
	ky_strbuf_fini(&text);
	return has;
}

/* Programs put themselves into a sandbox at any time. */
static void look_for_sandbox(struct ky_program *program, int proc_fd)
{
	if (program->is_sandboxed || !has_seccomp(proc_fd))
		return;
	program->is_sandboxed = true;
	if (!program->blocked)
		program->blocked = "it runs under seccomp, which may forbid the system calls that "
				   "tracing takes";
}

static int add_program(struct ky_programs *programs, pid_t pid, int proc_fd, int fd,
		       struct kymo_error *err)
{
	struct ky_program *program;
	struct stat st;
	int ret;

	if (fstat(fd, &st) == 0) {
		ky_vec_foreach(&programs->list, it) {
			if ((*it)->device == st.st_dev && (*it)->inode == st.st_ino) {
				(*it)->is_seen = true;
				look_for_sandbox(*it, proc_fd);
				close(fd);
				return KYMO_OK;
			}
		}
	}
	ret = ky_program_open(fd, &program, err);
	if (ret == KYMO_E_MEMORY)
		return ret;
	if (ret < 0)
		return KYMO_OK;
	program->pid = pid;
	program->is_seen = true;
	look_for_sandbox(program, proc_fd);
	if (ky_vec_push(&programs->list, program) < 0) {
		ky_program_free(program);
		return ky_error_nomem(err);
	}
	return ky_program_read_table(program, err);
}

/* Its control files among the open ones. Returns how many, or negative. */
static int scan_fds(struct ky_programs *programs, pid_t pid, int proc_fd, struct kymo_error *err)
{
	DIR *dir = ky_dir_open(proc_fd, "fd");
	int found = 0, fd, ret;
	struct dirent *entry;
	char target[64];
	ssize_t len;

	if (!dir) {
		programs->n_denied += errno == EACCES || errno == EPERM;
		return 0;
	}
	while (found < PROCESS_FILES_MAX && (entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));
		if (len < (ssize_t)sizeof(MEMFD_PREFIX) - 1 ||
		    memcmp(target, MEMFD_PREFIX, sizeof(MEMFD_PREFIX) - 1) != 0)
			continue;
		fd = open_control(programs->memfd_device, dirfd(dir), entry->d_name);
		if (fd < 0)
			continue;
		found++;
		ret = add_program(programs, pid, proc_fd, fd, err);
		if (ret < 0) {
			closedir(dir);
			return ret;
		}
	}
	closedir(dir);
	return found;
}

/* Daemons close all their files; what they mapped is still there (root may open that). */
static int scan_maps(struct ky_programs *programs, pid_t pid, int proc_fd, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int fd, ret = KYMO_OK;
	const char *line;
	char name[64];

	ret = ky_read_file(proc_fd, "maps", MAPS_BYTES_MAX, &text) == -ENOMEM ? ky_error_nomem(err)
									      : KYMO_OK;
	line = strstr(ky_strbuf_text(&text), MEMFD_PREFIX);
	if (!ret && line) {
		while (line > text.data && line[-1] != '\n')
			line--;
		snprintf(name, sizeof(name), "map_files/%.*s", (int)strcspn(line, " "), line);
		fd = open_control(programs->memfd_device, proc_fd, name);
		if (fd >= 0)
			ret = add_program(programs, pid, proc_fd, fd, err);
	}
	ky_strbuf_fini(&text);
	return ret;
}

static int add_uid(struct ky_programs *programs, int proc_fd, struct kymo_error *err)
{
	struct stat st;

	if (fstat(proc_fd, &st) < 0)
		return KYMO_OK;
	ky_vec_foreach(&programs->uids, uid) {
		if (*uid == st.st_uid)
			return KYMO_OK;
	}
	return ky_vec_push(&programs->uids, st.st_uid) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int scan_process(struct ky_programs *programs, pid_t pid, int proc, struct kymo_error *err)
{
	char name[16];
	int fd, ret;

	snprintf(name, sizeof(name), "%d", (int)pid);
	fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return KYMO_OK;
	ret = add_uid(programs, fd, err);
	if (!ret)
		ret = scan_fds(programs, pid, fd, err);
	if (ret == 0)
		ret = scan_maps(programs, pid, fd, err);
	close(fd);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_programs_scan(struct ky_programs *programs, struct kymo_error *err)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int ret = KYMO_OK;

	if (!dir)
		return ky_error_errno(err, errno, "cannot look through /proc");
	programs->n_denied = 0;
	programs->memfd_device = memfd_device();
	ky_vec_foreach(&programs->list, it)
		(*it)->is_seen = false;
	while (ret == KYMO_OK && (entry = readdir(dir))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0])
				    ? (pid_t)strtol(entry->d_name, NULL, 10)
				    : 0;

		if (pid > 0 && pid != getpid())
			ret = scan_process(programs, pid, dirfd(dir), err);
	}
	closedir(dir);
	return ret;
}

void ky_programs_fini(struct ky_programs *programs)
{
	ky_vec_foreach(&programs->list, it)
		ky_program_free(*it);
	ky_vec_fini(&programs->list);
	ky_vec_fini(&programs->uids);
}
