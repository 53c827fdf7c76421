/* SPDX-License-Identifier: MIT */
#include "net/sender/sender-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "os/now.h"

/* Entries of packets are of multiples of this size, and are used again. */
#define LARGE_BYTES	(32u << 10)
#define SPARE_BYTES_MAX (8u << 20)
/* So much comes from the spill file before the thread turns to the connection again. */
#define REFILL_BYTES (4u << 20)

/* A large entry that is not needed any more, of this size at least; NULL: none. Under the lock. */
static struct ky_sender_entry *take_spare(struct ky_sender *sender, size_t bytes)
{
	for (struct ky_sender_entry **at = &sender->spare; *at; at = &(*at)->next) {
		struct ky_sender_entry *entry = *at;

		if (entry->capacity < bytes)
			continue;
		*at = entry->next;
		sender->spare_bytes -= entry->capacity;
		return entry;
	}
	return NULL;
}

struct ky_sender_entry *ky_sender_entry_new(struct ky_sender *sender, size_t bytes)
{
	size_t capacity =
		bytes < LARGE_BYTES ? bytes : (bytes + LARGE_BYTES - 1) / LARGE_BYTES * LARGE_BYTES;
	struct ky_sender_entry *entry = NULL;

	if (capacity >= LARGE_BYTES) {
		pthread_mutex_lock(&sender->lock);
		entry = take_spare(sender, capacity);
		pthread_mutex_unlock(&sender->lock);
		capacity = entry ? entry->capacity : capacity;
	}
	if (!entry)
		entry = malloc(sizeof(*entry) + capacity);
	if (entry)
		*entry = (struct ky_sender_entry){.bytes = bytes, .capacity = capacity};
	return entry;
}

/* Large ones stay for later packets: new memory costs more than the copy into it. Under the lock. */
static void entry_free(struct ky_sender *sender, struct ky_sender_entry *entry)
{
	if (entry->capacity < LARGE_BYTES ||
	    sender->spare_bytes + entry->capacity > SPARE_BYTES_MAX) {
		free(entry);
		return;
	}
	entry->next = sender->spare;
	sender->spare = entry;
	sender->spare_bytes += entry->capacity;
}

/* The definitions of traces and streams stay until the end: a new connection begins with them. */
static bool is_definition(const struct ky_sender_entry *entry)
{
	return entry->frame.type == KY_FRAME_OPEN || entry->frame.type == KY_FRAME_STREAM;
}

static void sender_queue_append(struct ky_sender *sender, struct ky_sender_entry *entry)
{
	if (sender->last)
		sender->last->next = entry;
	else
		sender->first = entry;
	sender->last = entry;
	if (!sender->next)
		sender->next = entry;
	sender->queued_bytes += entry->bytes + entry->head_bytes;
}

static void append_late(struct ky_sender *sender, struct ky_sender_entry *entry)
{
	if (sender->late_last)
		sender->late_last->next = entry;
	else
		sender->late_first = entry;
	sender->late_last = entry;
	sender->late_bytes += entry->bytes + entry->head_bytes;
	sender->queued_bytes += entry->bytes + entry->head_bytes;
}

static void append_first_late(struct ky_sender *sender)
{
	struct ky_sender_entry *entry = sender->late_first;

	sender->late_first = entry->next;
	if (!entry->next)
		sender->late_last = NULL;
	entry->next = NULL;
	sender->late_bytes -= entry->bytes + entry->head_bytes;
	sender->queued_bytes -= entry->bytes + entry->head_bytes;
	sender_queue_append(sender, entry);
}

/* What came after the frames in the spill file follows when the file is empty. Under the lock. */
static void append_all_late(struct ky_sender *sender)
{
	while (sender->late_first && !sender->spill.n)
		append_first_late(sender);
}

void ky_sender_enqueue(struct ky_sender *sender, struct ky_sender_entry *entry)
{
	bool was_broken = sender->spill.is_broken;

	if (!is_definition(entry))
		entry->frame.number = sender->number++;
	ky_frame_put(&entry->frame, entry->head);
	if (!sender->spill.n && !sender->late_first &&
	    (sender->spill.fd < 0 || sender->queued_bytes <= sender->options.queue_bytes)) {
		sender_queue_append(sender, entry);
		return;
	}
	if (!sender->late_first && ky_spill_put(&sender->spill, entry->head, entry->head_bytes,
						entry->data, (uint32_t)entry->bytes))
		entry_free(sender, entry);
	else
		append_late(sender, entry);
	if (sender->spill.is_broken && !was_broken)
		ky_log_warning(sender->options.log,
			       "the spill file takes no more: its disk is full, or has failed");
	append_all_late(sender);
}

/* The next frame of the spill file. The thread's. 0 or a negative errno. */
static int take_spilled(struct ky_sender *sender, uint64_t *taken)
{
	uint32_t head_bytes, bytes;
	struct ky_sender_entry *entry;
	int ret = ky_spill_next(&sender->spill, &head_bytes, &bytes);

	if (!ret && head_bytes > sizeof(entry->head))
		ret = -EIO;
	if (ret < 0)
		return ret;
	entry = ky_sender_entry_new(sender, bytes);
	if (!entry)
		return -ENOMEM;
	entry->head_bytes = head_bytes;
	ret = ky_spill_read(&sender->spill, entry->head, head_bytes, entry->data, bytes);
	ky_frame_get(&entry->frame, entry->head);
	pthread_mutex_lock(&sender->lock);
	if (!ret) {
		ky_spill_advance(&sender->spill, head_bytes, bytes);
		sender_queue_append(sender, entry);
	} else {
		entry_free(sender, entry);
	}
	append_all_late(sender);
	pthread_mutex_unlock(&sender->lock);
	*taken += head_bytes + (uint64_t)bytes;
	return ret;
}

