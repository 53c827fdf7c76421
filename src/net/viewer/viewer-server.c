/* SPDX-License-Identifier: MIT */
#include "net/viewer/viewer-server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/protocol/frame.h"
#include "net/viewer/viewer-client-internal.h"
#include "os/accept-socket.h"
#include "os/now.h"

#define CLIENTS_MAX 1000
#define EVENTS	    64
/* How long a viewer may take to say its version, and to take an answer. */
#define GREETING_S 10
#define STUCK_S	   600
/* How long a viewer that watches no recording may send no request. */
#define IDLE_S 60
/* When descriptors are short, new viewers wait for so long. */
#define PAUSE_NS NS_PER_S
#define SWEEP_MS 1000
/* A viewer whose answer waits for a recorder is looked at so often. */
#define HELD_MS 20
/* How long a recorder may be away before its recording counts as complete. */
#define AWAY_S 60

#define NS_PER_S 1000000000

struct note {
	char *below;
	enum ky_viewer_recorder recorder;
	int64_t since_ns;
};

struct arrival {
	struct ky_link *link; /* NULL: none */
	uint32_t delay_ms;
};

struct ky_viewer_server {
	struct ky_viewer_server_options options;
	struct ky_viewer_hub hub; /* of the thread */
	pthread_t thread;
	int epoll_fd, wake_fd;
	struct ky_accept_socket listener;
	size_t n_turns, n_held; /* clients that wait for their turn, or for a recorder */
	int64_t swept_ns;
	bool is_short; /* the log has it */
	pthread_mutex_t lock;
	/* Under the lock: */
	bool stops;
	KY_VEC(struct arrival) arrived;
	KY_VEC(struct note) notes;
};

/* ---- what the relay knows of recorders ------------------------------------------------ */

static struct note *note_of(struct ky_viewer_server *server, const char *below)
{
	ky_vec_foreach(&server->notes, note)
		if (strcmp(note->below, below) == 0)
			return note;
	return NULL;
}

static enum ky_viewer_recorder recorder_of(struct ky_viewer_server *server, const char *below)
{
	enum ky_viewer_recorder recorder = KY_VIEWER_RECORDER_GONE;
	const struct note *note;

	pthread_mutex_lock(&server->lock);
	note = note_of(server, below);
	if (note && (note->recorder != KY_VIEWER_RECORDER_AWAY ||
		     ky_os_now_ns() - note->since_ns < (int64_t)AWAY_S * NS_PER_S))
		recorder = note->recorder;
	pthread_mutex_unlock(&server->lock);
	return recorder;
}

static void update(void *data, struct ky_viewer_recording *recording)
{
	enum ky_viewer_recorder recorder = recorder_of(data, recording->name);

	recording->is_connected = recorder == KY_VIEWER_RECORDER_HERE;
	recording->is_away = recorder == KY_VIEWER_RECORDER_AWAY;
}

static bool is_connected(void *data, const char *below)
{
	return recorder_of(data, below) != KY_VIEWER_RECORDER_GONE;
}

static void drop_note_if_old(struct ky_viewer_server *server, int64_t at, size_t i)
{
	const struct note *note = &server->notes.data[i];

	if (note->recorder != KY_VIEWER_RECORDER_AWAY ||
	    at - note->since_ns < (int64_t)AWAY_S * NS_PER_S)
		return;
	free(note->below);
	server->notes.data[i] = *ky_vec_last(&server->notes);
	server->notes.len--;
}

/* Recorders that stay away make room: nobody asks for them any more. */
static void drop_old_notes(struct ky_viewer_server *server, int64_t at)
{
	for (size_t i = server->notes.len; i-- > 0;)
		drop_note_if_old(server, at, i);
}

void ky_viewer_server_note(struct ky_viewer_server *server, const char *below,
			   enum ky_viewer_recorder recorder)
{
	struct note *note;

	pthread_mutex_lock(&server->lock);
	note = note_of(server, below);
	if (note && recorder == KY_VIEWER_RECORDER_GONE) {
		free(note->below);
		*note = *ky_vec_last(&server->notes);
		server->notes.len--;
	} else if (note) {
		note->recorder = recorder;
		note->since_ns = ky_os_now_ns();
	} else if (recorder != KY_VIEWER_RECORDER_GONE) {
		const struct note added = {strdup(below), recorder, ky_os_now_ns()};

		drop_old_notes(server, added.since_ns);
		if (!added.below || ky_vec_push(&server->notes, added) < 0)
			free(added.below);
	}
	pthread_mutex_unlock(&server->lock);
}

/* ---- clients -------------------------------------------------------------------------- */

static void viewer_server_drop(struct ky_viewer_server *server, struct ky_viewer_client *client,
			       const char *why)
{
	ky_log_info(server->options.log, "a viewer: %s", why);
	if (client->waits_turn)
		server->n_turns--;
	if (client->waits_time)
		server->n_held--;
	ky_viewer_client_free(client);
}

