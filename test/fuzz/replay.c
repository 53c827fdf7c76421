/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target on every file of the directories given, without a fuzzer: how 'make test'
 * replays the corpora. Speaks TAP; a directory that does not exist counts as empty.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/file.h"

#define INPUT_MAX_BYTES (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copied to a block of its exact size, so that a sanitizer sees every byte beyond. */
static void replay(int dirfd, const char *name)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint8_t *exact;

	if (ky_read_file(dirfd, name, INPUT_MAX_BYTES, &text) < 0)
		exit(1);
	exact = malloc(text.len ? text.len : 1);
	if (!exact)
		exit(1);
	if (text.len)
		memcpy(exact, text.data, text.len);
	LLVMFuzzerTestOneInput(exact, text.len);
	free(exact);
	ky_strbuf_fini(&text);
}

int main(int argc, char **argv)
{
	int count = 0;

	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		struct dirent *entry;

		while (dir && (entry = readdir(dir)))
			if (entry->d_name[0] != '.') {
				replay(dirfd(dir), entry->d_name);
				printf("ok %d - %s\n", ++count, entry->d_name);
				fflush(stdout);
			}
		if (dir)
			closedir(dir);
	}
	printf("ok %d - empty input\n1..%d\n", count + 1, count + 1);
	return 0;
}
