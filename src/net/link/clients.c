/* SPDX-License-Identifier: MIT */
#include "net/link/clients-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "os/now.h"

/* A block of a file, and the heads of what comes in it. */
#define BUFFER_BYTES ((256u + 16u) << 10)
/* So often a client is read before the others get their turn. */
#define READS_AT_A_TIME 4
/* Nor does it get more time than that, apart from the end of what it has begun. */
#define TURN_NS 5000000
#define SWEEP_S 5
/* So many bytes wake the server before the timer does: a turn. */
#define GATHER_BYTES (int)(READS_AT_A_TIME * BUFFER_BYTES)
/* A client with so many turns in the time that data may wait is one that sends much. */
#define GATHER_TURNS 3

/* ---- clients come and go -------------------------------------------------------------- */

static void clients_note_gathering(struct ky_client *client, bool gathers)
{
	client->clients->n_gathering += (size_t)gathers - (size_t)client->is_gathering;
	client->is_gathering = gathers;
}

static void client_free(struct ky_client *client)
{
	clients_note_gathering(client, false);
	client->calls->end(client);
	ky_loop_remove(client->source);
	ky_link_free(client->link);
	free(client->kept);
	free(client);
}

void ky_client_drop(struct ky_client *client)
{
	struct ky_clients *clients = client->clients;
	size_t i = 0;

	while (clients->list.data[i] != client)
		i++;
	clients->list.data[i] = clients->list.data[--clients->list.len];
	client_free(client);
}

/* Returns what the loop's call is to return. */
static int clients_drop(struct ky_client *client)
{
	bool ends = client->is_only;

	ky_client_drop(client);
	return ends ? KY_LOOP_END : KYMO_OK;
}

/*
 * The client's files are closed now, its connection a little later, so that it does not come again at once. Returns what
 * the loop's call is to return.
 */
static int drop_for_a_while(struct ky_client *client, const struct kymo_error *err)
{
	struct ky_clients *clients = client->clients;

	if (!clients->pausing.len) {
		ky_log_warning(clients->log, "%s: has to wait: %s%s%s", client->calls->name(client),
			       err->path, err->path[0] ? ": " : "", err->message);
		ky_loop_set_timer(clients->pause_timer, KY_CLIENTS_PAUSE_NS);
	}
	ky_loop_remove(client->source);
	client->source = NULL;
	if (ky_vec_push(&clients->pausing, client->link) == 0)
		client->link = NULL;
	return clients_drop(client);
}

static size_t clients_files_of(const struct ky_client *client)
{
	return client->calls->files && !client->is_only ? client->calls->files(client) : 0;
}

/* Whether files take more than the part of the descriptors that connections leave to them. */
static bool are_files_many(size_t n_files)
{
	struct rlimit limit = {0};

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && n_files > limit.rlim_cur / 4;
}

/* One client cannot have so many files that others get none: not when others want some. */
void ky_clients_drop_greediest(struct ky_clients *clients, size_t more_than)
{
	struct ky_client *greediest = NULL;
	struct kymo_error err;
	size_t n_files = 0;

	ky_vec_foreach(&clients->list, it) {
		n_files += clients_files_of(*it);
		if (clients_files_of(*it) <= more_than)
			continue;
		greediest = *it;
		more_than = clients_files_of(*it);
	}
	if (!greediest || !are_files_many(n_files))
		return;
	(void)ky_error_set(&err, KYMO_E_AGAIN, "it has %zu open files while others want some",
			   more_than);
	(void)drop_for_a_while(greediest, &err);
}

static int drop_with(struct ky_client *client, const struct kymo_error *err)
{
	struct ky_clients *clients = client->clients;
	size_t n_files = clients_files_of(client);
	int ret;

	if (err->code == KYMO_E_AGAIN && client->calls->comes_again && !client->is_only) {
		ret = drop_for_a_while(client, err);
		ky_clients_drop_greediest(
			clients, n_files > KY_CLIENTS_FILES_FEW ? n_files : KY_CLIENTS_FILES_FEW);
		return ret;
	}
	ky_log_warning(client->clients->log, "%s: the connection ends: %s%s%s",
		       client->calls->name(client), err->path, err->path[0] ? ": " : "",
		       err->message);
	if (client->calls->refuse)
		client->calls->refuse(client, err);
	return clients_drop(client);
}

