/* SPDX-License-Identifier: MIT */
/* What the files of daemon-policies.h share. */
#ifndef KY_CLI_RECORDING_DAEMON_POLICIES_INTERNAL_H
#define KY_CLI_RECORDING_DAEMON_POLICIES_INTERNAL_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/daemon/daemon-policies.h"
#include "cli/daemon/policy.h"
#include "os/accept-socket.h"
#include "record/control/daemon-request.h"
#include "record/control/daemon-socket.h"

struct ky_policy_client;

enum ky_policy_state {
	KY_POLICY_STARTS,
	KY_POLICY_RUNS,
	KY_POLICY_ENDS, /* the recorder has been told to end */
	KY_POLICY_HAS_ENDED,
};

/* A recording, until its user has fetched it. */
struct ky_policy_recording {
	struct ky_policies *policies;
	enum ky_policy_state state;
	uid_t uid;
	char policy[KY_POLICY_NAME_MAX + 1], name[65];
	char *path;   /* the directory: trace, log; snapshot, snapshot-log */
	pid_t pid;    /* of the recorder; 0: none runs */
	int ready_fd; /* the recorder says that it records; -1: it has */
	struct ky_loop_source *ready, *child;
	uint64_t max_bytes, duration_ns;
	int64_t ended_s; /* CLOCK_MONOTONIC */
	int exit_status;
	bool is_fetched; /* a client has the files in work */
	pid_t snapshot_pid;
	struct ky_loop_source *snapshot_child;
	struct ky_policy_client *snapshot_client;
};

enum ky_policy_wait {
	KY_POLICY_IDLE,	      /* for a request */
	KY_POLICY_FOR_START,  /* for the begin of the client's recording */
	KY_POLICY_FOREGROUND, /* the recording ends with the connection */
	KY_POLICY_FOR_END,
	KY_POLICY_FOR_SNAPSHOT,
	KY_POLICY_FOR_STATUS, /* for the recorder's answer */
	KY_POLICY_FETCHES,
};

struct ky_policy_client {
	struct ky_policies *policies;
	int fd;
	struct ky_loop_source *source;
	uid_t uid;
	enum ky_policy_wait wait;
	bool in_background;
	struct ky_policy_recording *recording; /* what it waits for */
	int64_t until_s; /* CLOCK_MONOTONIC: then the daemon drops it; 0: never */
	int status_fd;	 /* to the recorder; -1: none */
	struct ky_loop_source *status;
	/* The files that it fetches. */
	int root_fd; /* -1: none */
	bool is_snapshot;
	KY_VEC(char *) files;
	size_t next;
};

struct ky_policies {
	struct ky_policies_options options;
	struct ky_accept_socket listener;
	bool ends;
	struct ky_loop_source *listen, *timer;
	KY_VEC(struct ky_policy_client *) clients;
	KY_VEC(struct ky_policy_recording *) recordings;
};

/* Looks at sizes, times and silent clients soon. */
void ky_policies_look_soon(struct ky_policies *policies);

/* ---- daemon-recordings.c: recordings and their processes ------------------------------------- */

/* What earlier daemons have left for their users. */
void ky_policy_recordings_find(struct ky_policies *policies);
/*
 * Starts a recording for user @uid. Its callbacks go to ky_policy_has_begun() and ky_policy_has_ended(). KYMO_E_STATE: there are
 * too many; KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_policy_recording_start(struct ky_policies *policies, const struct ky_policy *policy,
			      const char *name, uid_t uid, uint64_t duration_ns, bool own,
			      struct ky_policy_recording **recording, struct kymo_error *err);
/* The recorder gets a signal to end, once. */
void ky_policy_recording_end(struct ky_policy_recording *recording);
/* Writes a snapshot; ky_policy_has_snapshot() follows. KYMO_E_STATE: one is in work. */
int ky_policy_recording_snapshot(struct ky_policy_recording *recording,
				 struct ky_policy_client *client, struct kymo_error *err);
/* Removes the directory of the snapshot. */
void ky_policy_snapshot_remove(struct ky_policy_recording *recording);
/* Removes its files, and forgets it. */
void ky_policy_recording_remove(struct ky_policy_recording *recording);
void ky_policy_recording_free(struct ky_policy_recording *recording);
/* Ends what is too large; removes what no caller has fetched. */
void ky_policy_recordings_look(struct ky_policies *policies);
bool ky_policy_is_active(const struct ky_policy_recording *recording);
/* The end of a log of @recording ("log", "snapshot-log"). */
void ky_policy_log(const struct ky_policy_recording *recording, const char *name,
		   struct ky_strbuf *text);

/* ---- daemon-clients.c ------------------------------------------------------------------------ */

/* How long a client may be silent before its request. */
#define KY_POLICY_SILENCE_S 10

/* Ends the connection and frees @client: a recording in the foreground ends, files are free for the next client. */
void ky_policy_client_drop(struct ky_policy_client *client);
/* A client that does not take its answer is dropped. Returns false: @client is gone. */
bool ky_policy_client_answer(struct ky_policy_client *client,
			     const struct ky_control_socket_message *message);
/* Answers with the error, and drops @client. */
void ky_policy_client_refuse(struct ky_policy_client *client, const struct kymo_error *err);
/* @client waits for this now, and may be silent for @silence_s; 0: for ever. */
void ky_policy_client_wait(struct ky_policy_client *client, enum ky_policy_wait wait,
			   int silence_s);
/* The recorder that @client has asked is asked no longer. */
void ky_policy_client_end_status(struct ky_policy_client *client);
void ky_policy_add_number(struct ky_control_socket_message *message, uint64_t number);

/* ---- daemon-requests.c ----------------------------------------------------------------------- */

/* For ky_loop_add(): the client @data has sent something, or has gone. */
int ky_policy_take_client(void *data, struct kymo_error *err);

/* ---- daemon-hand-over.c: what happens to recordings, for clients ------------------------------ */

/* The files of the client's recording, which has ended: @client asks for them one by one from now on. May drop @client. */
void ky_policy_hand_over(struct ky_policy_client *client);
/* The client asks for the next file, or it has them all: then the recording goes. May drop @client. */
void ky_policy_take_fetch(struct ky_policy_client *client, enum ky_daemon_request_kind kind);

void ky_policy_has_begun(struct ky_policy_recording *recording);
/* May remove the recording. Returns what the loop's call is to return. */
int ky_policy_has_ended(struct ky_policy_recording *recording, bool had_begun);
void ky_policy_has_snapshot(struct ky_policy_recording *recording, struct ky_policy_client *client,
			    bool is_whole);
/* The recording goes: its clients, too. */
void ky_policy_drop_clients(const struct ky_policy_recording *recording);

/* ---- daemon-fetch.c: the files of a recording, for its user ---------------------------------- */

/* Collects what is below @directory. KYMO_E_IO, KYMO_E_LIMIT, KYMO_E_MEMORY. */
int ky_policy_fetch_begin(struct ky_policy_client *client, const char *directory,
			  struct kymo_error *err);
/* Sends the next file, or that there are no more. A negative errno: the client is of no use. */
int ky_policy_fetch_next(struct ky_policy_client *client);
void ky_policy_fetch_end(struct ky_policy_client *client);
/* What the files below @directory take. */
uint64_t ky_policy_tree_bytes(const char *directory);

#endif
