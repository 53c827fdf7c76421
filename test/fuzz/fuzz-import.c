/* SPDX-License-Identifier: MIT */
/* Files of other programs (perf.data, trace.dat, pcap, logs): any bytes as such a file, whose traces are then read to their end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flow/graph/flow.h"
#include "import/common/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct ky_trace_set *set)
{
	struct ky_flow *flow;
	struct ky_batch batch;
	struct kymo_error err;

	if (ky_flow_open_set(set, &flow, &err) < 0)
		return;
	while (ky_flow_next(flow, &batch, &err) > 0)
		;
	ky_flow_close(flow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_import imports = KY_IMPORT_INIT;
	struct ky_trace_options options = {0};
	struct ky_trace_set set = {0};
	int fd = memfd_create("fuzz-import", MFD_CLOEXEC);
	struct kymo_error err;
	char path[64];
	const char *const paths[] = {path};

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ky_import_paths(&imports, (char **)(uintptr_t)paths, 1, NULL, NULL, false, &err) == 0) {
		options.scratch = imports.places.data;
		options.n_scratch = imports.places.len;
		if (options.n_scratch &&
		    ky_trace_set_open_with(&set, paths, 1, &options, NULL, &err) == 0) {
			read_all(&set);
			ky_trace_set_close(&set);
		}
	}
	ky_import_fini(&imports);
	close(fd);
	return 0;
}