static int clients_leave(struct ky_client *client)
{
	struct ky_link *link = client->link;

	client->link = NULL;
	ky_loop_remove(client->source);
	client->source = NULL;
	client->calls->leave(client, link);
	return clients_drop(client);
}

static void log_end(const struct ky_client *client, int errnum)
{
	const char *ending = client->calls->ending ? client->calls->ending(client) : NULL;

	if (ending && !*ending)
		return;
	ky_log_info(client->clients->log, "%s: %s", client->calls->name(client),
		    ending   ? ending
		    : errnum ? strerror(errnum)
			     : "the connection ended");
}

/* ---- turns ---------------------------------------------------------------------------- */

bool ky_client_is_over_time(const struct ky_client *client)
{
	return ky_os_now_ns() >= client->turn_end_ns;
}

int ky_client_keep(struct ky_client *client, const uint8_t *data, size_t bytes,
		   struct kymo_error *err)
{
	client->kept = malloc(bytes);
	if (!client->kept)
		return ky_error_nomem(err);
	memcpy(client->kept, data, bytes);
	client->kept_bytes = bytes;
	/* The kernel does not tell of data that has been read. */
	ky_loop_set_timer(client->clients->turn_timer, 1);
	return KYMO_OK;
}

/* Data of the client, of this turn or of the last one. *gone: the client is no more; then the result is the loop's. */
static int take_data(struct ky_client *client, const uint8_t *data, size_t bytes, bool *gone)
{
	struct kymo_error err = {.code = KYMO_OK};
	int ret = client->calls->take(client, data, bytes, &err);

	*gone = true;
	if (ret < 0)
		return drop_with(client, &err);
	if (client->is_leaving)
		return clients_leave(client);
	*gone = false;
	return KYMO_OK;
}

static int take_kept(struct ky_client *client, bool *gone)
{
	uint8_t *kept = client->kept;
	int ret;

	client->kept = NULL;
	ret = take_data(client, kept, client->kept_bytes, gone);
	free(kept);
	return ret;
}

static void gather_again(struct ky_clients *clients)
{
	if (clients->gather_is_due)
		return;
	clients->gather_is_due = true;
	ky_loop_set_timer(clients->gather_timer, KY_CLIENTS_GATHER_NS);
}

/* The kernel also wakes the server at the connection's end, and when its own buffer is nearly full. */
static void set_gathering(struct ky_client *client, bool gathers)
{
	int bytes = gathers ? GATHER_BYTES : 1, fd = ky_link_in_fd(client->link);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes)) < 0)
		return;
	clients_note_gathering(client, gathers);
	if (gathers)
		gather_again(client->clients);
}

static void count_turn(struct ky_client *client)
{
	int64_t now = client->turn_end_ns - TURN_NS;

	if (now - client->period_ns >= (int64_t)KY_CLIENTS_GATHER_NS) {
		client->period_ns = now;
		client->n_turns = 0;
	}
	if (++client->n_turns == GATHER_TURNS && !client->is_gathering &&
	    ky_client_has_greeted(client))
		set_gathering(client, true);
}

/* The numbers behind it come from the network: the buffer is the limit in any case. */
static size_t clients_best_bytes(const struct ky_client *client)
{
	bool is_in_blocks = client->is_gathering || !client->calls->gathers;
	size_t best = is_in_blocks && client->calls->best_bytes
			      ? client->calls->best_bytes(client, BUFFER_BYTES)
			      : BUFFER_BYTES;

	return best && best < BUFFER_BYTES ? best : BUFFER_BYTES;
}

