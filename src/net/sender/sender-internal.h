/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of sender.h: the sender with its queue (sender-queue.c), its connection (sender-connection.c) and its
 * thread (sender.c).
 *
 * Threads: "the thread's" is for the sender's own thread; "under the lock" is for any thread that holds sender->lock.
 */
#ifndef KY_NET_SENDER_SENDER_INTERNAL_H
#define KY_NET_SENDER_SENDER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "net/protocol/answer-reader.h"
#include "net/sender/sender.h"
#include "net/sender/spill.h"

/* For the relay's answer through ssh: the user may have to enter a password. */
#define KY_SENDER_SSH_MS 60000
/* The most that the fixed part of a frame has. */
#define KY_SENDER_FIXED_MAX 96

/* A frame in the queue. */
struct ky_sender_entry {
	struct ky_sender_entry *next;
	struct ky_frame frame;
	uint32_t head_bytes; /* of the frame's head and its fixed part */
	uint8_t head[KY_FRAME_HEAD_BYTES + KY_SENDER_FIXED_MAX];
	size_t bytes, capacity; /* of data */
	uint8_t data[];
};

struct ky_sender {
	struct ky_sender_options options;
	char *host, *token, *ssh_dir, *spill_dir;
	pid_t ssh; /* 0: none runs */
	uint8_t session[16];
	int wake_fd, readers_fd;
	pthread_t thread;
	bool has_thread;

	/* The thread's own. */
	struct ky_link *link; /* NULL: not connected */
	uint64_t sent_bytes;  /* of the entry at `next` */
	struct ky_answer_reader answers;
	bool is_welcome;	 /* the relay has answered the greeting */
	bool is_first;		 /* it connects for the first time, without the thread */
	int64_t tell_ms;	 /* when the user learns that it waits; 0: not */
	int errnum;		 /* why the last connection failed; 0: for good */
	int patience_ms;	 /* for the answer to the greeting when it connects again */
	uint64_t told_features;	 /* what it said before that */
	int64_t acknowledged_ms; /* CLOCK_MONOTONIC */
	int backoff_ms;

	/* The thread stores, any thread loads: atomic. */
	uint64_t features; /* of the relay */
	uint32_t delay_ms; /* that readers want; 0: there are none */

	pthread_mutex_t lock; /* of the following */
	pthread_cond_t changed;
	/*
	 * The queue, in the order of the frames: entries in memory, the spill file, and entries that are
	 * newer than the file because it has no room.
	 */
	struct ky_sender_entry *first, *last;
	struct ky_sender_entry *next; /* the first that is not sent yet */
	struct ky_spill spill;
	struct ky_sender_entry *late_first, *late_last;
	uint64_t late_bytes;
	struct ky_sender_entry *spare;
	size_t spare_bytes;
	uint64_t queued_bytes; /* in memory */
	uint64_t number;       /* of the next numbered frame */
	uint64_t acknowledged; /* the relay wants this one next */
	uint64_t sent;	 /* the first that the relay does not have whole, by this connection */
	bool is_waiting; /* the thread sleeps, and has nothing to send */
	bool is_ending;	 /* somebody waits for the last acknowledgement */
	bool stops;
	int failed; /* no frame is taken any more: a negative status */
	struct kymo_error err;
};

/* The session has failed for good, for reason @err. Only the first reason counts. Any thread. */
void ky_sender_fail(struct ky_sender *sender, const struct kymo_error *err);

/* ---- the queue ------------------------------------------------------------------------ */

/* An entry with room for @bytes of data; NULL: no memory. Any thread. */
struct ky_sender_entry *ky_sender_entry_new(struct ky_sender *sender, size_t bytes);
/* Puts a new frame behind all others, wherever these are; one that is no definition gets its number. Under the lock. */
void ky_sender_enqueue(struct ky_sender *sender, struct ky_sender_entry *entry);
/* Whether the queue has room for frames of the spill file. The thread's. */
bool ky_sender_can_refill(struct ky_sender *sender);
/*
 * Takes frames out of the spill file, as far as there is room in memory, but not too many at a time. A negative errno: the file
 * cannot be read, and the session has failed. The thread's.
 */
int ky_sender_refill(struct ky_sender *sender);
/* The bytes that are to be sent next, from several entries. Returns the number of parts, @max at most. The thread's. */
int ky_sender_collect(struct ky_sender *sender, struct iovec *parts, int max);
/* So many bytes more are sent. The thread's. */
void ky_sender_advance(struct ky_sender *sender, uint64_t bytes);
/* Whether the relay can have carried out all frames before @number: it has them whole. The thread's. */
bool ky_sender_has_sent(struct ky_sender *sender, uint64_t number);
/* The relay has carried out all frames before @number. The thread's. */
void ky_sender_acknowledge(struct ky_sender *sender, uint64_t number);
/* Frees all entries. No other thread uses the sender. */
void ky_sender_free_queue(struct ky_sender *sender);

/* ---- the connection ------------------------------------------------------------------- */

/*
 * Connects and greets the relay until @end_ms (CLOCK_MONOTONIC) at most. KYMO_E_IO: it failed, and sender->errnum says whether
 * another try makes sense. The thread's, or before it starts.
 */
int ky_sender_connect(struct ky_sender *sender, int64_t end_ms, struct kymo_error *err);
/* The first time: waits for the relay as the options say. KYMO_E_IO, KYMO_E_MEMORY. */
int ky_sender_connect_first(struct ky_sender *sender, struct kymo_error *err);
/* Ends the connection, if there is one. The thread's, or after its end. */
void ky_sender_disconnect(struct ky_sender *sender);
/* Takes what the relay has sent until now, but not without end. 0; a negative errno: the connection is of no use any more. The thread's. */
int ky_sender_receive(struct ky_sender *sender);
/* Sends as much as the relay takes. 1: it takes no more at present; 0: all is sent; a negative errno. The thread's. */
int ky_sender_send(struct ky_sender *sender);
/* Says that the recorder is alive. 0 or a negative errno. The thread's. */
int ky_sender_ping(struct ky_sender *sender);

#endif
