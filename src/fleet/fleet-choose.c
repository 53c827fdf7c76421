/* SPDX-License-Identifier: MIT */
/* Which tables and columns of traces go into a store. */
#include "fleet/fleet.h"

#include <string.h>

#include "base/text.h"

/* Without a wish: intervals, and what is small. */
static const char *const usual_tables[] = {
	"syscall", "cpu_slice", "thread_state", "thread", "cpu_state", "irq",	    "block_request",
	"network", "lock_wait", "counter",	"loss",	  "host",      "histogram",
};

/* Texts that are names of machines, programs and things, and never content. */
static const char *const plain_texts[] = {
	"host",	      "name",
	"comm",	      "waker_comm",
	"who_comm",   "holder_comm",
	"stream",     "domain",
	"sysname",    "kernel_release",
	"tracer",     "tracer_version",
	"state",      "cause",
	"syscall",    "irq",
	"disk",	      "interface",
	"direction",  "operation",
	"error",      "unit",
	"level",      "event",
	"source",     "kind",
	"of",	      "prev_comm",
	"next_comm",  "uuid",
	"op",	      "outcome",
	"stage",      "signal",
	"way",	      "guest",
	"guest_comm", "why",
};

static bool is_among(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* ---- tables --------------------------------------------------------------------------- */

static bool is_of_events(const char *about)
{
	return strncmp(about, "events \"", 8) == 0;
}

/* Columns of an event type are what programs wrote, but for the names of threads. */
bool ky_fleet_wants_column(const struct ky_fleet_options *options, const char *name,
			   const char *type, const char *about)
{
	bool is_field = strncmp(about, "field", 5) == 0 || strncmp(about, "context field", 13) == 0;
	size_t len = strlen(name);

	if (strncmp(about, "argument:", 9) == 0 || strcmp(type, "BLOB") == 0)
		return false;
	if (strcmp(type, "TEXT") != 0 || options->with_texts)
		return true;
	if (is_field)
		return len >= 4 && strcmp(name + len - 4, "comm") == 0;
	return is_among(name, plain_texts, sizeof(plain_texts) / sizeof(plain_texts[0]));
}

bool ky_fleet_wants_table(const struct ky_fleet_options *options, const char *name,
			  const char *about)
{
	if (is_of_events(about))
		return options->n_events &&
		       ky_glob_choose(options->events, options->n_events, name);
	if (options->n_tables)
		return ky_glob_choose(options->tables, options->n_tables, name);
	return is_among(name, usual_tables, sizeof(usual_tables) / sizeof(usual_tables[0]));
}
