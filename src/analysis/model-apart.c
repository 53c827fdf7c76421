/* SPDX-License-Identifier: MIT */
#include "analysis/model-apart.h"

#include <stdlib.h>
#include <string.h>

#include "os/crew.h"

/* So many happenings that the other thread finds work when it comes from decoding. */
#define BUFFERS	     32
#define BUFFER_BYTES 65536

/* Stands before each happening; a call behind that of an I/O. */
struct head {
	uint32_t kind, bytes; /* with the head */
};

struct buffer {
	uint32_t used;
	_Alignas(16) char data[BUFFER_BYTES];
};

struct ky_apart {
	struct ky_task task;
	struct ky_crew *crew;
	KY_VEC(struct ky_listener) listeners[KY_APART_KINDS];
	struct buffer *buffers[BUFFERS]; /* made when they are first needed */
	/* The model's: */
	struct buffer *open; /* the one being filled, number n_put; NULL: none */
	uint64_t n_put;	     /* buffers that were handed over */
	/* The task's: */
	int status; /* the first failure of a hook */
	/* Under the crew's lock: */
	uint64_t n_given, n_told;
	int told_status;
	bool running;
};

/* ---- listeners ----------------------------------------------------------------------------- */

bool ky_apart_can(const struct ky_listener *listener)
{
	struct ky_listener others = *listener;

	others.call = NULL;
	others.io = NULL;
	others.request = NULL;
	others.packet = NULL;
	others.memory = NULL;
	return memcmp(&others, &(struct ky_listener){.data = listener->data}, sizeof(others)) == 0;
}

int ky_apart_listen(struct ky_apart *apart, const struct ky_listener *listener)
{
	const bool has[KY_APART_KINDS] = {
		[KY_APART_CALL] = listener->call,	[KY_APART_IO] = listener->io,
		[KY_APART_REQUEST] = listener->request, [KY_APART_PACKET] = listener->packet,
		[KY_APART_MEMORY] = listener->memory,
	};

	for (int kind = 0; kind < KY_APART_KINDS; kind++) {
		if (has[kind] && ky_vec_push(&apart->listeners[kind], *listener) < 0)
			return KYMO_E_MEMORY;
	}
	return 0;
}

void ky_apart_unlisten(struct ky_apart *apart)
{
	for (int kind = 0; kind < KY_APART_KINDS; kind++)
		ky_vec_clear(&apart->listeners[kind]);
}

/* ---- the task -------------------------------------------------------------------------------- */

static int call_hook(const struct ky_listener *l, enum ky_apart_kind kind, const void *what)
{
	switch (kind) {
	case KY_APART_CALL:
		return l->call(l->data, what);
	case KY_APART_IO:
		return l->io(l->data, what);
	case KY_APART_REQUEST:
		return l->request(l->data, what);
	case KY_APART_PACKET:
		return l->packet(l->data, what);
	default:
		return l->memory(l->data, what);
	}
}

static int tell_one(struct ky_apart *apart, char *at)
{
	enum ky_apart_kind kind = ((struct head *)(void *)at)->kind;
	void *what = at + sizeof(struct head);
	int status = 0;

	if (kind == KY_APART_IO) {
		struct ky_io *io = what;

		io->call = (const struct ky_call *)(void *)(io + 1);
	}
	ky_vec_foreach(&apart->listeners[kind], listener) {
		if (status >= 0)
			status = call_hook(listener, kind, what);
	}
	return status;
}

static void tell_all(struct ky_apart *apart, struct buffer *buffer)
{
	for (uint32_t at = 0; at < buffer->used && apart->status >= 0;) {
		apart->status = tell_one(apart, buffer->data + at);
		at += ((struct head *)(void *)(buffer->data + at))->bytes;
	}
	buffer->used = 0;
}

