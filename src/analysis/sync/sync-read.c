/* SPDX-License-Identifier: MIT */
/*
 * The events that tell of packets and marks: "tcp" of imported captures, LTTng's net_dev_queue and net_if_receive_skb with the packets'
 * headers, the events of LTTng's add-on modules that Trace Compass' users record, whatever event the user calls a mark,
 * and lines of logs.
 */
#include "analysis/sync/sync.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/sync/sync-guests.h"
#include "analysis/sync/sync-streams.h"
#include "base/error.h"
#include "flow/graph/select.h"

#define TCP_PROTOCOL   6
#define PROGRESS_EVERY 65536
#define LOG_AROUND_NS  ((int64_t)60 * 1000000000)

enum sync_read_kind {
	SYNC_READ_CAPTURE,
	SYNC_READ_QUEUE,
	SYNC_READ_RECEIVE,
	SYNC_READ_LOCAL_OUT,
	SYNC_READ_LOCAL_IN,
	SYNC_READ_MARK,
	SYNC_READ_STREAMS,
	SYNC_READ_GUESTS,
	SYNC_READ_LOG,
};

static const struct {
	const char *event;
	enum sync_read_kind kind;
} sync_read_events[] = {
	{"tcp", SYNC_READ_CAPTURE},
	{"net_dev_queue", SYNC_READ_QUEUE},
	{"net_if_receive_skb", SYNC_READ_RECEIVE},
	{"inet_sock_local_out", SYNC_READ_LOCAL_OUT},
	{"inet_sock_local_in", SYNC_READ_LOCAL_IN},
};

enum {
	CAPTURE_SRC,
	CAPTURE_DST,
	CAPTURE_SPORT,
	CAPTURE_DPORT,
	CAPTURE_SEQ,
	CAPTURE_ACK,
	CAPTURE_FIELDS,
};

/* These events have no addresses: Trace Compass knows packets by the same three numbers. */
enum { LOCAL_SEQ, LOCAL_ACK, LOCAL_FLAGS, LOCAL_FIELDS };

struct sync_read_class {
	enum sync_read_kind kind;
	uint32_t machine;
	struct ky_handle fields[CAPTURE_FIELDS];
	struct ky_stream_event *stream; /* STREAMS */
	struct ky_guest_event *guest;	/* GUESTS */
};

struct sync_reader {
	struct ky_sync_run *run;
	struct ky_arena arena;
	struct ky_map classes; /* struct ky_event_class * -> struct sync_read_class * */
	KY_VEC(const char *) events;
	struct ky_values values;
	struct ky_streams streams;
	bool has_entries; /* into virtual machines */
	struct ky_guests guests;
};

/* ---- classes -------------------------------------------------------------------------- */

static bool find_capture(struct sync_read_class *cls, const struct ky_event_class *event)
{
	static const char *const names[CAPTURE_FIELDS] = {"src",   "dst", "sport",
							  "dport", "seq", "ack"};
	bool found = true;

	for (int i = 0; i < CAPTURE_FIELDS; i++)
		found &= ky_handle_find(&cls->fields[i], event, KY_SCOPE_PAYLOAD, names[i]);
	return found;
}

static bool find_local(struct sync_read_class *cls, const struct ky_event_class *event)
{
	static const char *const names[LOCAL_FIELDS] = {"seq", "ack_seq", "flags"};
	bool found = true;

	for (int i = 0; i < LOCAL_FIELDS; i++)
		found &= ky_handle_find(&cls->fields[i], event, KY_SCOPE_PAYLOAD, names[i]);
	return found;
}

static bool sync_read_find_mark(const struct ky_sync_options *options, struct sync_read_class *cls,
				const struct ky_event_class *event)
{
	for (size_t i = 0; i < options->n_marks; i++) {
		if (strcmp(options->marks[i].event, event->name) == 0 &&
		    ky_handle_find_any(&cls->fields[0], event, options->marks[i].field)) {
			cls->kind = SYNC_READ_MARK;
			return true;
		}
	}
	return false;
}

