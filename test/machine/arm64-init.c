/* SPDX-License-Identifier: MIT */
/*
 * The only program of an aarch64 machine. Does one thing after the other (the kernel hands on what follows
 * "--" on its command line), and turns the machine off: "counting" records /counting, as the session says
 * that is in /session, and copies its ring file to the disk; what else there is are cases of /race-ring.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DISK	"/dev/nvme0n1"
#define SESSION "/run/kymo/u0/test/session"

static int run(const char *program, char *argument)
{
	char *const args[] = {(char *)program, argument, NULL};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("RACE_SHORT", "1", 1);
		execv(args[0], args);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* As a recorder's: programs join only where it is locked. -1: something failed. */
static int open_session(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd;

	mkdir("/run/kymo", 0755);
	mkdir("/run/kymo/u0", 0755);
	mkdir("/run/kymo/u0/test", 0700);
	if (rename("/session", SESSION) < 0)
		return -1;
	fd = open(SESSION, O_RDWR | O_CLOEXEC);
	return fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0 ? fd : -1;
}

/* The only ring file, to the disk, which is as large; -1: it is not there. */
static int keep_ring(void)
{
	int from = -1, to = open(DISK, O_WRONLY);
	off_t end;
	glob_t found;

	if (glob("/run/kymo/u0/test/*.ring", 0, NULL, &found) == 0 && found.gl_pathc == 1)
		from = open(found.gl_pathv[0], O_RDONLY);
	if (from < 0 || to < 0)
		return -1;
	end = lseek(from, 0, SEEK_END);
	lseek(from, 0, SEEK_SET);
	printf("# ring: %lld bytes\n", (long long)end);
	for (off_t at = 0; at < end;) {
		ssize_t sent = sendfile(to, from, NULL, (size_t)(end - at));

		if (sent <= 0)
			return -1;
		at += sent;
	}
	return 0;
}

static int count(void)
{
	int fd = open_session(), status = fd < 0 ? -1 : run("/counting", "work");

	if (status == 0)
		status = keep_ring();
	return status;
}

int main(int argc, char **argv)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/run", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sys", "/sys", "sysfs", 0, NULL) ||
	    mount("dev", "/dev", "devtmpfs", 0, NULL))
		printf("cannot mount\n");
	for (int i = 1; i < argc; i++)
		printf("# %s: %d\n", argv[i],
		       strcmp(argv[i], "counting") == 0 ? count() : run("/race-ring", argv[i]));
	printf("# over\n");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
