/* SPDX-License-Identifier: MIT */
/* The recordings below a relay's directory: HOST/NAME, and each of their chunks HOST/NAME/archives/CHUNK. Threads: one. */
#ifndef KY_FLEET_FLEET_UNITS_H
#define KY_FLEET_FLEET_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/hash.h"
#include "base/vec.h"
#include "store/read/trace.h"

struct ky_fleet_unit {
	char *path; /* below the relay's directory */
	bool is_chunk, is_seen;
	bool is_open;	     /* its recorder had not ended it */
	bool is_whole;	     /* the store has it, and it does not grow */
	int want_fd;	     /* tells the recorder that there is a reader; -1 */
	uint64_t begin_ns;   /* CLOCK_MONOTONIC: when it was first seen, */
	uint64_t next_ns;    /* when it is to be looked at again, */
	uint64_t written_ns; /* when somebody wrote it last */
	unsigned int n_fails;
};

struct ky_fleet_units {
	int dir_fd;
	KY_VEC(struct ky_fleet_unit) list;
	struct ky_names known; /* while there is a scan: path -> place in ->list + 1 */
	struct ky_names open;  /* paths of recordings whose recorders have not ended them; heap */
};

/* KYMO_E_NOT_FOUND, KYMO_E_IO. */
int ky_fleet_units_open(struct ky_fleet_units *units, const char *dir, struct kymo_error *err);
void ky_fleet_units_close(struct ky_fleet_units *units);

/* Finds new ones, and forgets those that are gone. KYMO_E_MEMORY. */
int ky_fleet_units_scan(struct ky_fleet_units *units, uint64_t now_ns);

/*
 * Opens what is there of @unit; the caller closes it. *until_ns: all events before it are there; INT64_MAX: the unit is complete; INT64_MIN:
 * unknown. KYMO_E_NOT_FOUND: it has no trace yet; otherwise as ky_trace_set_open_with().
 */
int ky_fleet_unit_open(struct ky_fleet_units *units, struct ky_fleet_unit *unit, const char *dir,
		       uint64_t now_ns, struct ky_trace_set *set, int64_t *until_ns,
		       struct kymo_error *err);

#endif
