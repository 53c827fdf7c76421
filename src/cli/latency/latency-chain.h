/* SPDX-License-Identifier: MIT */
/* The real-time chain of kymo latency: what took long, with its parts. */
#ifndef KY_CLI_LATENCY_LATENCY_CHAIN_H
#define KY_CLI_LATENCY_LATENCY_CHAIN_H

#include "latency/layers/latency.h"

/* Print what the chain tells, as lines or as JSON, for a moment. 1: there is more; 0; KYMO_E_IO. */
int ky_chain_print(struct ky_chain *chain, bool json, struct kymo_error *err);

#endif
