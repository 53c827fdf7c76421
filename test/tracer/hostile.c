/* SPDX-License-Identifier: MIT */
/*
 * hostile SEED MS [KEEP]: takes part in tracing like other programs, while a process of its own writes
 * whatever it likes over all that recorders read of it: the control file, ring files, what lies beside
 * them in the session's directory (but for the files whose names begin with KEEP: "session"). It cuts
 * files, punches holes, puts others in their place, for MS milliseconds. What is left of
 * itself is killed then; it exits with 0.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/trace.h>

#define FILES_MAX 16

static uint64_t state;

static uint64_t any(uint64_t below)
{
	/* xorshift64 */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

struct file {
	int fd;
	int64_t bytes;
	int64_t parts[24]; /* where something lies: the extents' beginnings */
	int n_parts;
};

static struct file files[FILES_MAX];
static int n_files;
static char directory[4096];

/* Ring files are mostly holes: what is written is where something is. */
static void find_parts(struct file *file)
{
	int64_t at = 0;

	while (file->n_parts < 24 && (at = lseek(file->fd, at, SEEK_DATA)) >= 0) {
		file->parts[file->n_parts++] = at;
		at = lseek(file->fd, at, SEEK_HOLE);
	}
}

static void add_file(const char *path)
{
	struct file *file = &files[n_files];
	struct stat st;

	file->fd = open(path, O_RDWR);
	if (file->fd < 0 || fstat(file->fd, &st) < 0)
		return;
	file->bytes = st.st_size;
	find_parts(file);
	n_files += file->n_parts > 0;
}

/* What is mapped of the tracer's; and the directory of the rings. */
static void find_files(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400], last[4400] = "";

	while (maps && n_files < FILES_MAX && fgets(line, sizeof(line), maps)) {
		char path[96], *slash = strchr(line, '/');
		unsigned long start, end;

		if (!slash || sscanf(line, "%lx-%lx", &start, &end) != 2 ||
		    (!strstr(line, "kymo-control") && !strstr(line, ".ring")) ||
		    strcmp(slash, last) == 0)
			continue;
		snprintf(last, sizeof(last), "%s", slash);
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
		add_file(path);
		if (strstr(line, ".ring")) {
			snprintf(directory, sizeof(directory), "%s", slash);
			*strrchr(directory, '/') = 0;
		}
	}
	if (maps)
		fclose(maps);
}

static uint64_t value(void)
{
	static const uint64_t interesting[] = {
		0,	    1,	      UINT64_MAX, INT64_MAX,
		UINT32_MAX, 1u << 20, 4096,	  0x4c5254434f4d594bull,
		1ull << 40, 96,	      0x100000001};

	switch (any(4)) {
	case 0:
		return any(UINT64_MAX);
	case 1:
		return interesting[any(sizeof(interesting) / sizeof(interesting[0]))];
	case 2:
		return any(1u << 24);
	default:
		return any(256);
	}
}

static void scribble(struct file *file)
{
	int64_t at = file->parts[any((uint64_t)file->n_parts)] + (int64_t)(any(512) * 8);
	uint64_t bytes[64];
	size_t n = any(8) ? 1 + any(3) : 64;

	if (any(4) == 0)
		at += (int64_t)any(65536);
	for (size_t i = 0; i < n; i++)
		bytes[i] = value();
	if (at + (int64_t)sizeof(bytes) > file->bytes)
		return;
	if (pwrite(file->fd, bytes, n * 8 - any(8), at) < 0 && errno == EBADF)
		abort();
}

/* Numbers that make sense where they are, for a little different ones. */
static void nudge(struct file *file)
{
	int64_t at = file->parts[any((uint64_t)file->n_parts)] + (int64_t)(any(512) * 8);
	uint64_t number;

	if (pread(file->fd, &number, sizeof(number), at) != sizeof(number))
		return;
	number += any(2) ? any(128) - 64 : (any(64) - 32) << any(32);
	(void)!pwrite(file->fd, &number, sizeof(number), at);
}

static void resize(struct file *file)
{
	switch (any(3)) {
	case 0:
		(void)!ftruncate(file->fd, (off_t)any((uint64_t)file->bytes));
		break;
	case 1:
		(void)fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)any((uint64_t)file->bytes), 1 + (off_t)any(1 << 20));
		break;
	default:
		(void)fcntl(file->fd, F_ADD_SEALS, (int)(1u << any(5)));
	}
	/* As it was: what comes after that is read, too. */
	if (any(2))
		(void)!ftruncate(file->fd, file->bytes);
}

/* A file of the directory is removed, replaced by another one, or copied. */
static void replace(const char *keep)
{
	DIR *dir = opendir(directory);
	char from[NAME_MAX + 1] = "", to[64];
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, keep, strlen(keep)) != 0 &&
		    any(3))
			snprintf(from, sizeof(from), "%s", entry->d_name);
	}
	snprintf(to, sizeof(to), "%d-%x-x.ring", (int)any(4), (unsigned int)any(16));
	if (dir && from[0]) {
		switch (any(4)) {
		case 0:
			(void)unlinkat(dirfd(dir), from, 0);
			break;
		case 1:
			(void)!linkat(dirfd(dir), from, dirfd(dir), to, 0);
			break;
		case 2:
			(void)!symlinkat("/proc/self/maps", dirfd(dir), to);
			break;
		default:
			(void)renameat(dirfd(dir), from, dirfd(dir), to);
		}
	}
	if (dir)
		closedir(dir);
}

static void be_hostile(const char *keep)
{
	find_files();
	while (!n_files)
		pause();
	for (;;) {
		struct file *file = &files[any((uint64_t)n_files)];
		uint64_t what = any(4096);

		if (what < 2048)
			scribble(file);
		else if (what < 4080)
			nudge(file);
		else if (what < 4090)
			resize(file);
		else if (directory[0])
			replace(keep);
	}
}

static void hit(void)
{
	for (unsigned long i = 0;; i++) {
		KYMO_EVENT(hostile, number, i);
		KYMO_EVENT(hostile, word, KYMO_AS(text, "some words"), i);
		if (i % 256 == 0)
			usleep(100);
	}
}

static pid_t start(void (*run)(void), const char *keep)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (run)
		run();
	be_hostile(keep);
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t pids[2];

	if (argc < 3)
		return 2;
	state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
	for (int i = 0; i < 100; i++) {
		KYMO_EVENT(hostile, first, i);
		KYMO_EVENT(hostile, floats, KYMO_AS(d, 0.5 * i), KYMO_AS(f, 0.25f));
	}
	pids[0] = start(hit, "");
	pids[1] = start(NULL, argc > 3 ? argv[3] : "");
	usleep((useconds_t)atoi(argv[2]) * 1000);
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	/* Not by exit(): what is to be done there is scribbled on. */
	_exit(0);
}