bool ky_sender_can_refill(struct ky_sender *sender)
{
	bool can;

	pthread_mutex_lock(&sender->lock);
	can = sender->spill.n &&
	      sender->queued_bytes - sender->late_bytes < sender->options.queue_bytes;
	pthread_mutex_unlock(&sender->lock);
	return can;
}

int ky_sender_refill(struct ky_sender *sender)
{
	uint64_t taken = 0;
	struct kymo_error err = {.code = KYMO_OK};
	int ret = 0;

	while (!ret && taken < REFILL_BYTES && ky_sender_can_refill(sender))
		ret = take_spilled(sender, &taken);
	if (ret < 0) {
		(void)ky_error_errno(&err, -ret, "cannot read the spill file");
		ky_sender_fail(sender, &err);
	}
	return ret;
}

int ky_sender_collect(struct ky_sender *sender, struct iovec *parts, int max)
{
	uint64_t skip = sender->sent_bytes;
	int n = 0;

	pthread_mutex_lock(&sender->lock);
	for (struct ky_sender_entry *entry = sender->next; entry && n + 2 <= max;
	     entry = entry->next) {
		/* Already carried out, by a connection that has ended. */
		if (!is_definition(entry) && entry->frame.number < sender->acknowledged)
			continue;
		if (skip < entry->head_bytes) {
			parts[n++] = (struct iovec){entry->head + skip, entry->head_bytes - skip};
			skip = 0;
		} else {
			skip -= entry->head_bytes;
		}
		if (entry->bytes)
			parts[n++] = (struct iovec){entry->data + skip, entry->bytes - skip};
		skip = 0;
	}
	pthread_mutex_unlock(&sender->lock);
	return n;
}

void ky_sender_advance(struct ky_sender *sender, uint64_t bytes)
{
	pthread_mutex_lock(&sender->lock);
	sender->sent_bytes += bytes;
	while (sender->next) {
		const struct ky_sender_entry *entry = sender->next;
		uint64_t size = entry->head_bytes + entry->bytes;

		if (!is_definition(entry) && entry->frame.number < sender->acknowledged)
			size = 0;
		if (sender->sent_bytes < size || (!sender->sent_bytes && size))
			break;
		sender->sent_bytes -= size;
		if (!is_definition(entry) && entry->frame.number >= sender->sent)
			sender->sent = entry->frame.number + 1;
		sender->next = sender->next->next;
	}
	pthread_mutex_unlock(&sender->lock);
}

bool ky_sender_has_sent(struct ky_sender *sender, uint64_t number)
{
	bool has_sent;

	pthread_mutex_lock(&sender->lock);
	has_sent = number <= sender->sent;
	pthread_mutex_unlock(&sender->lock);
	return has_sent;
}

/* Takes the entry at *at out of the queue; @before: the one in front of it, or NULL. Under the lock. */
static void sender_queue_take_out(struct ky_sender *sender, struct ky_sender_entry **at,
				  struct ky_sender_entry *before)
{
	struct ky_sender_entry *entry = *at;

	*at = entry->next;
	sender->queued_bytes -= entry->bytes + entry->head_bytes;
	if (sender->last == entry)
		sender->last = before;
	entry_free(sender, entry);
}

/*
 * Trace @trace, which the relay has closed, needs its definitions no more: with them, a new connection would begin it
 * anew. They are in front of *end. Returns the last entry in front of *end, or NULL. Under the lock.
 */
static struct ky_sender_entry *forget_definitions(struct ky_sender *sender, uint32_t trace,
						  struct ky_sender_entry **end,
						  struct ky_sender_entry ***new_end)
{
	struct ky_sender_entry **at = &sender->first, *last = NULL;

	while (at != end) {
		if ((*at)->frame.trace != trace) {
			last = *at;
			at = &last->next;
			continue;
		}
		/* The place of what follows is in the entry that goes. */
		if (end == &(*at)->next)
			end = at;
		sender_queue_take_out(sender, at, last);
	}
	*new_end = at;
	return last;
}

static bool ends_trace(const struct ky_sender_entry *entry)
{
	return entry->frame.type == KY_FRAME_CLOSE || entry->frame.type == KY_FRAME_DISCARD;
}

/* What stays in front of the others are the definitions of traces that the relay has not closed. */
void ky_sender_acknowledge(struct ky_sender *sender, uint64_t number)
{
	struct ky_sender_entry **at = &sender->first, *entry, *last = NULL;

	pthread_mutex_lock(&sender->lock);
	if (number > sender->acknowledged && number <= sender->number) {
		sender->acknowledged = number;
		sender->acknowledged_ms = ky_os_now_ms();
	}
	while ((entry = *at) && entry != sender->next) {
		if (is_definition(entry)) {
			last = entry;
			at = &entry->next;
			continue;
		}
		if (entry->frame.number >= sender->acknowledged)
			break;
		if (ends_trace(entry))
			last = forget_definitions(sender, entry->frame.trace, at, &at);
		sender_queue_take_out(sender, at, last);
	}
	pthread_cond_broadcast(&sender->changed);
	pthread_mutex_unlock(&sender->lock);
}

static void sender_queue_free_entries(struct ky_sender_entry *entry)
{
	while (entry) {
		struct ky_sender_entry *next = entry->next;

		free(entry);
		entry = next;
	}
}

void ky_sender_free_queue(struct ky_sender *sender)
{
	sender_queue_free_entries(sender->first);
	sender_queue_free_entries(sender->late_first);
	sender_queue_free_entries(sender->spare);
}
