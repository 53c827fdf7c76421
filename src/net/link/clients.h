/* SPDX-License-Identifier: MIT */
/*
 * The connections of a server: clients come through ports, are read in turns, and lose their place when they are
 * silent for too long. What a client sends goes to the calls of its port, in any pieces.
 *
 *	ky_clients_init(&clients, &options, err);
 *	ky_clients_listen(&clients, fd, &calls, owner, NULL, err);
 *	...
 *	ky_clients_fini(&clients);
 *
 * All clients share one buffer for what comes in. An error of a call costs only that connection. A call that finds that its
 * client's turn is over keeps the rest of the data for the next turn.
 *
 * Threads: one.
 */
#ifndef KY_NET_LINK_CLIENTS_H
#define KY_NET_LINK_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "base/vec.h"
#include "net/link/link.h"
#include "os/event-loop.h"

struct ky_client;

/* How a port serves its clients. Calls that are optional may be NULL. */
struct ky_client_calls {
	size_t struct_bytes; /* of the struct that begins with struct ky_client; it starts as zeros */
	/* The client has connected. Optional. */
	int (*begin)(struct ky_client *client, struct kymo_error *err);
	/*
	 * Data has come. An error ends the connection. Where the work for a few bytes can take long, the call asks
	 * ky_client_is_over_time() after each piece of work, and gives what is left to ky_client_keep().
	 */
	int (*take)(struct ky_client *client, const uint8_t *data, size_t bytes,
		    struct kymo_error *err);
	/* The client has no more data at present, or other clients get their turn. An error ends the connection. Optional. */
	int (*rest)(struct ky_client *client, struct kymo_error *err);
	/* Tells the client why its connection ends. Optional. */
	void (*refuse)(struct ky_client *client, const struct kymo_error *err);
	/*
	 * The client has set is_leaving in a call: takes over the link. Then the client ends
	 * without a message. Optional.
	 */
	void (*leave)(struct ky_client *client, struct ky_link *link);
	/* The connection ends: frees what the struct owns, but neither the struct nor the link. */
	void (*end)(struct ky_client *client);
	/* For messages. */
	const char *(*name)(const struct ky_client *client);
	/* Why a connection that the client has closed has ended; NULL: no reason; "": no message. Optional. */
	const char *(*ending)(const struct ky_client *client);
	/*
	 * How long the client may be silent now, in s; 0: for any time. *since_begin, false before the call: the time since
	 * the client has connected counts instead, so that a greeting cannot come byte by byte.
	 */
	int (*patience_s)(const struct ky_client *client, bool *since_begin);
	/*
	 * The clients connect again by themselves, and continue. So KYMO_E_AGAIN of take() is not told to them: descriptors are
	 * short at present.
	 */
	bool comes_again;
	/*
	 * A client that sends much wakes the server when many bytes are there, or after KY_CLIENTS_GATHER_NS: each turn then has
	 * more to do. Nobody waits for answers to a part of what such clients send.
	 */
	bool gathers;
	/* How many bytes the next read takes best, @most at most; of clients that gather, only while they do. Optional. */
	size_t (*best_bytes)(const struct ky_client *client, size_t most);
	/*
	 * Of clients that come again: how many descriptors the client's files take. When descriptors are short, the one with the
	 * most loses its connection for a while. Optional.
	 */
	size_t (*files)(const struct ky_client *client);
};

struct ky_clients;

/* How much later data may be read. */
#define KY_CLIENTS_GATHER_NS UINT64_C(20000000)

/* The beginning of each client's struct. */
struct ky_client {
	const struct ky_client_calls *calls;
	struct ky_clients *clients;
	void *owner; /* as ky_clients_listen() got it */
	struct ky_link *link;
	struct ky_loop_source *source;
	int64_t begun_s, heard_s; /* CLOCK_MONOTONIC */
	uint64_t number;	  /* a client that has come later has a higher one */
	int64_t turn_end_ns;	  /* of the present turn */
	int64_t period_ns;	  /* begin of the time for which turns are counted */
	unsigned int n_turns;	  /* since then */
	bool is_gathering; /* the server looks at it when there is much data, or at the timer */
	bool has_sent;	   /* since the last look */
	bool has_much;	   /* the same: as much as a turn takes */
	bool is_drained;   /* the last read has taken all that was there */
	uint8_t *kept;	   /* data for the next turn; NULL: none */
	size_t kept_bytes;
	bool is_only;	 /* the loop ends with it */
	bool is_leaving; /* its link goes to calls->leave() */
};

struct ky_clients_port;

struct ky_clients {
	struct ky_loop *loop;
	const struct ky_log *log;
	unsigned int max;
	uint64_t n_added;
	int64_t swept_s;	 /* CLOCK_MONOTONIC time of the last look for silent clients */
	uint8_t *buffer, *spare; /* the latter for ky_client_read(); NULL: not needed yet */
	struct ky_loop_source *timer, *pause_timer, *turn_timer, *gather_timer;
	bool gather_is_due; /* its timer is set */
	size_t n_gathering; /* clients that the timer looks at */
	bool is_short;	    /* of descriptors or memory: the log has it */
	KY_VEC(struct ky_link *)
	pausing; /* of clients that come again; closed with the pause's end */
	KY_VEC(struct ky_client *) list;
	KY_VEC(struct ky_clients_port *) ports;
};

/*
 * At most @max clients at a time. When there are more, the one that has waited longest without a greeting (since_begin of
 * patience_s()) loses its place; when all have greeted, the new one does. @loop and @log must outlive the struct. KYMO_E_IO,
 * KYMO_E_MEMORY.
 */
int ky_clients_init(struct ky_clients *clients, struct ky_loop *loop, const struct ky_log *log,
		    unsigned int max, struct kymo_error *err);
/* Ends all connections, and closes the ports. A zeroed struct is allowed. */
void ky_clients_fini(struct ky_clients *clients);

/*
 * Takes clients from the socket @fd, which listens; takes it over, on failure, too. @tls: NULL: without
 * TLS; it must outlive the clients, as @owner and @calls must. KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_clients_listen(struct ky_clients *clients, int fd, const struct ky_client_calls *calls,
		      void *owner, struct ky_tls *tls, struct kymo_error *err);
/*
 * Adds a client whose data comes from @in_fd, with answers to @out_fd; takes both over, on failure,
 * too. @is_only: the loop ends with this client. KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_clients_add(struct ky_clients *clients, int in_fd, int out_fd,
		   const struct ky_client_calls *calls, void *owner, struct ky_tls *tls,
		   bool is_only, struct kymo_error *err);

/* Whether others are to get their turn. */
bool ky_client_is_over_time(const struct ky_client *client);
/* In calls->take(): the next turn begins with these bytes, which are the rest of the call's data. KYMO_E_MEMORY. */
int ky_client_keep(struct ky_client *client, const uint8_t *data, size_t bytes,
		   struct kymo_error *err);

/* Ends the connection and frees the client. Not for a client whose call is running: it returns an error. */
void ky_client_drop(struct ky_client *client);

/*
 * Reads what @client has sent, from within a call of another client: a turn, or one read. The client may be gone
 * afterwards. Not from within such a read. KYMO_E_MEMORY.
 */
int ky_client_read(struct ky_client *client, bool is_turn, struct kymo_error *err);

#endif