/* One read. *is_full: there may be more; then the result is 0. Otherwise it is the loop's, and the client may be *gone. */
static int clients_read_some(struct ky_client *client, uint8_t *buffer, bool *is_full, bool *gone)
{
	size_t wanted = clients_best_bytes(client);
	ssize_t got = ky_link_receive(client->link, buffer, wanted);
	int ret;

	*is_full = false;
	client->is_drained = got != (ssize_t)wanted;
	if (got == -EAGAIN)
		return KYMO_OK;
	if (got <= 0) {
		log_end(client, (int)-got);
		*gone = true;
		return clients_drop(client);
	}
	client->heard_s = ky_os_now_s();
	client->has_sent = true;
	ret = take_data(client, buffer, (size_t)got, gone);
	*is_full = !*gone && !client->kept && (size_t)got == wanted;
	return ret;
}

/* A look at the only one that gathers is needed later, when a turn was a whole one. */
static void note_much(struct ky_client *client, bool has_much)
{
	bool is_only = client->is_gathering && client->clients->n_gathering == 1;

	client->has_much = has_much && !is_only;
	if (has_much && is_only)
		ky_loop_set_timer(client->clients->gather_timer, KY_CLIENTS_GATHER_NS);
}

/* The turn is over. Returns what the loop's call is to return, @ret unless the client is gone. */
static int clients_rest(struct ky_client *client, int ret)
{
	struct kymo_error err = {.code = KYMO_OK};

	if (!client->calls->rest || client->calls->rest(client, &err) == KYMO_OK)
		return ret;
	return drop_with(client, &err);
}

/* Returns what the loop's call is to return: the client may be gone. */
static int read_client(struct ky_client *client, uint8_t *buffer, int reads)
{
	bool gone = false, is_full = true;
	int ret = KYMO_OK;

	client->turn_end_ns = ky_os_now_ns() + TURN_NS;
	if (client->kept)
		ret = take_kept(client, &gone);
	for (int i = 0; i < reads && is_full && !gone && !client->kept; i++)
		ret = clients_read_some(client, buffer, &is_full, &gone);
	if (gone)
		return ret;
	note_much(client, is_full && !client->kept);
	if (client->calls->gathers)
		count_turn(client);
	return clients_rest(client, ret);
}

/* The next turn of clients that have kept data. */
static int clients_take_turns(void *data, struct kymo_error *err)
{
	struct ky_clients *clients = data;
	int ret = KYMO_OK;

	(void)err;
	ky_loop_set_timer(clients->turn_timer, 0);
	/* The turn of one may end others. */
	for (size_t i = clients->list.len; i-- > 0 && !ret;)
		if (i < clients->list.len && clients->list.data[i]->kept)
			ret = read_client(clients->list.data[i], clients->buffer, READS_AT_A_TIME);
	return ret;
}

/*
 * What has come since from one that sends much. One that has sent nothing lately wakes the server again with any byte. What
 * a whole turn has left comes with the next turn, or with the next look.
 */
static int clients_look(struct ky_client *client)
{
	struct ky_clients *clients = client->clients;

	if (!client->has_sent) {
		set_gathering(client, false);
		return KYMO_OK;
	}
	gather_again(clients);
	if (client->has_much) {
		client->has_much = false;
		return KYMO_OK;
	}
	client->has_sent = false;
	return client->kept ? KYMO_OK : read_client(client, clients->buffer, READS_AT_A_TIME);
}

static int clients_take_gathered(void *data, struct kymo_error *err)
{
	struct ky_clients *clients = data;
	int ret = KYMO_OK;

	(void)err;
	ky_loop_set_timer(clients->gather_timer, 0);
	clients->gather_is_due = false;
	/* The turn of one may end others. */
	for (size_t i = clients->list.len; i-- > 0 && !ret;)
		if (i < clients->list.len && clients->list.data[i]->is_gathering)
			ret = clients_look(clients->list.data[i]);
	return ret;
}

static int take_client(void *data, struct kymo_error *err)
{
	struct ky_client *client = data;

	(void)err;
	/* Its next turn comes with those of the others. */
	return client->kept ? KYMO_OK
			    : read_client(client, client->clients->buffer, READS_AT_A_TIME);
}

int ky_client_read(struct ky_client *client, bool is_turn, struct kymo_error *err)
{
	struct ky_clients *clients = client->clients;

	if (!clients->spare)
		clients->spare = malloc(BUFFER_BYTES);
	if (!clients->spare)
		return ky_error_nomem(err);
	(void)read_client(client, clients->spare, is_turn ? READS_AT_A_TIME : 1);
	return KYMO_OK;
}