static void viewer_server_wait_for(struct ky_viewer_server *server, struct ky_viewer_client *client,
				   uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = client};
	int fd = ky_link_in_fd(client->link);

	if (client->events != events)
		(void)epoll_ctl(server->epoll_fd, client->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
				fd, &event);
	client->events = events;
}

static void viewer_server_step(struct ky_viewer_server *server, struct ky_viewer_client *client)
{
	int ret = ky_viewer_client_step(client, ky_os_now_ns());
	bool turn = ret == KY_VIEWER_WANTS_TURN, held = ret == KY_VIEWER_WANTS_TIME;

	if (ret < 0) {
		viewer_server_drop(server, client,
				   ret == -EPROTO
					   ? "the connection ends: it does not speak the protocol"
				   : ret == -ECONNRESET ? "gone"
							: strerror(-ret));
		return;
	}
	server->n_turns += (size_t)turn - (size_t)client->waits_turn;
	server->n_held += (size_t)held - (size_t)client->waits_time;
	client->waits_turn = turn;
	client->waits_time = held;
	viewer_server_wait_for(server, client,
			       ret == KY_VIEWER_WANTS_OUTPUT ? EPOLLOUT
			       : held ? EPOLLPRI | EPOLLET /* errors alone, once */
				      : EPOLLIN);
}

/* The viewer that has waited longest without saying its version; NULL: all have said it. */
static struct ky_viewer_client *find_silent(const struct ky_viewer_server *server)
{
	struct ky_viewer_client *oldest = NULL;

	ky_vec_foreach(&server->hub.clients, it)
		if (!(*it)->is_connected && (!oldest || (*it)->begun_ns < oldest->begun_ns))
			oldest = *it;
	return oldest;
}

/* Many that say nothing do not keep others out. False: there is no place. */
static bool viewer_server_make_room(struct ky_viewer_server *server)
{
	struct ky_viewer_client *silent;

	if (server->hub.clients.len < server->options.clients_max)
		return true;
	silent = find_silent(server);
	if (silent)
		viewer_server_drop(server, silent, "silent while others want its place");
	return silent != NULL;
}

static void take_link(struct ky_viewer_server *server, struct ky_link *link, bool is_strict,
		      uint32_t delay_ms)
{
	struct ky_viewer_client *client;
	struct kymo_error err;

	if (!viewer_server_make_room(server)) {
		ky_log_warning(server->options.log, "a viewer is refused: %zu are connected",
			       server->hub.clients.len);
		ky_link_free(link);
	} else if (ky_viewer_client_new(&server->hub, link, is_strict, delay_ms, &client, &err) <
		   0) {
		ky_log_warning(server->options.log, "a viewer is refused: %s", err.message);
	} else {
		client->begun_ns = ky_os_now_ns();
		/* TLS may have read its first request already. */
		viewer_server_step(server, client);
	}
}

static void accept_viewer(struct ky_viewer_server *server)
{
	int fd = ky_accept_socket_take(&server->listener);
	struct ky_link *link;

	if (ky_accept_socket_is_shortage(-fd)) {
		if (!server->is_short)
			ky_log_warning(server->options.log, "new viewers wait: %s", strerror(-fd));
		server->is_short = true;
	}
	if (fd < 0)
		return;
	server->is_short = false;
	ky_link_set_options(fd);
	if (ky_link_new(fd, fd, &link, NULL) == 0)
		take_link(server, link, true, KY_NET_DELAY_USUAL_MS);
}

static bool take_arrived(struct ky_viewer_server *server)
{
	uint64_t value;
	bool stops;

	(void)!read(server->wake_fd, &value, sizeof(value));
	for (;;) {
		struct arrival arrival = {NULL, 0};

		pthread_mutex_lock(&server->lock);
		stops = server->stops;
		if (server->arrived.len)
			arrival = server->arrived.data[--server->arrived.len];
		pthread_mutex_unlock(&server->lock);
		if (!arrival.link)
			return !stops;
		take_link(server, arrival.link, false, arrival.delay_ms);
	}
}

static const int patience_s[] = {
	[KY_VIEWER_GREETS] = GREETING_S,
	[KY_VIEWER_WATCHES_NOTHING] = IDLE_S,
	[KY_VIEWER_IS_STUCK] = STUCK_S,
};

static void viewer_server_sweep_client(struct ky_viewer_server *server, int64_t at,
				       struct ky_viewer_client *client)
{
	enum ky_viewer_idle idle;
	int64_t since = ky_viewer_client_idle_since_ns(client, &idle);

	if (since && at - since > (int64_t)patience_s[idle] * NS_PER_S)
		viewer_server_drop(server, client, "silent for too long");
}

