/* SPDX-License-Identifier: MIT */
#include "net/sender/sender-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/link/link.h"
#include "os/now.h"

#define QUEUE_BYTES (64u << 20)
/* With less in the queue, the relay's answers wait for the next frame while there is a reader: then beacons come. */
#define LITTLE_BYTES (1u << 20)
/* Without an acknowledgement for so long, the connection counts as broken. */
#define SILENCE_MS 5000
/* An idle connection says that often that it is alive. */
#define PING_MS 20000
/* How often the end of a session looks whether the caller gives up. */
#define LOOK_MS		 100
#define BACKOFF_FIRST_MS 50
#define BACKOFF_MOST_MS	 2000
/* For the relay's answer when the recorder connects again; it grows to KY_SENDER_WAIT_MS. */
#define PATIENCE_FIRST_MS 5000

void ky_sender_fail(struct ky_sender *sender, const struct kymo_error *err)
{
	pthread_mutex_lock(&sender->lock);
	if (!sender->failed) {
		sender->err = *err;
		sender->err.code = KYMO_E_IO;
		sender->failed = KYMO_E_IO;
	}
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
}

/* ---- frames of the recorder ----------------------------------------------------------- */

/* A frame, not numbered yet. NULL: no memory. */
static struct ky_sender_entry *make_entry(struct ky_sender *sender, const struct ky_frame *frame,
					  const void *fixed, size_t fixed_bytes,
					  const struct ky_sender_part *parts, unsigned int n_parts)
{
	size_t bytes = 0, at = 0;
	struct ky_sender_entry *entry;

	for (unsigned int i = 0; i < n_parts; i++)
		bytes += parts[i].bytes;
	entry = ky_sender_entry_new(sender, bytes);
	if (!entry)
		return NULL;
	for (unsigned int i = 0; i < n_parts; i++) {
		if (parts[i].bytes)
			memcpy(entry->data + at, parts[i].data, parts[i].bytes);
		at += parts[i].bytes;
	}
	entry->frame = *frame;
	entry->frame.bytes = fixed_bytes + bytes;
	entry->head_bytes = (uint32_t)(KY_FRAME_HEAD_BYTES + fixed_bytes);
	if (fixed_bytes)
		memcpy(entry->head + KY_FRAME_HEAD_BYTES, fixed, fixed_bytes);
	return entry;
}

int ky_sender_put(struct ky_sender *sender, enum ky_frame_type type, uint32_t trace,
		  const void *fixed, size_t fixed_bytes, const struct ky_sender_part *parts,
		  unsigned int n_parts, struct kymo_error *err)
{
	const struct ky_frame frame = {type, trace, 0, 0};
	struct ky_sender_entry *entry =
		make_entry(sender, &frame, fixed, fixed_bytes, parts, n_parts);
	bool wakes;

	if (!entry)
		return ky_error_nomem(err);
	pthread_mutex_lock(&sender->lock);
	if (sender->failed) {
		if (err)
			*err = sender->err;
		pthread_mutex_unlock(&sender->lock);
		free(entry);
		return sender->failed;
	}
	ky_sender_enqueue(sender, entry);
	wakes = sender->is_waiting;
	sender->is_waiting = false;
	pthread_mutex_unlock(&sender->lock);
	if (wakes)
		(void)eventfd_write(sender->wake_fd, 1);
	return KYMO_OK;
}

bool ky_sender_is_full(struct ky_sender *sender)
{
	bool is_full;

	pthread_mutex_lock(&sender->lock);
	is_full = sender->queued_bytes > sender->options.queue_bytes && !sender->failed &&
		  (sender->late_first || !ky_spill_has_room(&sender->spill, 1));
	pthread_mutex_unlock(&sender->lock);
	return is_full;
}

void ky_sender_backlog(struct ky_sender *sender, struct ky_store_backlog *backlog)
{
	pthread_mutex_lock(&sender->lock);
	*backlog = (struct ky_store_backlog){
		.memory_bytes = sender->queued_bytes,
		.file_bytes = sender->spill.end - sender->spill.begin,
		.spilled_bytes = sender->spill.total_bytes,
	};
	pthread_mutex_unlock(&sender->lock);
}

uint32_t ky_sender_readers_delay_ms(struct ky_sender *sender)
{
	return __atomic_load_n(&sender->delay_ms, __ATOMIC_RELAXED);
}

int ky_sender_readers_fd(struct ky_sender *sender)
{
	return sender->readers_fd;
}

uint64_t ky_sender_features(struct ky_sender *sender)
{
	return __atomic_load_n(&sender->features, __ATOMIC_RELAXED);
}

/* ---- the thread ----------------------------------------------------------------------- */

static void connection_broke(struct ky_sender *sender, int errnum)
{
	ky_sender_disconnect(sender);
	sender->backoff_ms = BACKOFF_FIRST_MS;
	if (!sender->failed)
		ky_log_info(sender->options.log, "the connection to the relay %s broke: %s",
			    sender->options.address.host, strerror(errnum));
}

