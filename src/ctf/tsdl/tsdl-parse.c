/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include <string.h>

#include "base/error.h"
#include "ctf/resolve/resolve.h"

/* An attribute that may stand only once per block: @seen has a bit for each. */
static int once(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, unsigned int *seen,
		unsigned int bit)
{
	if (*seen & bit)
		return ky_tsdl_fail(p, attr->name_at, "%s stands here twice", attr->name);
	*seen |= bit;
	return KYMO_OK;
}

/* The index of @name in @names, or @n. */
static size_t index_of(const char *name, const char *const *names, size_t n)
{
	size_t i = 0;

	while (i < n && strcmp(name, names[i]) != 0)
		i++;
	return i;
}

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- trace ------------------------------------------------------------------------------- */

static int trace_version(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
			 uint64_t expected)
{
	uint64_t value;
	int ret = ky_tsdl_attr_u64(p, attr, &value);

	if (ret == KYMO_OK && value != expected)
		return ky_tsdl_unsupported(p, attr->value_at, "this is not version 1.8 of CTF");
	return ret;
}

static int trace_byte_order(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr)
{
	bool big;
	int ret = ky_tsdl_attr_byte_order(p, attr, &big);

	if (ret == KYMO_OK && !strcmp(attr->text, "native"))
		return ky_tsdl_fail(p, attr->value_at, "the trace's byte_order must be le or be");
	return ret;
}

static int trace_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	static const char *const names[] = {"major", "minor", "uuid", "byte_order",
					    "packet.header"};
	struct ky_trace_class *trace = p->trace;
	size_t index = index_of(attr->name, names, N_OF(names));
	int ret;

	if (index == N_OF(names))
		return KYMO_OK;
	ret = once(p, attr, data, 1u << index);
	if (ret < 0)
		return ret;
	switch (index) {
	case 0:
		return trace_version(p, attr, 1);
	case 1:
		return trace_version(p, attr, 8);
	case 2:
		trace->has_uuid = true;
		return ky_tsdl_attr_uuid(p, attr, trace->uuid);
	case 3:
		return trace_byte_order(p, attr);
	default:
		return ky_tsdl_attr_struct(p, attr, &trace->packet_header);
	}
}

#define TRACE_BYTE_ORDER 8u

static int trace_block(struct ky_tsdl_parser *p)
{
	const struct ky_token *token = p->at - 1;
	unsigned int seen = 0;
	int ret;

	if (p->has_trace)
		return ky_tsdl_fail(p, token, "there are two trace blocks");
	p->has_trace = true;
	ret = ky_tsdl_block(p, true, trace_attr, &seen);
	if (ret == KYMO_OK && !(seen & TRACE_BYTE_ORDER))
		return ky_tsdl_fail(p, token, "the trace block has no byte_order");
	return ret;
}

/* ---- env --------------------------------------------------------------------------------- */

/* The entry of that name, added if none exists; NULL without memory. */
static struct ky_env *take_env(struct ky_tsdl_parser *p, const char *name)
{
	struct ky_trace_class *trace = p->trace;
	size_t number = (size_t)(uintptr_t)ky_names_get(&p->env, name);

	if (number)
		return &trace->env.data[number - 1];
	if (ky_env_add_number(trace, name, 0) < 0)
		return NULL;
	number = trace->env.len;
	if (ky_names_set(&p->env, trace->env.data[number - 1].name, (void *)(uintptr_t)number) < 0)
		return NULL;
	return &trace->env.data[number - 1];
}

static int env_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	struct ky_env *env;

	if (attr->kind == KY_ATTR_TYPE)
		return ky_tsdl_fail(p, attr->value_at, "the environment holds no types");
	env = take_env(p, attr->name);
	if (!env)
		return ky_error_nomem(p->err);
	env->is_text = attr->kind != KY_ATTR_NUMBER;
	if (env->is_text)
		return ky_tsdl_attr_text(p, attr, &env->text);
	env->number = (int64_t)(attr->negative ? -attr->number : attr->number);
	return KYMO_OK;
}

/* ---- clock ------------------------------------------------------------------------------- */

struct clock_block {
	unsigned int seen;
	struct ky_clock_class clock;
};