bool ky_client_has_greeted(const struct ky_client *client)
{
	bool since_begin = false;

	(void)client->calls->patience_s(client, &since_begin);
	return client->is_only || !since_begin;
}

int ky_clients_add(struct ky_clients *clients, int in_fd, int out_fd,
		   const struct ky_client_calls *calls, void *owner, struct ky_tls *tls,
		   bool is_only, struct kymo_error *err)
{
	struct ky_client *client = calloc(1, calls->struct_bytes);
	int ret;

	if (!client) {
		close(in_fd);
		if (out_fd != in_fd)
			close(out_fd);
		return ky_error_nomem(err);
	}
	client->calls = calls;
	client->clients = clients;
	client->owner = owner;
	client->number = ++clients->n_added;
	client->is_only = is_only;
	client->begun_s = client->heard_s = ky_os_now_s();
	ret = ky_link_new(in_fd, out_fd, &client->link, err);
	if (!ret && tls)
		ret = ky_link_use_tls(client->link, tls, err);
	if (!ret && calls->begin)
		ret = calls->begin(client, err);
	if (!ret)
		ret = ky_loop_add(clients->loop, in_fd, take_client, client, &client->source, err);
	if (!ret && ky_vec_push(&clients->list, client) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0)
		client_free(client);
	return ret;
}

/* ---- time ------------------------------------------------------------------------------ */

/* Clients that say nothing do not keep their place. */
static int clients_sweep(void *data, struct kymo_error *err)
{
	struct ky_clients *clients = data;
	int64_t now = ky_os_now_s();
	/* Without a CPU for long, the relay has not heard what they have said: it listens first. */
	bool is_late = now - clients->swept_s > 2 * SWEEP_S;

	(void)err;
	clients->swept_s = now;
	for (size_t i = is_late ? 0 : clients->list.len; i-- > 0;) {
		/* The end of one may end others, too. */
		struct ky_client *client = i < clients->list.len ? clients->list.data[i] : NULL;
		bool since_begin = false;
		int patience = client && !client->is_only
				       ? client->calls->patience_s(client, &since_begin)
				       : 0;

		if (!patience ||
		    now - (since_begin ? client->begun_s : client->heard_s) <= patience)
			continue;
		ky_log_info(clients->log, "%s: silent for too long", client->calls->name(client));
		ky_client_drop(client);
	}
	ky_loop_set_timer(clients->timer, UINT64_C(1000000000) * SWEEP_S);
	return KYMO_OK;
}

int ky_clients_init(struct ky_clients *clients, struct ky_loop *loop, const struct ky_log *log,
		    unsigned int max, struct kymo_error *err)
{
	int ret;

	*clients =
		(struct ky_clients){.loop = loop, .log = log, .max = max, .swept_s = ky_os_now_s()};
	clients->buffer = malloc(BUFFER_BYTES);
	if (!clients->buffer)
		return ky_error_nomem(err);
	ret = ky_loop_add_timer(loop, clients_sweep, clients, &clients->timer, err);
	if (!ret)
		ret = ky_loop_add_timer(loop, ky_clients_end_pause, clients, &clients->pause_timer,
					err);
	if (!ret)
		ret = ky_loop_add_timer(loop, clients_take_turns, clients, &clients->turn_timer,
					err);
	if (!ret)
		ret = ky_loop_add_timer(loop, clients_take_gathered, clients,
					&clients->gather_timer, err);
	if (!ret)
		ky_loop_set_timer(clients->timer, UINT64_C(1000000000) * SWEEP_S);
	return ret;
}

void ky_clients_fini(struct ky_clients *clients)
{
	while (clients->list.len)
		ky_client_drop(clients->list.data[0]);
	ky_vec_fini(&clients->list);
	ky_clients_close_ports(clients);
	ky_loop_remove(clients->timer);
	ky_loop_remove(clients->pause_timer);
	ky_loop_remove(clients->turn_timer);
	ky_loop_remove(clients->gather_timer);
	free(clients->buffer);
	free(clients->spare);
	*clients = (struct ky_clients){0};
}
