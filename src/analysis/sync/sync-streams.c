/* SPDX-License-Identifier: MIT */
#include "analysis/sync/sync-streams.h"

#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

#define TCP_PROTOCOL	6
#define TCP_ESTABLISHED 1
#define FAMILY_V4	2
/* Where addresses lie in struct sockaddr_in and struct sockaddr_in6. */
#define SOCKADDR_V4_AT 4
#define SOCKADDR_V6_AT 8

enum stream_kind {
	STREAM_PROBE,
	STREAM_STATE,
	STREAM_SENT,
	STREAM_AGAIN,
	STREAM_CALL,
};

enum {
	SOCKET,
	LOCAL,
	REMOTE,
	LOCAL_PORT,
	REMOTE_PORT,
	FAMILY,
	BYTES, /* PROBE: data_len; STATE: newstate; SENT: ret */
	PROTOCOL,
	THREAD,
	STREAM_FIELDS,
};

struct ky_stream_event {
	enum stream_kind kind;
	struct ky_handle fields[STREAM_FIELDS];
};

static const struct {
	const char *event;
	enum stream_kind kind;
	const char *fields[STREAM_FIELDS];
} events[] = {
	{"tcp_probe",
	 STREAM_PROBE,
	 {"skaddr", "saddr", "daddr", "sport", "dport", "family", "data_len", NULL, NULL}},
	{"inet_sock_set_state",
	 STREAM_STATE,
	 {"skaddr", "saddr_v6", "daddr_v6", "sport", "dport", NULL, "newstate", "protocol", NULL}},
	{"sock_inet_sock_set_state",
	 STREAM_STATE,
	 {"skaddr", "saddr_v6", "daddr_v6", "sport", "dport", NULL, "newstate", "protocol", NULL}},
	{"sock_send_length",
	 STREAM_SENT,
	 {"sk", NULL, NULL, NULL, NULL, NULL, "ret", "protocol", "tid"}},
	{"tcp_retransmit_skb",
	 STREAM_AGAIN,
	 {"skaddr", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}},
};

/* Calls that send. */
static const char *const calls[] = {
	"sendto",     "sendmsg", "sendmmsg", "write",	"writev",   "sendfile",
	"sendfile64", "splice",	 "pwrite64", "pwritev", "pwritev2", "io_uring_enter",
};

static bool find_thread(struct ky_handle *handle, const struct ky_event_class *event)
{
	return ky_handle_find(handle, event, KY_SCOPE_STREAM_CONTEXT, "tid") ||
	       ky_handle_find_any(handle, event, "tid");
}

static bool sync_streams_find_fields(struct ky_stream_event *known,
				     const struct ky_event_class *event, const char *const *names)
{
	for (int i = 0; i < STREAM_FIELDS; i++) {
		if (!names[i])
			continue;
		if (i == THREAD
			    ? !find_thread(&known->fields[i], event)
			    : !ky_handle_find(&known->fields[i], event, KY_SCOPE_PAYLOAD, names[i]))
			return false;
	}
	return true;
}

static bool find_event(struct ky_stream_event *known, const struct ky_event_class *event)
{
	static const char entry[] = "syscall_entry_";

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (strcmp(events[i].event, event->name) == 0) {
			known->kind = events[i].kind;
			return sync_streams_find_fields(known, event, events[i].fields);
		}
	}
	if (strncmp(event->name, entry, strlen(entry)) != 0)
		return false;
	known->kind = STREAM_CALL;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(event->name + strlen(entry), calls[i]) == 0)
			return find_thread(&known->fields[THREAD], event);
	return false;
}

struct ky_stream_event *ky_stream_event_find(struct ky_arena *arena,
					     const struct ky_event_class *event)
{
	struct ky_stream_event known = {0}, *copy;

	if (!find_event(&known, event))
		return NULL;
	copy = ky_arena_new(arena, struct ky_stream_event);
	if (copy)
		*copy = known;
	return copy;
}

