/* SPDX-License-Identifier: MIT */
#include "record/trace/kernel-trace.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "record/trace/kernel-trace-internal.h"

void ky_kernel_trace_init(struct ky_kernel_trace *kernel)
{
	memset(kernel, 0, sizeof(*kernel));
	kernel->threads.proc.fd = -1;
	ky_strbuf_init(&kernel->constants);
	pthread_mutex_init(&kernel->sink_lock, NULL);
}

void ky_kernel_trace_fini(struct ky_kernel_trace *kernel)
{
	ky_kernel_trace_free_filters(kernel);
	ky_trace_class_free(kernel->trace);
	ky_convert_fini(&kernel->convert);
	if (kernel->has_threads)
		ky_threads_fini(&kernel->threads);
	ky_catalogue_fini(&kernel->catalogue);
	ky_strbuf_fini(&kernel->constants);
	ky_vec_fini(&kernel->cpus);
	pthread_mutex_destroy(&kernel->sink_lock);
}

int ky_kernel_trace_make_uuid(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	if (getrandom(kernel->uuid, sizeof(kernel->uuid), 0) != sizeof(kernel->uuid))
		return ky_error_errno(err, errno, "no random numbers");
	kernel->uuid[6] = (kernel->uuid[6] & 0x0f) | 0x40;
	kernel->uuid[8] = (kernel->uuid[8] & 0x3f) | 0x80;
	return KYMO_OK;
}