static void run_tell(struct ky_task *task)
{
	struct ky_apart *apart =
		(struct ky_apart *)((char *)task - offsetof(struct ky_apart, task));
	uint64_t at;

	ky_crew_lock(apart->crew);
	while (apart->n_told < apart->n_given) {
		at = apart->n_told;
		ky_crew_unlock(apart->crew);
		tell_all(apart, apart->buffers[at % BUFFERS]);
		ky_crew_lock(apart->crew);
		apart->n_told = at + 1;
		apart->told_status = apart->status;
		ky_crew_tell(apart->crew);
	}
	apart->running = false;
	ky_crew_unlock(apart->crew);
}

/* ---- the model's side ------------------------------------------------------------------------ */

static bool has_room(void *data)
{
	const struct ky_apart *apart = data;

	return apart->n_given - apart->n_told < BUFFERS;
}

static bool is_settled(void *data)
{
	const struct ky_apart *apart = data;

	return apart->n_told == apart->n_given && !apart->running;
}

/* What was put goes to the task. */
static int give(struct ky_apart *apart)
{
	bool start;
	int status;

	if (!apart->open)
		return 0;
	apart->open = NULL;
	apart->n_put++;
	ky_crew_lock(apart->crew);
	apart->n_given = apart->n_put;
	status = apart->told_status;
	start = !apart->running;
	apart->running = true;
	ky_crew_unlock(apart->crew);
	if (start)
		ky_crew_add(apart->crew, &apart->task);
	return status;
}

/* An empty buffer to put into; NULL: out of memory. */
static struct buffer *open_buffer(struct ky_apart *apart)
{
	struct buffer **slot = &apart->buffers[apart->n_put % BUFFERS];

	ky_crew_wait(apart->crew, has_room, apart);
	if (!*slot)
		*slot = malloc(sizeof(**slot));
	if (*slot)
		(*slot)->used = 0;
	return *slot;
}

/* All of them are multiples of a pointer's size, so that one lies well behind the other. */
static const uint32_t sizes[KY_APART_KINDS] = {
	[KY_APART_CALL] = sizeof(struct ky_call),
	[KY_APART_IO] = sizeof(struct ky_io) + sizeof(struct ky_call),
	[KY_APART_REQUEST] = sizeof(struct ky_request),
	[KY_APART_PACKET] = sizeof(struct ky_packet_seen),
	[KY_APART_MEMORY] = sizeof(struct ky_memory),
};

int ky_apart_put(struct ky_apart *apart, enum ky_apart_kind kind, const void *what)
{
	uint32_t bytes = (uint32_t)sizeof(struct head) + sizes[kind];
	struct buffer *buffer = apart->open;
	char *at;
	int status;

	if (!apart->listeners[kind].len)
		return 0;
	if (buffer && BUFFER_BYTES - buffer->used < bytes) {
		status = give(apart);
		if (status < 0)
			return status;
		buffer = NULL;
	}
	if (!buffer)
		buffer = apart->open = open_buffer(apart);
	if (!buffer)
		return KYMO_E_MEMORY;
	at = buffer->data + buffer->used;
	*(struct head *)(void *)at = (struct head){kind, bytes};
	at += sizeof(struct head);
	if (kind == KY_APART_IO) {
		memcpy(at, what, sizeof(struct ky_io));
		memcpy(at + sizeof(struct ky_io), ((const struct ky_io *)what)->call,
		       sizeof(struct ky_call));
	} else {
		memcpy(at, what, sizes[kind]);
	}
	buffer->used += bytes;
	return 0;
}

int ky_apart_settle(struct ky_apart *apart)
{
	give(apart);
	ky_crew_wait(apart->crew, is_settled, apart);
	return apart->status;
}

struct ky_apart *ky_apart_new(struct ky_crew *crew)
{
	struct ky_apart *apart = calloc(1, sizeof(*apart));

	if (!apart)
		return NULL;
	apart->crew = crew;
	apart->task.run = run_tell;
	return apart;
}

void ky_apart_free(struct ky_apart *apart)
{
	if (!apart)
		return;
	for (int kind = 0; kind < KY_APART_KINDS; kind++)
		ky_vec_fini(&apart->listeners[kind]);
	for (int i = 0; i < BUFFERS; i++)
		free(apart->buffers[i]);
	free(apart);
}
