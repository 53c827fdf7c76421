/* SPDX-License-Identifier: MIT */
/*
 * Raw recordings of any bytes become a trace or an error. The first two bytes, little-endian, are the
 * length of the description; what follows it is the pages of CPU 0.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/kernel/raw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void put(const char *name, const void *data, size_t size)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size)
		abort();
	fclose(file);
}

/* In memory, where there is such a place: it is written anew for each input. */
static void make_dir(void)
{
	static const char metadata[] = "/* CTF 1.8 */\n";
	char path[128];

	snprintf(dir, sizeof(dir), "%s/kymo-fuzz-raw-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(dir))
		abort();
	atexit(remove_dir);
	snprintf(path, sizeof(path), "%s/raw", dir);
	if (mkdir(path, 0700) < 0)
		abort();
	snprintf(path, sizeof(path), "%s/raw/state", dir);
	if (mkdir(path, 0700) < 0)
		abort();
	put("raw/state/metadata.ctf", metadata, sizeof(metadata) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_raw_stats stats;
	struct kymo_error err;
	char output[128];
	size_t len;

	if (!dir[0])
		make_dir();
	if (size < 2)
		return 0;
	len = (size_t)(data[0] | data[1] << 8);
	if (len > size - 2)
		len = size - 2;
	put("raw/recording", data + 2, len);
	put("raw/cpu0", data + 2 + len, size - 2 - len);
	snprintf(output, sizeof(output), "%s/out", dir);
	if (ky_raw_convert_to_directory(dir, output, NULL, &stats, &err) < 0 && !err.message[0])
		abort();
	(void)nftw(output, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return 0;
}
