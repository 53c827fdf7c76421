/* SPDX-License-Identifier: MIT */
/*
 * The real-time chain: from an interrupt, by its handler and softirq, to the thread that they wake up, until its system
 * call returns. Each part has a histogram, and the reader gets the longest chains with their parts.
 * Threads: one at a time per chain.
 */
#ifndef KY_LATENCY_CHAIN_H
#define KY_LATENCY_CHAIN_H

#include <stdbool.h>

#include <kymo/error.h>

#include "latency/bpf/chain-layout.h"

struct ky_chain;

struct ky_chain_options {
	int32_t tid, pid; /* 0: all */
	const char *comm; /* a name, or its beginning and '*'; NULL: all */
	uint64_t over_ns; /* tell of what takes longer */
	bool over_worst;  /* instead: of what takes longer than all before */
};

struct ky_chain_state {
	uint64_t dropped; /* the thread slept again before its call returned */
	uint64_t lost;	  /* what took long, but found no room to be told */
	uint64_t missed;  /* runs that the kernel skipped */
	uint64_t worst_ns;
};

typedef void (*ky_chain_tell)(void *data, const struct ky_chain_report *report);

/* Load and start it. KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED, KYMO_E_INVALID (comm), KYMO_E_MEMORY, KYMO_E_IO. */
int ky_chain_open(const struct ky_chain_options *options, struct ky_chain **chain,
		  struct kymo_error *err);
void ky_chain_close(struct ky_chain *chain); /* NULL is allowed */
/* Tell of what has come since the last call, for a moment. 1: there is more; 0; KYMO_E_IO. */
int ky_chain_step(struct ky_chain *chain, ky_chain_tell tell, void *data, struct kymo_error *err);
/* A period begins; the one that ends had number *@period. */
void ky_chain_turn(struct ky_chain *chain, uint64_t *period);
/* The cells of @part, of each possible CPU. 0 or KYMO_E_IO. */
int ky_chain_read(struct ky_chain *chain, uint32_t part, struct ky_latency_cell *cells,
		  struct kymo_error *err);
void ky_chain_state(const struct ky_chain *chain, struct ky_chain_state *state);

/* "whole", "handler"; static. */
const char *ky_chain_part_name(enum ky_chain_part part);

#endif
