/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef KY_LATENCY_LATENCY_INTERNAL_H
#define KY_LATENCY_LATENCY_INTERNAL_H

#include "base/hash.h"
#include "latency/bpf/bpf-program.h"
#include "latency/layers/latency.h"
#include "latency/programs/program-files.h"
#include "latency/bpf/ring-turn.h"

struct latency_bpf;

struct ky_latency {
	struct latency_bpf *skeleton;	    /* NULL: no layers */
	struct ring_buffer *members;	    /* NULL: none are wanted */
	ky_latency_take_member take_member; /* during a call of ky_latency_members() */
	void *take_data;
	struct ky_ring_turn turn;	   /* of reading members */
	struct ky_latency_options options; /* its texts are not kept */
	KY_VEC(char *) chosen;		   /* system calls with histograms of their own */
	uint32_t absent_layers;
	uint32_t n_cpus;
	uint64_t begin_ns, read_ns,
		last_ns; /* CLOCK_MONOTONIC: start, last and last but one reading */
	uint64_t slot;
	struct ky_latency_cell *buffer; /* for readings of maps */
	struct ky_latency_key *keys;
	size_t buffer_cells;
	uint64_t owners[KY_LATENCY_OWNED]; /* of places, at the last reading */
	uint32_t n_cells;		   /* in the table, at the last reading */
	struct ky_map by_hash;		   /* of key -> struct ky_series, chained by next_of_hash */
	KY_VEC(struct ky_series *) series;
	struct ky_tracker *trackers[KY_TRACKERS_MAX];
	size_t n_trackers;
	struct ky_chain *chain; /* NULL: not wanted */
	bool has_programs;	/* their own trackers are wanted */
	struct ky_program_files programs;
	const char *program_name; /* of the series that is being made */
	size_t n_program_series;
	uint64_t n_lost_programs; /* durations of programs without a series */
};

/* ---- latency.c ---------------------------------------------------------------------------- */

/* The series of @key; a new one for a new key. NULL: out of memory. */
struct ky_series *ky_latency_series_of(struct ky_latency *latency,
				       const struct ky_latency_key *key);
/* The same, but NULL for a new key. */
struct ky_series *ky_latency_series_find(const struct ky_latency *latency,
					 const struct ky_latency_key *key);

/* @cell is what the kernel has of @key by now, @max_ns the longest of the period. 0 or KYMO_E_MEMORY. */
int ky_latency_take(struct ky_latency *latency, const struct ky_latency_key *key,
		    const struct ky_latency_cell *cell, uint64_t max_ns, bool is_keyed,
		    struct kymo_error *err);

/* ---- latency-places.c --------------------------------------------------------------------- */

/* The longest of period @period; 0: there was none. */
uint64_t ky_latency_peak(const struct ky_latency_cell *cell, uint64_t period);
/* The sum of what CPUs have counted, of which the buffer has a cell each. False: nothing. */
bool ky_latency_sum_place(const struct ky_latency *latency, uint64_t period,
			  struct ky_latency_cell *sum, uint64_t *max_ns);
/* Take all places, with what the table has of their keys. 0, KYMO_E_MEMORY or KYMO_E_IO. */
int ky_latency_read_places(struct ky_latency *latency, uint64_t period, struct kymo_error *err);
/* Was the cell of @key in the table taken with its place? */
bool ky_latency_has_place(const struct ky_latency *latency, const struct ky_latency_key *key);

/* ---- latency-programs.c ------------------------------------------------------------------- */

/* Programs begin to count: what they have counted so far is not ours. 0, KYMO_E_MEMORY, KYMO_E_IO. */
int ky_latency_begin_programs(struct ky_latency *latency, struct kymo_error *err);
/* A period ends. Errors as above. */
int ky_latency_read_programs(struct ky_latency *latency, struct kymo_error *err);

/* ---- latency-load.c --------------------------------------------------------------------- */

/* Load the programs and start them. 0 or as ky_latency_open(). */
int ky_latency_load(struct ky_latency *latency, struct kymo_error *err);
void ky_latency_unload(struct ky_latency *latency);
/* Runs that the kernel has skipped. */
uint64_t ky_latency_misses(const struct ky_latency *latency);
/* NULL: there are no layers. */
struct ky_latency_shared *ky_latency_shared(const struct ky_latency *latency);
int ky_latency_places_fd(const struct ky_latency *latency);
int ky_latency_cells_fd(const struct ky_latency *latency);
/* The name of a process. False: it is not known. */
bool ky_latency_comm(const struct ky_latency *latency, uint32_t tgid,
		     char comm[KY_LATENCY_COMM_BYTES]);
uint32_t ky_latency_cells_max(const struct ky_latency *latency);

/* ---- latency-calls.c ---------------------------------------------------------------------- */

/* Fill the tables of @config. 0 or KYMO_E_INVALID. */
int ky_latency_choose_calls(const struct ky_latency_options *options,
			    struct ky_latency_config *config, struct kymo_error *err);

/* ---- latency-names.c ---------------------------------------------------------------------- */

/* Find what people call the series, also anew. 0 or KYMO_E_MEMORY. */
int ky_latency_name(const struct ky_latency *latency, struct ky_series *series);

#endif