static bool sync_read_find_kind(struct sync_reader *reader, struct sync_read_class *cls,
				const struct ky_event_class *event)
{
	if (sync_read_find_mark(reader->run->options, cls, event))
		return true;
	for (size_t i = 0; i < sizeof(sync_read_events) / sizeof(sync_read_events[0]); i++) {
		if (strcmp(sync_read_events[i].event, event->name) != 0)
			continue;
		cls->kind = sync_read_events[i].kind;
		if (cls->kind == SYNC_READ_LOCAL_OUT || cls->kind == SYNC_READ_LOCAL_IN)
			return find_local(cls, event);
		return cls->kind == SYNC_READ_CAPTURE
			       ? find_capture(cls, event)
			       : ky_handle_find(&cls->fields[0], event, KY_SCOPE_PAYLOAD,
						"network_header");
	}
	cls->kind = SYNC_READ_LOG;
	if (strcmp(event->name, "log") == 0)
		return ky_handle_find(&cls->fields[0], event, KY_SCOPE_PAYLOAD, "message") ||
		       ky_handle_find(&cls->fields[0], event, KY_SCOPE_PAYLOAD, "MESSAGE");
	cls->kind = SYNC_READ_GUESTS;
	cls->guest = ky_guest_event_find(&reader->arena, reader->has_entries, event);
	if (cls->guest)
		return true;
	cls->kind = SYNC_READ_STREAMS;
	cls->stream = ky_stream_event_find(&reader->arena, event);
	return cls->stream != NULL;
}

static int add_class(struct sync_reader *reader, uint32_t machine,
		     const struct ky_event_class *event)
{
	struct sync_read_class *cls = ky_arena_new(&reader->arena, struct sync_read_class);

	if (!cls)
		return KYMO_E_MEMORY;
	cls->machine = machine;
	if (!sync_read_find_kind(reader, cls, event))
		return KYMO_OK;
	if (ky_map_set(&reader->classes, (uintptr_t)event, cls) < 0)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < reader->events.len; i++)
		if (strcmp(reader->events.data[i], event->name) == 0)
			return KYMO_OK;
	return ky_vec_push(&reader->events, event->name);
}

static int find_classes(struct sync_reader *reader)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < reader->run->set->traces.len; i++) {
		const struct ky_trace *trace = reader->run->set->traces.data[i];

		for (size_t e = 0; e < trace->cls->events.len && !ret; e++)
			if (trace->cls->events.data[e]->name[0])
				ret = add_class(reader, reader->run->of_trace[i],
						trace->cls->events.data[e]);
	}
	return ret;
}

/* ---- packets -------------------------------------------------------------------------- */

struct packet {
	uint64_t src, dst; /* hashes of the addresses */
	int order;	   /* of the addresses' texts */
	uint32_t sport, dport, seq, ack;
};

static uint64_t packet_key(const struct packet *packet)
{
	const uint64_t words[] = {packet->src, packet->dst,
				  (uint64_t)packet->sport << 32 | packet->dport,
				  (uint64_t)packet->seq << 32 | packet->ack};

	return ky_hash_bytes(words, sizeof(words));
}

static int on_capture(struct sync_reader *reader, const struct sync_read_class *cls,
		      const struct ky_event *event)
{
	struct packet packet;
	size_t n_src, n_dst;
	const char *src = ky_get_text(event, &cls->fields[CAPTURE_SRC], &n_src);
	const char *dst = ky_get_text(event, &cls->fields[CAPTURE_DST], &n_dst);
	int order = memcmp(src, dst, n_src < n_dst ? n_src : n_dst);

	order = order ? order : n_src < n_dst ? -1 : n_src > n_dst;
	if (!order)
		return KYMO_OK; /* to itself */
	packet.src = ky_hash_bytes(src, n_src);
	packet.dst = ky_hash_bytes(dst, n_dst);
	packet.sport = (uint32_t)ky_get_u64(event, &cls->fields[CAPTURE_SPORT], 0);
	packet.dport = (uint32_t)ky_get_u64(event, &cls->fields[CAPTURE_DPORT], 0);
	packet.seq = (uint32_t)ky_get_u64(event, &cls->fields[CAPTURE_SEQ], 0);
	packet.ack = (uint32_t)ky_get_u64(event, &cls->fields[CAPTURE_ACK], 0);
	reader->run->machines.data[cls->machine].n_packets++;
	return ky_sync_see(reader->run, cls->machine, packet_key(&packet),
			   order < 0 ? KY_SYNC_BY_LOWER : KY_SYNC_BY_HIGHER,
			   ky_hash_u64(packet.src ^ packet.dst) | 1, event->ns);
}