static void viewer_server_sweep(struct ky_viewer_server *server)
{
	int64_t at = ky_os_now_ns();

	if (at - server->swept_ns < (int64_t)SWEEP_MS * 1000000)
		return;
	server->swept_ns = at;
	for (size_t i = server->hub.clients.len; i-- > 0;)
		viewer_server_sweep_client(server, at, server->hub.clients.data[i]);
}

static void viewer_server_take_turns(struct ky_viewer_server *server)
{
	for (size_t i = server->hub.clients.len; (server->n_turns || server->n_held) && i-- > 0;)
		if (server->hub.clients.data[i]->waits_turn ||
		    server->hub.clients.data[i]->waits_time)
			viewer_server_step(server, server->hub.clients.data[i]);
}

/* ---- the thread ----------------------------------------------------------------------- */

static void *viewer_server_run(void *data)
{
	struct ky_viewer_server *server = data;
	struct epoll_event events[EVENTS];
	bool goes_on = true;

	while (goes_on) {
		int n = epoll_wait(server->epoll_fd, events, EVENTS,
				   server->n_turns	     ? 0
				   : server->n_held	     ? HELD_MS
				   : server->hub.clients.len ? SWEEP_MS
							     : -1);
		bool wakes = false, comes = false;

		/* A client is removed only in its own call, or after all calls: a new one may take another's place. */
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == &server->listener)
				comes = true;
			else if (events[i].data.ptr == &server->wake_fd)
				wakes = true;
			else
				viewer_server_step(server, events[i].data.ptr);
		}
		if (comes)
			accept_viewer(server);
		if (wakes)
			goes_on = take_arrived(server);
		viewer_server_take_turns(server);
		viewer_server_sweep(server);
	}
	return NULL;
}

static int viewer_server_start_thread(struct ky_viewer_server *server)
{
	sigset_t all, before;
	int ret;

	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&server->thread, NULL, viewer_server_run, server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

static void server_free(struct ky_viewer_server *server)
{
	ky_viewer_hub_fini(&server->hub);
	ky_vec_foreach(&server->arrived, arrival)
		ky_link_free(arrival->link);
	ky_vec_fini(&server->arrived);
	ky_vec_foreach(&server->notes, note)
		free(note->below);
	ky_vec_fini(&server->notes);
	ky_accept_socket_close(&server->listener);
	if (server->wake_fd >= 0)
		close(server->wake_fd);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

int ky_viewer_server_start(const struct ky_viewer_server_options *options,
			   struct ky_viewer_server **out, struct kymo_error *err)
{
	struct ky_viewer_server *server = calloc(1, sizeof(*server));
	struct epoll_event event = {.events = EPOLLIN};
	int ret = 0;

	*out = NULL;
	if (!server)
		return ky_error_nomem(err);
	server->options = *options;
	if (!server->options.clients_max)
		server->options.clients_max = CLIENTS_MAX;
	server->hub.list.dir = options->dir;
	server->hub.log = options->log;
	server->hub.update = update;
	server->hub.is_connected = is_connected;
	server->hub.data = server;
	server->listener = (struct ky_accept_socket)KY_ACCEPT_SOCKET_CLOSED;
	pthread_mutex_init(&server->lock, NULL);
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	event.data.ptr = &server->wake_fd;
	if (server->epoll_fd < 0 || server->wake_fd < 0 ||
	    epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->wake_fd, &event) < 0)
		ret = errno;
	if (!ret)
		ret = viewer_server_start_thread(server);
	if (!ret) {
		*out = server;
		return KYMO_OK;
	}
	server_free(server);
	return ky_error_errno(err, ret, "cannot serve readers");
}

static void viewer_server_wake(struct ky_viewer_server *server)
{
	const uint64_t one = 1;

	(void)!write(server->wake_fd, &one, sizeof(one));
}

void ky_viewer_server_stop(struct ky_viewer_server *server)
{
	if (!server)
		return;
	pthread_mutex_lock(&server->lock);
	server->stops = true;
	pthread_mutex_unlock(&server->lock);
	viewer_server_wake(server);
	pthread_join(server->thread, NULL);
	server_free(server);
}

int ky_viewer_server_listen(struct ky_viewer_server *server, int fd, struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &server->listener};
	int ret = ky_accept_socket_open(&server->listener, fd, PAUSE_NS, err);

	if (ret < 0)
		return ret;
	server->listener.keeps_some = true;
	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->listener.fd, &event) == 0)
		return KYMO_OK;
	return ky_error_errno(err, errno, "cannot wait for viewers");
}

void ky_viewer_server_take(struct ky_viewer_server *server, struct ky_link *link, uint32_t delay_ms)
{
	const struct arrival arrival = {link, delay_ms};
	int ret;

	pthread_mutex_lock(&server->lock);
	ret = ky_vec_push(&server->arrived, arrival);
	pthread_mutex_unlock(&server->lock);
	if (ret < 0)
		ky_link_free(link);
	else
		viewer_server_wake(server);
}