/* Whether an answer may wait: an idle recorder with a live reader wakes for its beacons only. */
static bool sender_hears_later(struct ky_sender *sender)
{
	uint32_t delay_ms = ky_sender_readers_delay_ms(sender);
	bool is_patient;

	pthread_mutex_lock(&sender->lock);
	is_patient = !sender->is_ending && sender->queued_bytes < LITTLE_BYTES;
	pthread_mutex_unlock(&sender->lock);
	return is_patient && delay_ms && delay_ms <= KY_NET_DELAY_USUAL_MS;
}

/* Sleeps until there is something to do. */
static void wait_awake(struct ky_sender *sender, bool is_slow, bool has_unacknowledged)
{
	short answers = sender_hears_later(sender) ? POLLRDHUP : POLLIN;
	struct pollfd wanted[] = {
		{sender->wake_fd, POLLIN, 0},
		{sender->link ? ky_link_in_fd(sender->link) : -1, answers, 0},
		{sender->link && is_slow ? ky_link_out_fd(sender->link) : -1, POLLOUT, 0},
	};
	int timeout_ms = !sender->link ? sender->backoff_ms : has_unacknowledged ? 1500 : PING_MS;
	eventfd_t count;

	if (poll(wanted, 3, timeout_ms) > 0 && wanted[0].revents)
		(void)eventfd_read(sender->wake_fd, &count);
}

/* Whether the thread may sleep; *has_unacknowledged: it waits for the relay. False: it ends. */
static bool sender_look(struct ky_sender *sender, bool *has_unacknowledged)
{
	bool goes_on;

	pthread_mutex_lock(&sender->lock);
	goes_on = !sender->stops;
	*has_unacknowledged = sender->acknowledged < sender->number;
	sender->is_waiting = true;
	pthread_mutex_unlock(&sender->lock);
	return goes_on;
}

static void reconnect(struct ky_sender *sender)
{
	int64_t end_ms =
		ky_os_now_ms() + (sender->ssh_dir ? KY_SENDER_SSH_MS : sender->patience_ms);

	if (!sender->failed && ky_sender_connect(sender, end_ms, NULL) == 0) {
		sender->patience_ms = PATIENCE_FIRST_MS;
		ky_log_info(sender->options.log, "connected to the relay %s again",
			    sender->options.address.host);
		return;
	}
	/* One that has too much to do would have ever more to do for recorders that do not wait. */
	if (sender->errnum == ETIMEDOUT && sender->patience_ms < KY_SENDER_WAIT_MS)
		sender->patience_ms += PATIENCE_FIRST_MS;
	sender->backoff_ms =
		sender->backoff_ms * 2 < BACKOFF_MOST_MS ? sender->backoff_ms * 2 : BACKOFF_MOST_MS;
}

/* One round of receiving and sending. 1: the peer is slow; 0; a negative errno. */
static int exchange(struct ky_sender *sender, bool has_unacknowledged)
{
	int64_t now_ms = ky_os_now_ms(), silence_ms;
	int ret;

	do {
		ret = ky_sender_receive(sender);
		if (!ret)
			ret = ky_sender_refill(sender);
		if (!ret)
			ret = ky_sender_send(sender);
	} while (!ret && ky_sender_can_refill(sender));
	/* Answers that have just been read count, however long this thread had no CPU. */
	silence_ms = now_ms - sender->acknowledged_ms;
	if (ret >= 0 && has_unacknowledged && silence_ms > SILENCE_MS)
		return -ETIMEDOUT;
	if (ret == 0 && !has_unacknowledged && silence_ms >= PING_MS) {
		sender->acknowledged_ms = ky_os_now_ms();
		return ky_sender_ping(sender);
	}
	return ret;
}

static void *sender_run(void *data)
{
	struct ky_sender *sender = data;
	bool has_unacknowledged = true, was_idle = false;
	int ret = 0;

	while (sender_look(sender, &has_unacknowledged)) {
		/* The relay is silent because there was nothing to acknowledge. */
		if (was_idle && has_unacknowledged)
			sender->acknowledged_ms = ky_os_now_ms();
		was_idle = !has_unacknowledged;
		if (!sender->link) {
			wait_awake(sender, false, has_unacknowledged);
			reconnect(sender);
			continue;
		}
		ret = exchange(sender, has_unacknowledged);
		if (ret < 0)
			connection_broke(sender, -ret);
		else
			wait_awake(sender, ret == 1, has_unacknowledged);
	}
	return NULL;
}

/* ---- opening, closing ----------------------------------------------------------------- */

