/* SPDX-License-Identifier: MIT */
/* kymo doctor: what tracing of programs finds here: rseq, runtime directories, programs. */
#include "record/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "record/request/user-program.h"
#include "record/runtime/user-runtime.h"

static void check_directory(struct ky_doctor *doctor)
{
	struct ky_user_dir dir;
	struct kymo_error err;
	uint64_t word = 0;

	/* Made as a recording makes it; no program looks at it before it is published. */
	if (ky_user_dir_make(geteuid(), NULL, &word, sizeof(word), &dir, &err) < 0) {
		ky_doctor_add(doctor, "runtime dir", KY_CHECK_WARN, "%s: %s", err.path,
			      err.message);
		ky_doctor_advice(doctor, "%s",
				 err.hint[0] ? err.hint
					     : "programs cannot be recorded (kymo record --user)");
		return;
	}
	*strrchr(dir.path, '/') = '\0';
	ky_doctor_add(doctor, "runtime dir", KY_CHECK_OK,
		      "sessions for programs with libkymo-trace go to %s", dir.path);
	ky_user_dir_remove(&dir);
}

struct leftovers {
	unsigned int n_dirs, n_rings;
	uint64_t bytes;
	char path[KY_SESSION_PATH_MAX + 1]; /* one of them */
};

static void add_stale(void *data, const struct ky_user_stale *stale)
{
	struct leftovers *leftovers = data;

	if (!stale->n_rings)
		return;
	leftovers->n_dirs++;
	leftovers->n_rings += stale->n_rings;
	leftovers->bytes += stale->bytes;
	memcpy(leftovers->path, stale->path, sizeof(stale->path));
}

static void doctor_user_check_leftovers(struct ky_doctor *doctor)
{
	struct leftovers leftovers = {0};
	char size[32], more[40] = "";

	ky_user_stale_scan(NULL, false, add_stale, &leftovers);
	if (!leftovers.n_rings)
		return;
	if (leftovers.n_dirs > 1)
		snprintf(more, sizeof(more), " and %u more", leftovers.n_dirs - 1);
	ky_doctor_add(doctor, "leftovers", KY_CHECK_WARN,
		      "%u ring buffer%s (%s) of killed recorders, in %s%s", leftovers.n_rings,
		      leftovers.n_rings == 1 ? "" : "s", ky_format_bytes(size, leftovers.bytes),
		      leftovers.path, more);
	ky_doctor_advice(doctor, "kymo recover --remove -o DIR");
}

static void check_programs(struct ky_doctor *doctor)
{
	struct ky_programs programs = {0};
	struct kymo_error err;
	size_t n_off = 0;

	if (ky_programs_scan(&programs, &err) < 0) {
		ky_doctor_add(doctor, "programs", KY_CHECK_WARN, "%s", err.message);
		return;
	}
	ky_vec_foreach(&programs.list, it) {
		const struct ky_program *program = *it;
		const char *why = program->blocked ? program->blocked
				  : program->off   ? ky_off_text(program->off)
						   : NULL;

		if (!why)
			continue;
		n_off++;
		ky_doctor_add(doctor, "programs", KY_CHECK_WARN, "%s (%d) is not traced: %s",
			      program->procname, (int)program->pid, why);
	}
	ky_doctor_add(doctor, "programs", KY_CHECK_OK,
		      "%zu with libkymo-trace run now, %zu of them can be traced",
		      programs.list.len, programs.list.len - n_off);
	ky_programs_fini(&programs);
}

void ky_doctor_user(struct ky_doctor *doctor)
{
	check_directory(doctor);
	doctor_user_check_leftovers(doctor);
	check_programs(doctor);
}