static int clock_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	static const char *const names[] = {"name",	 "uuid",   "description", "freq",
					    "precision", "offset", "offset_s",	  "absolute"};
	struct clock_block *block = data;
	struct ky_clock_class *clock = &block->clock;
	size_t index = index_of(attr->name, names, N_OF(names));
	int ret;

	if (index == N_OF(names))
		return KYMO_OK;
	ret = once(p, attr, &block->seen, 1u << index);
	if (ret < 0)
		return ret;
	switch (index) {
	case 0:
		return ky_tsdl_attr_text(p, attr, &clock->name);
	case 1:
		clock->has_uuid = true;
		return ky_tsdl_attr_uuid(p, attr, clock->uuid);
	case 2:
		return ky_tsdl_attr_text(p, attr, &clock->description);
	case 3:
		ret = ky_tsdl_attr_u64(p, attr, &clock->frequency_hz);
		if (ret == KYMO_OK && !clock->frequency_hz)
			return ky_tsdl_fail(p, attr->value_at, "a clock's frequency cannot be 0");
		return ret;
	case 4:
		return ky_tsdl_attr_u64(p, attr, &clock->precision_cycles);
	case 5:
		return ky_tsdl_attr_i64(p, attr, &clock->offset_cycles);
	case 6:
		return ky_tsdl_attr_i64(p, attr, &clock->offset_s);
	default:
		return ky_tsdl_attr_bool(p, attr, &clock->is_unix_epoch);
	}
}

static int clock_block(struct ky_tsdl_parser *p)
{
	const struct ky_token *token = p->at - 1;
	struct clock_block block = {.clock.frequency_hz = 1000000000};
	struct ky_clock_class *clock;
	int ret = ky_tsdl_block(p, false, clock_attr, &block);

	if (ret < 0)
		return ret;
	if (!block.clock.name || !*block.clock.name)
		return ky_tsdl_fail(p, token, "this clock has no name");
	if (ky_names_get(&p->clocks, block.clock.name))
		return ky_tsdl_fail(p, token, "there are two clocks \"%.200s\"", block.clock.name);
	clock = ky_clock_class_new(p->trace, block.clock.name);
	if (!clock || ky_names_set(&p->clocks, clock->name, clock) < 0)
		return ky_error_nomem(p->err);
	*clock = block.clock;
	return ky_clock_finish(clock, p->err);
}

/* ---- stream ------------------------------------------------------------------------------ */

struct stream_block {
	unsigned int seen;
	uint64_t id;
	struct ky_field_class *packet_context, *event_header, *event_context;
};

#define STREAM_ID 1u

static int stream_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	static const char *const names[] = {"id", "packet.context", "event.header",
					    "event.context"};
	struct stream_block *block = data;
	size_t index = index_of(attr->name, names, N_OF(names));
	int ret;

	if (index == N_OF(names))
		return KYMO_OK;
	ret = once(p, attr, &block->seen, 1u << index);
	if (ret < 0)
		return ret;
	switch (index) {
	case 0:
		return ky_tsdl_attr_u64(p, attr, &block->id);
	case 1:
		return ky_tsdl_attr_struct(p, attr, &block->packet_context);
	case 2:
		return ky_tsdl_attr_struct(p, attr, &block->event_header);
	default:
		return ky_tsdl_attr_struct(p, attr, &block->event_context);
	}
}

static int stream_block(struct ky_tsdl_parser *p)
{
	const struct ky_token *token = p->at - 1;
	struct stream_block block = {.seen = 0};
	struct ky_stream_class *stream;
	int ret = ky_tsdl_block(p, true, stream_attr, &block);

	if (ret < 0)
		return ret;
	if (ky_map_get(&p->trace->streams_by_id, block.id))
		return ky_tsdl_fail(p, token, "there are two streams with id %llu",
				    (unsigned long long)block.id);
	stream = ky_stream_class_new(p->trace, block.id);
	if (!stream)
		return ky_error_nomem(p->err);
	stream->has_id = block.seen & STREAM_ID;
	stream->packet_context = block.packet_context;
	stream->event_header = block.event_header;
	stream->event_context = block.event_context;
	return KYMO_OK;
}

/* ---- event ------------------------------------------------------------------------------- */

struct event_block {
	unsigned int seen;
	struct ky_tsdl_event event;
};