/* The elements of the array, which are its bytes. */
static uint64_t address_of(const struct ky_value *array)
{
	uint8_t bytes[16] = {0};

	for (uint32_t i = 0; i < array->n_children && i < sizeof(bytes); i++)
		if (array->n_below == array->n_children)
			bytes[i] = (uint8_t)array[1 + i].u;
	return ky_hash_bytes(bytes, sizeof(bytes));
}

/* From LTTng's headers: structures in variants, whose members have the names of the protocols. */
static bool read_headers(const struct ky_values *values, struct packet *packet)
{
	uint64_t protocol = TCP_PROTOCOL;
	unsigned int seen = 0;

	for (size_t i = 0; i < values->list.len; i++) {
		const struct ky_value *value = &values->list.data[i];
		const char *name = value->name ? value->name : "";
		uint32_t number = value->n_below ? 0 : (uint32_t)value->u;

		if (strcmp(name, "saddr") == 0)
			packet->src = address_of(value), seen |= 1;
		else if (strcmp(name, "daddr") == 0)
			packet->dst = address_of(value), seen |= 2;
		else if (strcmp(name, "source_port") == 0)
			packet->sport = number, seen |= 4;
		else if (strcmp(name, "dest_port") == 0)
			packet->dport = number, seen |= 8;
		else if (strcmp(name, "seq") == 0)
			packet->seq = number, seen |= 16;
		else if (strcmp(name, "ack_seq") == 0)
			packet->ack = number, seen |= 32;
		else if (strcmp(name, "protocol") == 0 && !value->n_below)
			protocol = value->u;
	}
	return seen == 63 && protocol == TCP_PROTOCOL;
}

static int on_headers(struct sync_reader *reader, const struct sync_read_class *cls,
		      const struct ky_event *event)
{
	struct packet packet = {0};
	int ret = ky_handle_decode(&reader->values, event, &cls->fields[0], NULL);

	if (ret == KYMO_E_MEMORY)
		return ret;
	if (ret <= 0 || !read_headers(&reader->values, &packet))
		return KYMO_OK;
	reader->run->machines.data[cls->machine].n_packets++;
	return ky_sync_see(reader->run, cls->machine, packet_key(&packet),
			   cls->kind == SYNC_READ_QUEUE ? KY_SYNC_SENT : KY_SYNC_RECEIVED, 0,
			   event->ns);
}

static int on_local(struct sync_reader *reader, const struct sync_read_class *cls,
		    const struct ky_event *event)
{
	uint64_t words[LOCAL_FIELDS];

	for (int i = 0; i < LOCAL_FIELDS; i++)
		words[i] = ky_get_u64(event, &cls->fields[i], 0);
	reader->run->machines.data[cls->machine].n_packets++;
	return ky_sync_see(reader->run, cls->machine, ky_hash_bytes(words, sizeof(words)),
			   cls->kind == SYNC_READ_LOCAL_OUT ? KY_SYNC_SENT : KY_SYNC_RECEIVED, 0,
			   event->ns);
}

static int on_mark(struct sync_reader *reader, const struct sync_read_class *cls,
		   const struct ky_event *event)
{
	uint64_t number, key;
	size_t len;
	const char *text;

	if (ky_get_number(event, &cls->fields[0], &number)) {
		key = ky_hash_u64(number);
	} else {
		text = ky_get_text(event, &cls->fields[0], &len);
		while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
			len--;
		if (!len)
			return KYMO_OK;
		key = ky_hash_bytes(text, len);
	}
	reader->run->machines.data[cls->machine].n_marks++;
	return ky_sync_see(reader->run, cls->machine, key, KY_SYNC_MARK, 0, event->ns);
}

