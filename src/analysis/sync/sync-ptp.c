/* SPDX-License-Identifier: MIT */
#include "analysis/sync/sync-ptp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/sync/sync-hull.h"

/* Clocks that are further apart are refused. */
#define OFFSET_MAX_NS (KY_HULL_FAR / 2)
#define DELAY_MAX_NS  ((int64_t)3600 * 1000000000)

/* The longest line that counts. */
#define LINE_BYTES 256

static void sync_ptp_add(struct ky_ptp_said *said, int64_t least, int64_t most)
{
	said->least = said->has && said->least < least ? said->least : least;
	said->most = said->has && said->most > most ? said->most : most;
	said->has = true;
}

/* The delay is that of a packet, or of reading the clock: how it is shared between both ways is not known. */
static bool sync_ptp_add_offset(struct ky_ptp_said *said, int64_t offset, int64_t delay)
{
	int64_t error;

	if (offset < -OFFSET_MAX_NS || offset > OFFSET_MAX_NS || delay < -DELAY_MAX_NS ||
	    delay > DELAY_MAX_NS)
		return false;
	error = delay < 0 ? -delay : delay;
	sync_ptp_add(said, offset - error, offset + error);
	return true;
}

/* A step of the clock: what was said before is over. */
static bool sync_ptp_is_step(struct ky_ptp_said *said, char state)
{
	if (state != '1')
		return false;
	*said = (struct ky_ptp_said){.has = false};
	return true;
}

static const char *sync_ptp_after(const char *line, const char *what)
{
	const char *at = strstr(line, what);

	return at ? at + strlen(what) : NULL;
}

/* "master offset -78 s2 freq +4 path delay 2411" */
static bool sync_ptp_port(struct ky_sync_ptp *ptp, const char *line)
{
	const char *at = sync_ptp_after(line, "master offset");
	int64_t offset, delay;
	char state;

	if (!at || sscanf(at, "%" SCNd64 " s%c freq %*d path delay %" SCNd64, &offset, &state,
			  &delay) != 3)
		return false;
	return sync_ptp_is_step(&ptp->port, state) ||
	       sync_ptp_add_offset(&ptp->port, offset, delay);
}

/* "CLOCK_REALTIME phc offset -23 s2 freq -12 delay 512"; "sys offset": a card's clock follows the system's. */
static bool sync_ptp_system(struct ky_sync_ptp *ptp, const char *line)
{
	const char *at = sync_ptp_after(line, "CLOCK_REALTIME phc offset");
	bool is_reversed = !at;
	int64_t offset, delay;
	char state;

	at = at ? at : sync_ptp_after(line, "sys offset");
	if (!at ||
	    sscanf(at, "%" SCNd64 " s%c freq %*d delay %" SCNd64, &offset, &state, &delay) != 3 ||
	    offset == INT64_MIN)
		return false;
	return sync_ptp_is_step(&ptp->system, state) ||
	       sync_ptp_add_offset(&ptp->system, is_reversed ? -offset : offset, delay);
}

/* "rms 261 max 476 freq -36 +/- 105 delay 2238 +/- 166": of several offsets, whose signs it does not tell. */
static bool sync_ptp_summary(struct ky_sync_ptp *ptp, const char *line)
{
	const char *at = sync_ptp_after(line, "rms "), *name = strstr(line, "CLOCK_REALTIME rms");
	int64_t most, delay;

	if (!at ||
	    sscanf(at, "%*d max %" SCNd64 " freq %*d +/- %*d delay %" SCNd64, &most, &delay) != 2)
		return false;
	if (most < 0 || most > OFFSET_MAX_NS)
		return false;
	return sync_ptp_add_offset(name ? &ptp->system : &ptp->port, -most, delay) &&
	       sync_ptp_add_offset(name ? &ptp->system : &ptp->port, most, delay);
}

static void sync_ptp_name(struct ky_sync_ptp *ptp, const char *line)
{
	const char *other = sync_ptp_after(line, "selected best master clock ");
	const char *own = sync_ptp_after(line, "selected local clock ");
	char name[KY_GRANDMASTER_BYTES];

	if (strstr(line, " as PTP clock") && strstr(line, "/dev/ptp"))
		ptp->is_of_card = true;
	/* With another master, the offsets are against another clock. */
	if ((other || own) && sscanf(other ? other : own, "%23[0-9a-f.]", name) == 1) {
		if (strcmp(name, ptp->grandmaster) != 0)
			ptp->port = (struct ky_ptp_said){.has = false};
		ptp->is_master = false;
		memcpy(ptp->grandmaster, name, sizeof(name));
	}
	/* It is the grandmaster's clock itself. */
	if (strstr(line, "assuming the grand master role")) {
		ptp->is_master = true;
		sync_ptp_add(&ptp->port, 0, 0);
	}
}

void ky_sync_ptp_see(struct ky_sync_ptp *ptp, const char *message, size_t len, int64_t ns)
{
	char line[LINE_BYTES];

	if (len >= sizeof(line))
		return;
	memcpy(line, message, len);
	line[len] = '\0';
	sync_ptp_name(ptp, line);
	if (!sync_ptp_port(ptp, line) && !sync_ptp_system(ptp, line) &&
	    !sync_ptp_summary(ptp, line))
		return;
	ptp->begin_ns = ptp->has_times && ptp->begin_ns < ns ? ptp->begin_ns : ns;
	ptp->end_ns = ptp->has_times && ptp->end_ns > ns ? ptp->end_ns : ns;
	ptp->has_times = true;
}

void ky_sync_ptp_finish(const struct ky_sync_ptp *ptp, struct ky_sync_facts *facts)
{
	bool needs_system = ptp->is_of_card || ptp->system.has;
	struct ky_ptp_said system = {.has = ptp->system.has || !needs_system};
	__int128 least, most;

	if (!facts->wall.has || !ptp->port.has || (needs_system && !system.has))
		return;
	system = ptp->system.has ? ptp->system : system;
	least = (__int128)facts->wall.least - ptp->port.most - system.most;
	most = (__int128)facts->wall.most - ptp->port.least - system.least;
	if (least < INT64_MIN / 2 || most > INT64_MAX / 2)
		return;
	facts->of[KY_KNOWS_PTP] = (struct ky_sync_range){true, (int64_t)least, (int64_t)most};
	memcpy(facts->grandmaster, ptp->grandmaster, sizeof(facts->grandmaster));
	if (facts->has_times)
		return;
	facts->is_grandmaster = ptp->is_master;
	facts->has_times = ptp->has_times;
	facts->begin_ns = ptp->begin_ns;
	facts->end_ns = ptp->end_ns;
}