static int event_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	static const char *const names[] = {"name",	     "id",	"stream_id", "loglevel",
					    "model.emf.uri", "context", "fields"};
	struct event_block *block = data;
	struct ky_tsdl_event *event = &block->event;
	size_t index = index_of(attr->name, names, N_OF(names));
	int ret;

	if (index == N_OF(names))
		return KYMO_OK;
	ret = once(p, attr, &block->seen, 1u << index);
	if (ret < 0)
		return ret;
	switch (index) {
	case 0:
		return ky_tsdl_attr_text(p, attr, &event->name);
	case 1:
		event->has_id = true;
		return ky_tsdl_attr_u64(p, attr, &event->id);
	case 2:
		event->has_stream_id = true;
		return ky_tsdl_attr_u64(p, attr, &event->stream_id);
	case 3:
		event->has_loglevel = true;
		return ky_tsdl_attr_i64(p, attr, &event->loglevel);
	case 4:
		return ky_tsdl_attr_text(p, attr, &event->emf_uri);
	case 5:
		return ky_tsdl_attr_struct(p, attr, &event->context);
	default:
		return ky_tsdl_attr_struct(p, attr, &event->payload);
	}
}

static int event_block(struct ky_tsdl_parser *p)
{
	struct event_block block = {.event.at = p->at - 1};
	int ret = ky_tsdl_block(p, true, event_attr, &block);

	if (ret < 0)
		return ret;
	return ky_vec_push(&p->events, block.event) < 0 ? ky_error_nomem(p->err) : KYMO_OK;
}

/* Which stream does it belong to? */
static int stream_of_event(struct ky_tsdl_parser *p, const struct ky_tsdl_event *event,
			   struct ky_stream_class **stream)
{
	struct ky_trace_class *trace = p->trace;

	if (!trace->streams.len) {
		/* No stream block at all: one stream that has nothing to describe. */
		*stream = ky_stream_class_new(trace, 0);
		if (!*stream)
			return ky_error_nomem(p->err);
		(*stream)->has_id = false;
	}
	if (!event->has_stream_id && trace->streams.len > 1)
		return ky_tsdl_fail(p, event->at,
				    "this event has no stream_id, but there are %zu streams",
				    trace->streams.len);
	*stream = event->has_stream_id ? ky_map_get(&trace->streams_by_id, event->stream_id)
				       : trace->streams.data[0];
	if (!*stream)
		return ky_tsdl_fail(p, event->at, "there is no stream with id %llu",
				    (unsigned long long)event->stream_id);
	return KYMO_OK;
}

static int join_event(struct ky_tsdl_parser *p, const struct ky_tsdl_event *event)
{
	struct ky_stream_class *stream = NULL;
	struct ky_event_class *cls;
	int ret = stream_of_event(p, event, &stream);

	if (ret < 0)
		return ret;
	if (!event->has_id && stream->events.len)
		return ky_tsdl_fail(p, event->at,
				    "this event has no id, but its stream has others");
	if (ky_map_get(&stream->events_by_id, event->id))
		return ky_tsdl_fail(p, event->at, "stream %llu has two events with id %llu",
				    (unsigned long long)stream->id, (unsigned long long)event->id);
	cls = ky_event_class_new(stream, event->id, event->name);
	if (!cls)
		return ky_error_nomem(p->err);
	cls->emf_uri = event->emf_uri;
	cls->has_loglevel = event->has_loglevel;
	if (event->has_loglevel)
		cls->loglevel = event->loglevel;
	cls->context = event->context;
	cls->payload = event->payload;
	return KYMO_OK;
}

/* ---- the text ---------------------------------------------------------------------------- */

/* From '{' past its '}'. */
static int skip_block(struct ky_tsdl_parser *p)
{
	size_t depth = 0;
	int ret = ky_tsdl_is(p, '{') ? KYMO_OK : ky_tsdl_expected(p, "'{'");

	if (ret < 0)
		return ret;
	do {
		if (p->at->kind == KY_TOKEN_END)
			return ky_tsdl_expected(p, "'}'");
		if (ky_tsdl_is(p, '{'))
			depth++;
		else if (ky_tsdl_is(p, '}'))
			depth--;
		p->at++;
	} while (depth);
	return KYMO_OK;
}

static int block(struct ky_tsdl_parser *p)
{
	uint8_t keyword = p->at->kind == KY_TOKEN_WORD ? p->at->keyword : KY_KEYWORD_NONE;
	unsigned int unused = 0;

	switch (keyword) {
	case KY_KEYWORD_TRACE:
		p->at++;
		return trace_block(p);
	case KY_KEYWORD_ENV:
		p->at++;
		return ky_tsdl_block(p, true, env_attr, &unused);
	case KY_KEYWORD_STREAM:
		p->at++;
		return stream_block(p);
	case KY_KEYWORD_EVENT:
		p->at++;
		return event_block(p);
	case KY_KEYWORD_CLOCK:	  /* read beforehand */
	case KY_KEYWORD_CALLSITE: /* readers do not use it */
		p->at++;
		return skip_block(p);
	default:
		return ky_tsdl_expected(p, "a block, a typealias, a typedef, a struct, a variant "
					   "or an enum");
	}
}