/* ---- connections ---------------------------------------------------------------------- */

struct ends {
	uint8_t local[16], remote[16];
	uint16_t local_port, remote_port;
};

static bool read_address(const struct ky_stream_event *known, const struct ky_event *event,
			 int field, uint8_t *address)
{
	const struct ky_handle *array = &known->fields[field];

	if (known->kind == STREAM_STATE)
		return ky_get_array_bytes(event, array, 0, address, 16);
	if (ky_get_u64(event, &known->fields[FAMILY], 0) != FAMILY_V4)
		return ky_get_array_bytes(event, array, SOCKADDR_V6_AT, address, 16);
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	return ky_get_array_bytes(event, array, SOCKADDR_V4_AT, address + 12, 4);
}

static bool read_ends(const struct ky_stream_event *known, const struct ky_event *event,
		      struct ends *ends)
{
	ends->local_port = (uint16_t)ky_get_u64(event, &known->fields[LOCAL_PORT], 0);
	ends->remote_port = (uint16_t)ky_get_u64(event, &known->fields[REMOTE_PORT], 0);
	return ends->local_port && ends->remote_port &&
	       read_address(known, event, LOCAL, ends->local) &&
	       read_address(known, event, REMOTE, ends->remote);
}

static uint64_t hash_ends(const uint8_t *local, const uint8_t *remote, uint16_t local_port,
			  uint16_t remote_port)
{
	uint8_t bytes[36];

	memcpy(bytes, local, 16);
	memcpy(bytes + 16, remote, 16);
	memcpy(bytes + 32, &local_port, 2);
	memcpy(bytes + 34, &remote_port, 2);
	return ky_hash_bytes(bytes, sizeof(bytes));
}

static uint64_t on_machine(uint32_t machine, uint64_t number)
{
	return ky_hash_u64(number ^ ky_hash_u64(machine));
}

static struct ky_stream_end *end_of(struct ky_streams *streams, uint32_t machine,
				    const struct ky_stream_event *known,
				    const struct ky_event *event)
{
	uint64_t socket = ky_get_u64(event, &known->fields[SOCKET], 0);

	return ky_map_get(&streams->by_socket, on_machine(machine, socket));
}

/* A connection begins. */
static int on_state(struct ky_streams *streams, const struct ky_stream_event *known,
		    uint32_t machine, const struct ky_event *event)
{
	uint64_t socket = ky_get_u64(event, &known->fields[SOCKET], 0);
	struct ky_stream_end *end;
	struct ends ends;

	if (ky_get_u64(event, &known->fields[PROTOCOL], 0) != TCP_PROTOCOL)
		return KYMO_OK;
	(void)ky_map_del(&streams->by_socket, on_machine(machine, socket));
	if (ky_get_u64(event, &known->fields[BYTES], 0) != TCP_ESTABLISHED ||
	    !read_ends(known, event, &ends))
		return KYMO_OK;
	end = calloc(1, sizeof(*end));
	if (!end || ky_vec_push(&streams->ends, end) < 0) {
		free(end);
		return KYMO_E_MEMORY;
	}
	end->machine = machine;
	end->here = hash_ends(ends.local, ends.remote, ends.local_port, ends.remote_port);
	end->there = hash_ends(ends.remote, ends.local, ends.remote_port, ends.local_port);
	return ky_map_set(&streams->by_socket, on_machine(machine, socket), end);
}

static int sync_streams_keep(struct ky_streams *streams, struct ky_stream_steps *steps, uint64_t at,
			     int64_t ns)
{
	if (streams->n_kept == KY_STREAMS_KEPT_MAX)
		return KYMO_OK;
	streams->n_kept++;
	return ky_vec_push(steps, (struct ky_stream_step){at, ns});
}

