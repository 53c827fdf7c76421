/* SPDX-License-Identifier: MIT */
#include "os/tsc.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <x86intrin.h>

#include "os/clock.h"
#include "os/file.h"

/* Enough for the first processor's entry, whose flags speak for all. */
#define CPUINFO_MAX_BYTES 16384

uint64_t ky_tsc_read(void)
{
	_mm_lfence();
	return __rdtsc();
}

/* Is @flag a whole word of the line at @line? */
static bool has_flag(const char *line, const char *flag)
{
	size_t len = strlen(flag);
	const char *end = strchrnul(line, '\n');

	for (const char *at = line; (at = strstr(at, flag)) && at < end; at += len)
		if (at[-1] == ' ' && (at[len] == ' ' || at[len] == '\n' || !at[len]))
			return true;
	return false;
}

const char *ky_tsc_unsound(void)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *why = NULL, *flags;
	char name[64];

	/* -EFBIG is expected: only the beginning matters. */
	(void)ky_read_file(AT_FDCWD, "/proc/cpuinfo", CPUINFO_MAX_BYTES, &text);
	flags = strstr(ky_strbuf_text(&text), "\nflags");
	ky_os_clocksource(name);
	if (!flags)
		why = "/proc/cpuinfo does not have the processor's flags";
	else if (!has_flag(flags + 1, "constant_tsc"))
		why = "its rate changes with the processor's (no constant_tsc)";
	else if (!has_flag(flags + 1, "nonstop_tsc"))
		why = "it stops in deep idle states (no nonstop_tsc)";
	else if (strcmp(name, "tsc") != 0)
		why = "the kernel does not keep time by it (current_clocksource)";
	ky_strbuf_fini(&text);
	return why;
}