static int sender_start(struct ky_sender *sender, struct kymo_error *err)
{
	int errnum, ret;

	if (!sender->host || (sender->options.token && !sender->token) ||
	    (sender->options.ssh_dir && !sender->ssh_dir) ||
	    (sender->options.spill_dir && !sender->spill_dir))
		return ky_error_nomem(err);
	if (sender->wake_fd < 0 || sender->readers_fd < 0)
		return ky_error_errno(err, errno, "cannot set up the connection");
	if (getrandom(sender->session, sizeof(sender->session), 0) != sizeof(sender->session))
		return ky_error_errno(err, errno, "no random numbers");
	ret = sender->options.spill_bytes ? ky_spill_open(&sender->spill, sender->spill_dir,
							  sender->options.spill_bytes, err)
					  : KYMO_OK;
	if (!ret)
		ret = ky_sender_connect_first(sender, err);
	if (ret < 0)
		return ret;
	errnum = pthread_create(&sender->thread, NULL, sender_run, sender);
	if (errnum)
		return ky_error_errno(err, errnum, "cannot start the thread that sends");
	sender->has_thread = true;
	return KYMO_OK;
}

int ky_sender_open(const struct ky_sender_options *options, struct ky_sender **out,
		   struct kymo_error *err)
{
	struct ky_sender *sender = calloc(1, sizeof(*sender));
	int ret;

	*out = NULL;
	if (!sender)
		return ky_error_nomem(err);
	sender->options = *options;
	if (!sender->options.queue_bytes)
		sender->options.queue_bytes = QUEUE_BYTES;
	sender->host = strdup(options->host);
	sender->token = options->token ? strdup(options->token) : NULL;
	sender->ssh_dir = options->ssh_dir ? strdup(options->ssh_dir) : NULL;
	sender->spill_dir = options->spill_dir ? strdup(options->spill_dir) : NULL;
	sender->spill = (struct ky_spill)KY_SPILL_INIT;
	sender->number = sender->acknowledged = 1;
	sender->backoff_ms = BACKOFF_FIRST_MS;
	sender->patience_ms = PATIENCE_FIRST_MS;
	sender->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sender->readers_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&sender->lock, NULL);
	pthread_cond_init(&sender->changed, NULL);
	ret = sender_start(sender, err);
	if (ret < 0) {
		ky_sender_close(sender);
		return ret;
	}
	*out = sender;
	return KYMO_OK;
}

static void wait_for_change(struct ky_sender *sender, int64_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void)pthread_cond_timedwait(&sender->changed, &sender->lock, &until);
}

/* Waits for progress. Returns whether there was some. */
static bool wait_for_progress(struct ky_sender *sender, int patience_ms, bool (*gives_up)(void))
{
	uint64_t before = sender->acknowledged;
	int64_t end_ms = ky_os_now_ms() + patience_ms;

	while (!sender->failed && sender->acknowledged == before) {
		int64_t left_ms = end_ms - ky_os_now_ms();

		if (left_ms <= 0 || (gives_up && gives_up()))
			break;
		wait_for_change(sender, left_ms < LOOK_MS ? left_ms : LOOK_MS);
	}
	return !sender->failed && sender->acknowledged != before;
}

static int not_all(const struct ky_sender *sender, bool is_given_up, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_IO,
			    "the relay %s %s: the last %" PRIu64 " bytes of the recording are lost",
			    sender->options.address.host,
			    is_given_up ? "has not taken all" : "does not answer",
			    sender->queued_bytes + sender->spill.end - sender->spill.begin);
}

int ky_sender_finish(struct ky_sender *sender, int patience_ms, bool (*gives_up)(void),
		     struct kymo_error *err)
{
	bool is_given_up = false;
	int ret;

	pthread_mutex_lock(&sender->lock);
	sender->is_ending = true;
	pthread_mutex_unlock(&sender->lock);
	ret = ky_sender_put(sender, KY_FRAME_BYE, 0, NULL, 0, NULL, 0, err);
	if (ret < 0)
		return ret;
	pthread_mutex_lock(&sender->lock);
	while (sender->acknowledged < sender->number && !is_given_up &&
	       wait_for_progress(sender, patience_ms, gives_up))
		is_given_up = gives_up && gives_up();
	if (sender->failed) {
		ret = sender->failed;
		if (err)
			*err = sender->err;
	} else if (sender->acknowledged < sender->number) {
		ret = not_all(sender, is_given_up || (gives_up && gives_up()), err);
	}
	pthread_mutex_unlock(&sender->lock);
	return ret;
}

void ky_sender_close(struct ky_sender *sender)
{
	if (!sender)
		return;
	if (sender->has_thread) {
		pthread_mutex_lock(&sender->lock);
		sender->stops = true;
		pthread_mutex_unlock(&sender->lock);
		(void)eventfd_write(sender->wake_fd, 1);
		pthread_join(sender->thread, NULL);
	}
	ky_sender_disconnect(sender);
	ky_sender_free_queue(sender);
	ky_spill_close(&sender->spill);
	if (sender->wake_fd >= 0)
		close(sender->wake_fd);
	if (sender->readers_fd >= 0)
		close(sender->readers_fd);
	pthread_cond_destroy(&sender->changed);
	pthread_mutex_destroy(&sender->lock);
	free(sender->host);
	free(sender->token);
	free(sender->ssh_dir);
	free(sender->spill_dir);
	free(sender);
}
