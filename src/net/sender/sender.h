/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of a session with a relay: a queue of frames, and a thread that sends them. A
 * frame stays in the queue until the relay has acknowledged it. When the connection breaks, the
 * thread connects again and continues where the relay needs it. When the queue's memory is full,
 * further frames go to the spill file (net/sender/spill.h), if there is one, and from there into the queue.
 *
 * Threads: any, except where a function says otherwise.
 */
#ifndef KY_NET_SENDER_SENDER_H
#define KY_NET_SENDER_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "net/link/address.h"
#include "net/protocol/frame.h"
#include "store/packets/packet-store.h"

struct ky_sender_options {
	struct ky_net_address address;
	const char *host;     /* the name of this machine; not longer than 200 bytes */
	const char *token;    /* NULL: none */
	struct ky_tls *tls;   /* NULL: without TLS; must outlive the sender */
	const char *ssh_dir;  /* not NULL: address.host is reached by ssh, and has this directory */
	uint64_t queue_bytes; /* how much may wait in memory; 0: 64 MiB */
	uint64_t spill_bytes; /* how much more may wait in a file without a name; 0: nothing */
	const char *spill_dir;	  /* where that file is; NULL: $TMPDIR, /var/tmp or /tmp */
	const struct ky_log *log; /* may be NULL; must outlive the sender; any thread */
	uint64_t wait_ms;	  /* at the start, for the relay's answer; 0: KY_SENDER_WAIT_MS */
	bool waits_for_relay;	  /* so long also for one that does not run yet */
	bool (*gives_up)(void);	  /* asked while it waits at the start; may be NULL */
};

/* A relay that runs may be busy with many others: the answer of one of 200 on a small machine takes seconds. */
#define KY_SENDER_WAIT_MS 30000

struct ky_sender;

/*
 * Connects to the relay and begins a session, within options->wait_ms; a connection that breaks is tried again a few
 * times. The options' texts are copied. KYMO_E_IO: no relay answers, or it refuses; KYMO_E_MEMORY.
 */
int ky_sender_open(const struct ky_sender_options *options, struct ky_sender **sender,
		   struct kymo_error *err);

/*
 * Puts a frame in the queue: its head (number is set here), a fixed part of @fixed_bytes (96 at
 * most), and the bytes of @parts, which are copied. KYMO_E_MEMORY; KYMO_E_IO: the relay has refused
 * the session.
 */
struct ky_sender_part {
	const void *data;
	size_t bytes;
};
int ky_sender_put(struct ky_sender *sender, enum ky_frame_type type, uint32_t trace,
		  const void *fixed, size_t fixed_bytes, const struct ky_sender_part *parts,
		  unsigned int n_parts, struct kymo_error *err);

/* What waits for the relay. */
void ky_sender_backlog(struct ky_sender *sender, struct ky_store_backlog *backlog);

/* Whether the queue has so much that the caller should wait before it reads further events. */
bool ky_sender_is_full(struct ky_sender *sender);
/* The shortest delay that a live reader of the session at the relay wants, in ms; 0: no reader wants one. */
uint32_t ky_sender_readers_delay_ms(struct ky_sender *sender);
/* Becomes readable when the delay changes; its user clears it. The sender owns it. */
int ky_sender_readers_fd(struct ky_sender *sender);
/* The optional features (enum ky_net_feature) of the relay, as it was when the last connection began. */
uint64_t ky_sender_features(struct ky_sender *sender);

/*
 * The session is complete: waits until the relay has everything, while it makes progress; without
 * progress, for @patience_ms; in no case after @gives_up(), which may be NULL, has returned true. KYMO_E_IO: it does not have
 * everything. Once, one thread.
 */
int ky_sender_finish(struct ky_sender *sender, int patience_ms, bool (*gives_up)(void),
		     struct kymo_error *err);
/* Drops what is in the queue. NULL is allowed. One thread. */
void ky_sender_close(struct ky_sender *sender);

#endif
