/* SPDX-License-Identifier: MIT */
/*
 * perf.data: tracepoints become a kernel trace, as Kymo would have recorded them; samples, and what perf says of processes
 * and mappings, a second trace, PATH/perf.
 *
 * perf copies the rings of the CPUs one after the other. In a round of these copies, a CPU's records may belong before those
 * that came earlier; so records wait until the next round has ended, as perf itself does it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "import/common/import-internal.h"
#include "import/perf/import-perf-internal.h"

/* ---- records -------------------------------------------------------------------------- */

int ky_perf_import_late(struct ky_perf_import *import, struct kymo_error *err)
{
	import->is_late = true;
	return ky_error_set(err, KYMO_E_FORMAT, "the records are not in the order of their CPUs");
}

void ky_perf_import_beyond(struct ky_perf_import *import, uint32_t cpu, uint64_t at)
{
	if (import->beyond.code)
		return;
	ky_error_set(&import->beyond, KYMO_E_LIMIT, "CPU %u is above the limit of %u CPUs", cpu,
		     KY_FOREIGN_CPUS_MAX);
	ky_error_path(&import->beyond, import->perf.file.path);
	ky_error_offset(&import->beyond, at);
}

static int import_perf_wait(struct ky_perf_import *import, const struct ky_perf_head *head,
			    struct kymo_error *err)
{
	struct ky_perf_head kept = *head;
	struct ky_perf_waiting waiting = {.size = head->size};
	uint32_t cpu;

	kept.bytes = waiting.bytes = ky_perf_queue_copy(&import->queues, head->bytes, head->size);
	if (!kept.bytes)
		return ky_error_nomem(err);
	if (head->type == KY_PERF_MMAP && !import->perf.kernel_at)
		ky_perf_take_map(&import->perf, &kept);
	ky_perf_sample_place(&import->perf, &kept, &waiting.ns, &cpu);
	if (head->type == KY_PERF_SAMPLE && ky_perf_queue_is_beyond(cpu)) {
		ky_perf_import_beyond(import, cpu, import->perf.record_at);
		return KYMO_OK;
	}
	if (ky_perf_queue_add_copy(&import->queues, cpu, &waiting) < 0)
		return ky_error_nomem(err);
	if (waiting.ns && waiting.ns < ky_perf_queue_of(&import->queues, cpu)->handed_ns)
		return ky_perf_import_late(import, err);
	return KYMO_OK;
}

int ky_perf_import_take(struct ky_perf_import *import, const struct ky_perf_head *head,
			struct kymo_error *err)
{
	int ret;

	if (head->type != KY_PERF_FINISHED_ROUND) {
		if (head->type >= KY_PERF_USER)
			return KYMO_OK;
		ret = import_perf_wait(import, head, err);
		if (ret < 0 || import->queues.waiting_bytes < KY_PERF_WAITING_MAX_BYTES)
			return ret;
		import->round_ns = import->queues.newest_ns;
	} else if (import->parts.path) {
		import->round_is_over = true;
		return KYMO_OK;
	}
	ret = ky_perf_import_flush(import, import->round_ns, err);
	import->round_ns = import->queues.newest_ns;
	return ret;
}

/* ---- the file ------------------------------------------------------------------------- */

static void import_perf_fini(struct ky_perf_import *import)
{
	ky_perf_queues_fini(&import->queues);
	ky_perf_parts_fini(&import->parts);
	free(import->row.bytes);
	ky_import_perf_fini(&import->trace);
	ky_perf_close(&import->perf);
}

/* What was good before is read all the same; an error of reading ends it, but in a directory there are the other files. */
static bool import_perf_goes_on(const struct ky_perf_import *import, int why)
{
	if (import->parts.path)
		return why != KYMO_E_MEMORY;
	return (why == KYMO_E_FORMAT || why == KYMO_E_LIMIT) &&
	       (import->trace.has_begun || import->queues.waiting_bytes);
}

/* All records of a file, up to the break: @broken gets that; of a part, those of a round. 1: there are more; 0; negative. */
static int import_perf_read(struct ky_perf_import *import, bool is_part, struct kymo_error *broken,
			    struct kymo_error *err)
{
	struct kymo_error why;
	struct ky_perf_head head;
	int ret, next;

	import->round_is_over = false;
	while ((next = ky_perf_next(&import->perf, &head, &why)) > 0) {
		ret = ky_perf_import_take(import, &head, err);
		if (!ret)
			ret = ky_perf_import_row(import, err);
		if (ret < 0)
			return ret;
		if (import->round_is_over && is_part)
			return 1;
		import->round_is_over = false;
	}
	if (next < 0)
		ky_perf_parts_tell(&import->parts, broken, &why);
	else if (!broken->code && ky_foreign_is_cut(&import->perf.file))
		ky_foreign_bad(&import->perf.file, import->perf.at,
			       "the file became shorter while it was read", broken);
	if (next < 0 && !import_perf_goes_on(import, next)) {
		if (err)
			*err = why;
		return next;
	}
	return KYMO_OK;
}