static int on_sent(struct ky_streams *streams, const struct ky_stream_event *known,
		   uint32_t machine, const struct ky_event *event)
{
	int64_t bytes = ky_get_i64(event, &known->fields[BYTES], 0);
	uint64_t tid = ky_get_u64(event, &known->fields[THREAD], 0);
	struct ky_stream_end *end = end_of(streams, machine, known, event);
	uintptr_t begin = (uintptr_t)ky_map_get(&streams->entries, on_machine(machine, tid));
	int ret = KYMO_OK;

	if (!end || end->is_over || bytes <= 0)
		return KYMO_OK;
	if (begin)
		ret = sync_streams_keep(streams, &end->sends, end->sent, (int64_t)(begin - 1));
	end->sent += (uint64_t)bytes;
	return ret;
}

int ky_streams_see(struct ky_streams *streams, const struct ky_stream_event *known,
		   uint32_t machine, const struct ky_event *event)
{
	struct ky_stream_end *end;
	uint64_t n;

	switch (known->kind) {
	case STREAM_CALL:
		n = ky_get_u64(event, &known->fields[THREAD], 0);
		/* Times before 1970 do not matter here. */
		return event->ns < 0 ? KYMO_OK
				     : ky_map_set(&streams->entries, on_machine(machine, n),
						  (void *)((uintptr_t)event->ns + 1));
	case STREAM_STATE:
		return on_state(streams, known, machine, event);
	case STREAM_SENT:
		return on_sent(streams, known, machine, event);
	case STREAM_AGAIN:
		end = end_of(streams, machine, known, event);
		if (end)
			end->is_over = true;
		return KYMO_OK;
	case STREAM_PROBE:
		n = ky_get_u64(event, &known->fields[BYTES], 0);
		end = end_of(streams, machine, known, event);
		if (!n || !end || end->is_over)
			return KYMO_OK;
		end->received += n;
		return sync_streams_keep(streams, &end->receipts, end->received, event->ns);
	}
	return KYMO_OK;
}

/* ---- messages ------------------------------------------------------------------------- */

/* Each send with the first receipt of its first byte. */
static int match_ends(const struct ky_stream_end *from, const struct ky_stream_end *to,
		      struct ky_sync_run *run)
{
	size_t r = 0;
	int ret = KYMO_OK;

	for (size_t s = 0; s < from->sends.len && !ret; s++) {
		const struct ky_stream_step *send = &from->sends.data[s];

		while (r < to->receipts.len && to->receipts.data[r].at <= send->at)
			r++;
		if (r == to->receipts.len)
			break;
		run->machines.data[from->machine].n_packets++;
		ret = ky_sync_message(run, from->machine, send->ns, to->machine,
				      to->receipts.data[r].ns);
	}
	return ret;
}

int ky_streams_match(const struct ky_streams *streams, struct ky_sync_run *run)
{
	struct ky_map waiting;
	int ret = KYMO_OK;

	/* Ports come again: a connection and the next one with the same ports follow each other at both ends. */
	ky_map_init(&waiting);
	for (size_t i = 0; i < streams->ends.len && !ret; i++) {
		struct ky_stream_end *end = streams->ends.data[i];
		struct ky_stream_end *other = ky_map_del(&waiting, end->there);

		if (!other || other->machine == end->machine) {
			ret = ky_map_set(&waiting, end->here, end);
			continue;
		}
		ret = match_ends(end, other, run);
		ret = ret ? ret : match_ends(other, end, run);
	}
	ky_map_fini(&waiting);
	return ret;
}

void ky_streams_init(struct ky_streams *streams)
{
	memset(streams, 0, sizeof(*streams));
	ky_map_init(&streams->by_socket);
	ky_map_init(&streams->entries);
}

void ky_streams_fini(struct ky_streams *streams)
{
	ky_vec_foreach(&streams->ends, end) {
		ky_vec_fini(&(*end)->sends);
		ky_vec_fini(&(*end)->receipts);
		free(*end);
	}
	ky_vec_fini(&streams->ends);
	ky_map_fini(&streams->by_socket);
	ky_map_fini(&streams->entries);
}
