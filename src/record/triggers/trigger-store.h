/* SPDX-License-Identifier: MIT */
/*
 * The source of a trigger's events: a packet store that keeps nothing. A session of the kernel or
 * of programs writes the few events that its filters let pass into the store, which decodes them,
 * evaluates the condition's filters and keys, and hands them on in the order of time.
 *
 * The session must find live readers, so that it writes events at once. The store always has one.
 *
 * Threads: as packet-store.h; `take` is called by one thread at a time per store.
 */
#ifndef KY_RECORD_TRIGGERS_TRIGGER_STORE_H
#define KY_RECORD_TRIGGERS_TRIGGER_STORE_H

#include "base/log.h"
#include "ctf/decode/decode.h"
#include "record/triggers/trigger-rule.h"
#include "store/packets/packet-store.h"

struct ky_trigger_store_options {
	const struct ky_trigger_condition *condition; /* must outlive the store */
	bool of_programs;	  /* the condition's events of programs, or of the kernel */
	const struct ky_log *log; /* may be NULL */
	/* @is_second: the event is condition->second, not ->first; @key: a hash of the keys' values. */
	void (*take)(void *data, const struct ky_event *event, bool is_second, uint64_t key);
	void *data;
};

/* KYMO_E_MEMORY. The caller frees the store with ky_store_free(). */
int ky_trigger_store_open(const struct ky_trigger_store_options *options,
			  struct ky_packet_store **store, struct kymo_error *err);
/*
 * The first error in the condition's filters and keys, for the traces so far: KYMO_E_INVALID with
 * the column. 0: none.
 */
int ky_trigger_store_check(struct ky_packet_store *store, struct kymo_error *err);

#endif
