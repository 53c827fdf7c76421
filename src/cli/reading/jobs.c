/* SPDX-License-Identifier: MIT */
#include "cli/reading/jobs.h"

#include "os/thread-pool.h"

#define JOBS_MAX 256
/* A thread is worth its start for so much of a trace. */
#define BYTES_PER_JOB ((uint64_t)2 << 20)

unsigned int ky_cli_jobs(uint64_t wanted, const struct ky_trace_set *set)
{
	uint64_t bytes = 0, worth, cpus = ky_cpus_usable();

	if (wanted)
		return wanted < JOBS_MAX ? (unsigned int)wanted : JOBS_MAX;
	ky_vec_foreach(&set->streams, stream)
		bytes += (*stream)->file.size_bytes;
	worth = 1 + bytes / BYTES_PER_JOB;
	if (cpus > JOBS_MAX)
		cpus = JOBS_MAX;
	return (unsigned int)(worth < cpus ? worth : cpus);
}