static int statements(struct ky_tsdl_parser *p)
{
	int ret = KYMO_OK;

	while (ret == KYMO_OK && p->at->kind != KY_TOKEN_END) {
		if (ky_tsdl_accept(p, ';'))
			continue;
		if (ky_tsdl_is_declaration(p)) {
			ret = ky_tsdl_declaration(p);
			continue;
		}
		ret = block(p);
		if (ret == KYMO_OK)
			ret = ky_tsdl_expect(p, ';', "';' after the block");
	}
	return ret;
}

static bool tsdl_parse_is_word(const struct ky_token *token, const char *text)
{
	return token->kind == KY_TOKEN_WORD && strcmp(token->text, text) == 0;
}

/*
 * What types need to know before the text says it: the trace's byte order, and the clocks.
 * Mistakes are left to the real parse.
 */
static int look_ahead(struct ky_tsdl_parser *p)
{
	enum ky_keyword where = KY_KEYWORD_NONE;
	size_t depth = 0;

	for (p->at = p->tokens.data; p->at->kind != KY_TOKEN_END; p->at++) {
		if (ky_tsdl_is(p, '{')) {
			depth++;
		} else if (ky_tsdl_is(p, '}')) {
			depth -= depth > 0;
		} else if (!depth && p->at->kind == KY_TOKEN_WORD) {
			where = p->at->keyword;
			if (where == KY_KEYWORD_CLOCK) {
				int ret;

				p->at++;
				ret = clock_block(p);
				if (ret < 0)
					return ret;
				p->at--;
			}
		} else if (depth == 1 && where == KY_KEYWORD_TRACE &&
			   tsdl_parse_is_word(p->at, "byte_order") &&
			   p->at[1].kind == KY_TOKEN_PUNCT && p->at[1].punct == '=') {
			p->trace->big_endian = tsdl_parse_is_word(&p->at[2], "be") ||
					       tsdl_parse_is_word(&p->at[2], "network");
		}
	}
	p->at = p->tokens.data;
	return KYMO_OK;
}

static int tsdl_parse_parse(struct ky_tsdl_parser *p, const char *text, size_t len_bytes)
{
	int ret = ky_tsdl_lex(text, len_bytes, &p->arena, &p->tokens, p->err);

	if (ret == KYMO_OK)
		ret = look_ahead(p);
	if (ret == KYMO_OK)
		ret = ky_tsdl_scope_push(p);
	if (ret == KYMO_OK)
		ret = statements(p);
	if (ret == KYMO_OK && !p->has_trace)
		ret = ky_tsdl_fail(p, p->at, "there is no trace block");
	for (size_t i = 0; i < p->events.len && ret == KYMO_OK; i++)
		ret = join_event(p, &p->events.data[i]);
	if (ret == KYMO_OK)
		ret = ky_tsdl_bind_scopes(p);
	if (ret < 0)
		return ret;
	ky_vec_foreach(&p->trace->clocks, clock)
		(*clock)->is_unix_epoch |= ky_clock_is_lttng_monotonic(p->trace, *clock);
	return ky_trace_class_finish(p->trace, true, p->err);
}

int ky_tsdl_parse(const char *text, size_t len_bytes, struct ky_trace_class **trace,
		  struct kymo_error *err)
{
	struct kymo_error own;
	struct ky_tsdl_parser p = {.err = err ? err : &own, .variant_budget = KY_VARIANT_BUDGET};
	int ret;

	p.trace = ky_trace_class_new();
	if (!p.trace)
		return ky_error_nomem(err);
	ky_arena_init(&p.arena);
	ky_map_init(&p.copies);
	ky_child_tables_init(&p.tables);
	ky_names_init(&p.env);
	ky_names_init(&p.clocks);
	ret = tsdl_parse_parse(&p, text, len_bytes);
	if (ret == KYMO_E_MEMORY)
		ky_error_nomem(p.err);
	while (p.scope)
		ky_tsdl_scope_pop(&p);
	ky_vec_fini(&p.tokens);
	ky_vec_fini(&p.open);
	ky_vec_fini(&p.events);
	ky_map_fini(&p.copies);
	ky_child_tables_fini(&p.tables);
	ky_names_fini(&p.env);
	ky_names_fini(&p.clocks);
	ky_arena_fini(&p.arena);
	if (ret < 0)
		ky_trace_class_free(p.trace);
	else
		*trace = p.trace;
	return ret;
}