/* Those long before and after the machine's recording say nothing of it. */
static void on_log(struct sync_reader *reader, const struct sync_read_class *cls,
		   const struct ky_event *event)
{
	const struct ky_sync_facts *facts = &reader->run->facts[cls->machine];
	size_t len;
	const char *text = ky_get_text(event, &cls->fields[0], &len);

	if (!facts->has_times || (event->ns >= facts->begin_ns - LOG_AROUND_NS &&
				  event->ns <= facts->end_ns + LOG_AROUND_NS))
		ky_sync_ptp_see(&reader->run->ptps[cls->machine], text, len, event->ns);
}

/* ---- all events ----------------------------------------------------------------------- */

static int on_event(struct sync_reader *reader, const struct ky_event *event)
{
	const struct sync_read_class *cls = ky_map_get(&reader->classes, (uintptr_t)event->cls);

	if (!cls || event->ns == INT64_MIN)
		return KYMO_OK;
	if (cls->kind == SYNC_READ_CAPTURE)
		return on_capture(reader, cls, event);
	if (cls->kind == SYNC_READ_MARK)
		return on_mark(reader, cls, event);
	if (cls->kind == SYNC_READ_STREAMS)
		return ky_streams_see(&reader->streams, cls->stream, cls->machine, event);
	if (cls->kind == SYNC_READ_GUESTS)
		return ky_guests_see(&reader->guests, cls->guest, cls->machine, event);
	if (cls->kind == SYNC_READ_LOCAL_OUT || cls->kind == SYNC_READ_LOCAL_IN)
		return on_local(reader, cls, event);
	if (cls->kind == SYNC_READ_LOG)
		on_log(reader, cls, event);
	return cls->kind == SYNC_READ_LOG ? KYMO_OK : on_headers(reader, cls, event);
}

static int read_batches(struct sync_reader *reader, struct ky_flow *flow, struct kymo_error *err)
{
	const struct ky_sync_options *options = reader->run->options;
	struct ky_batch batch;
	uint64_t n = 0, told = 0;
	int ret;

	while ((ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events; i++)
			if (on_event(reader, &batch.events[i]) < 0)
				return ky_error_nomem(err);
		n += batch.n_events;
		if (n - told < PROGRESS_EVERY)
			continue;
		told = n;
		if (options->progress)
			options->progress(options->data, n);
		if (options->stop && options->stop())
			return ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
	}
	return ret;
}

static int sync_read_read_all(struct sync_reader *reader, struct kymo_error *err)
{
	struct ky_selection selection;
	struct ky_flow *flow;
	int ret;

	ky_selection_init(&selection);
	selection.events = reader->events.data;
	selection.n_events = reader->events.len;
	ret = ky_flow_open_selected(reader->run->set, &selection, &flow, err);
	if (ret < 0)
		return ret;
	ret = read_batches(reader, flow, err);
	ky_flow_close(flow);
	if (!ret && (ky_streams_match(&reader->streams, reader->run) < 0 ||
		     ky_guests_match(&reader->guests, reader->run) < 0))
		ret = ky_error_nomem(err);
	return ret;
}

int ky_sync_read(struct ky_sync_run *run, struct kymo_error *err)
{
	struct sync_reader reader = {.run = run};
	int ret;

	ky_arena_init(&reader.arena);
	ky_map_init(&reader.classes);
	ky_values_init(&reader.values);
	ky_streams_init(&reader.streams);
	reader.has_entries = ky_guests_have_entries(run->set);
	ret = ky_guests_init(&reader.guests, run->machines.len);
	ret = ret < 0 || find_classes(&reader) < 0 ? ky_error_nomem(err) : KYMO_OK;
	if (!ret && reader.events.len)
		ret = sync_read_read_all(&reader, err);
	ky_guests_fini(&reader.guests);
	ky_streams_fini(&reader.streams);
	ky_values_fini(&reader.values);
	ky_vec_fini(&reader.events);
	ky_map_fini(&reader.classes);
	ky_arena_fini(&reader.arena);
	return ret;
}