static int import_perf_read_part(struct ky_perf_import *import, struct ky_perf_part *part,
				 struct kymo_error *broken, struct kymo_error *err)
{
	int ret;

	ky_perf_part_swap(part, &import->perf);
	import->queues.newest_ns = 0;
	ret = import_perf_read(import, true, broken, err);
	ky_perf_part_swap(part, &import->perf);
	part->is_done = ret != 1;
	part->round_ns = part->newest_ns;
	if (import->queues.newest_ns > part->newest_ns)
		part->newest_ns = import->queues.newest_ns;
	if (part->newest_ns > import->last_ns)
		import->last_ns = part->newest_ns;
	return ret < 0 ? ret : KYMO_OK;
}

/* A round of each, again and again: what is older than all their rounds is in order. */
static int import_perf_read_parts(struct ky_perf_import *import, struct kymo_error *broken,
				  struct kymo_error *err)
{
	uint64_t until = 0, flushed = 0;
	int ret = KYMO_OK;

	import->perf.is_cut = false;
	while (until != UINT64_MAX && !ret) {
		ky_vec_foreach(&import->parts.parts, part)
			if (!part->is_done && !ret)
				ret = import_perf_read_part(import, part, broken, err);
		until = ky_perf_parts_until(&import->parts);
		if (ret || until <= flushed || until == UINT64_MAX)
			continue;
		ret = ky_perf_import_flush(import, until, err);
		flushed = until;
	}
	return ret;
}

static void import_perf_say(const struct ky_perf_import *import)
{
	const char *path = import->perf.path;

	if (import->n_short)
		ky_log_warning(import->log,
			       "%s: %llu samples are shorter than their event says; "
			       "they are left out",
			       path, (unsigned long long)import->n_short);
	if (import->trace.n_empty)
		ky_log_warning(import->log,
			       "%s: %llu samples of tracepoints lack the tracepoint's record; "
			       "they are left out",
			       path, (unsigned long long)import->trace.n_empty);
	if (import->trace.stacks.n_left_out)
		ky_log_warning(import->log,
			       "%s: %llu copies of stacks are not unwound: the file is of another "
			       "kind of machine, or says nothing of the processes, or libdw is not "
			       "installed",
			       path, (unsigned long long)import->trace.stacks.n_left_out);
	if (import->perf.n_aux_left_out)
		ky_log_warning(import->log,
			       "%s: %llu pieces of AUX data are left out: perf recorded them with "
			       "several threads",
			       path, (unsigned long long)import->perf.n_aux_left_out);
}

static int import_perf_run(struct ky_perf_import *import, struct kymo_error *broken,
			   struct kymo_error *err)
{
	int ret = import_perf_read(import, false, broken, err);

	if (!ret && import->parts.path)
		ret = import_perf_read_parts(import, broken, err);
	if (!ret)
		ret = ky_perf_import_flush(import, UINT64_MAX, err);
	if (!ret)
		ret = ky_import_perf_aux(&import->trace, &import->perf, import->last_ns, err);
	if (!ret)
		ret = ky_import_perf_end(&import->trace, err);
	if (!ret)
		import_perf_say(import);
	return ret;
}

/* One try. *is_late: another one has to wait for the ends of rounds. */
static int import_perf_try(struct ky_import *imports, const char *path, bool *is_late,
			   const struct ky_log *log, struct kymo_error *err)
{
	struct ky_perf_import import = {.log = log, .waits = *is_late};
	struct kymo_error broken = {0};
	bool is_directory =
		imports->unpacked_fd < 0 && ky_perf_parts_find(path, &import.parts.path);
	int ret = ky_perf_open(&import.perf, is_directory ? import.parts.path : path,
			       imports->unpacked_fd, err);

	import.perf.path = path;
	import.parts.log = log;
	broken = import.perf.broken;
	if (!ret && is_directory)
		ret = ky_perf_parts_open(&import.parts, path, &import.perf, &broken, err);
	if (!ret)
		ret = ky_import_perf_init(&import.trace, imports, path, err);
	if (!ret)
		ret = import_perf_run(&import, &broken, err);
	if (!ret && broken.code)
		ky_import_broken(imports, &broken);
	if (!ret && import.beyond.code)
		ky_import_broken(imports, &import.beyond);
	*is_late = import.is_late;
	import_perf_fini(&import);
	return ret;
}

static int import_perf_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			    struct kymo_error *err)
{
	const struct ky_import_mark mark = ky_import_mark(imports);
	bool is_late = false;
	int ret = import_perf_try(imports, path, &is_late, log, err);

	if (!is_late)
		return ret;
	ky_import_undo(imports, &mark);
	return import_perf_try(imports, path, &is_late, log, err);
}

const struct ky_import_format ky_import_perf = {
	.name = "perf.data",
	.probe = ky_perf_is,
	.open = import_perf_open,
};
