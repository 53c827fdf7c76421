/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace of random event types and values, and reads it back: both must tell the same.
 *
 *	write-random DIRECTORY 1.8|simple|2 SEED
 *
 * simple: CTF 1.8 without what babeltrace 1 stumbles over.
 *
 * What is written and what is read become text, a value per line, for each data stream.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/reader.h>
#include <kymo/writer.h>

#define N_OUTPUTS 3
#define N_TYPES	  5
#define N_EVENTS  400
#define MAX_NODES 20000

/* ---- randomness ------------------------------------------------------------------------------ */

static uint64_t seed;
static bool ctf2, simple;

/* xorshift64* */
static uint64_t random_bits(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * UINT64_C(2685821657736338717);
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)((random_bits() >> 33) % n);
}

/* ---- text ------------------------------------------------------------------------------------ */

struct text {
	char *data;
	size_t len, size;
};

static struct text written[N_OUTPUTS], was_read[N_OUTPUTS], *to;

__attribute__((format(printf, 1, 2))) static void tell(const char *fmt, ...)
{
	va_list args;

	if (to->size - to->len < 256) {
		to->size = to->size * 2 + 4096;
		to->data = (char *)realloc(to->data, to->size);
		if (!to->data)
			abort();
	}
	va_start(args, fmt);
	to->len += (size_t)vsnprintf(to->data + to->len, 256, fmt, args);
	va_end(args);
}

/* ---- definitions: a tree that remembers what was defined ------------------------------------- */

enum what { NUMBER, REAL, TEXT, BYTES, STRUCT, ARRAY, SEQUENCE, VARIANT, OPTIONAL, N_WHAT };

struct node {
	enum what what;
	enum kymo_field_kind kind;
	unsigned int bits, n; /* n: elements, options, bytes (0: they vary) */
	struct node *first, *next;
};

static struct node nodes[MAX_NODES];
static size_t n_nodes;
static enum kymo_byte_order byte_order; /* of the data stream at hand */
static bool in_context;			/* of one event type */
static bool in_sequence;		/* what is defined next is the element of one */

static struct node *new_node(enum what what)
{
	struct node *node = &nodes[n_nodes++];

	if (n_nodes == MAX_NODES)
		abort();
	node->what = what;
	return node;
}

static struct node *define(struct kymo_fields *fields, const char *name, unsigned int depth);

static void define_number(struct kymo_fields *fields, const char *name, struct node *node)
{
	static const enum kymo_field_kind kinds[] = {
		KYMO_FIELD_UINT, KYMO_FIELD_SINT,    KYMO_FIELD_UINT,
		KYMO_FIELD_SINT, KYMO_FIELD_BITS,    KYMO_FIELD_BITMAP,
		KYMO_FIELD_BOOL, KYMO_FIELD_VARUINT, KYMO_FIELD_VARSINT};
	static const unsigned int bases[] = {10, 10, 16, 8, 2};
	struct kymo_number_options o = kymo_number_options_init();
	struct kymo_enum_def *labels;

	o.kind = node->kind = kinds[below(ctf2 ? 9 : 4)];
	o.bits = node->bits = below(3) ? 1 + below(64) : 8u << below(4);
	o.align_bits = below(3) ? 0 : 1u << below(7);
	/* Babeltrace 1 aborts on others that lie on whole bytes. */
	if (!ctf2 && o.bits % 8 == 0 && (o.bits & (o.bits - 1)))
		o.bits = node->bits = 32;
	o.byte_order = byte_order;
	o.base = bases[below(5)];
	/* Some of babeltrace 2.0's hexadecimal numbers are all 0. */
	if (o.kind == KYMO_FIELD_SINT || (!ctf2 && o.base == 16))
		o.base = 10;
	if (simple)
		o.align_bits = 8;
	labels = kymo_fields_add_number(fields, name, &o);
	if (o.kind == KYMO_FIELD_BITMAP)
		kymo_enum_def_add(labels, "a flag", 0, (int64_t)o.bits / 2);
	else if (o.kind <= KYMO_FIELD_SINT && o.kind >= KYMO_FIELD_UINT && !below(3)) {
		kymo_enum_def_add(labels, "zero", 0, 0);
		if (o.kind == KYMO_FIELD_SINT)
			kymo_enum_def_add(labels, "minus one", -1, -1);
	}
}

static void define_real(struct kymo_fields *fields, const char *name, struct node *node)
{
	struct kymo_number_options o = kymo_number_options_init();

	o.kind = node->kind = KYMO_FIELD_FLOAT;
	o.bits = node->bits = ctf2 ? 16u << below(4) : 32u << below(2);
	o.align_bits = simple ? 8 : 8u << below(4);
	o.byte_order = byte_order;
	kymo_fields_add_number(fields, name, &o);
}

static void define_text(struct kymo_fields *fields, const char *name, struct node *node, bool vary)
{
	struct kymo_text_options o = kymo_text_options_init();

	if (node->what == BYTES) {
		o.kind = KYMO_FIELD_BLOB;
		o.size_bytes = node->n = vary ? below(2) * 5 : 5;
	} else {
		o.kind = below(2) ? KYMO_FIELD_STRING : KYMO_FIELD_TEXT;
		o.encoding = (enum kymo_encoding)(KYMO_ENCODING_UTF8 + (ctf2 ? below(6) : 0));
		if (o.encoding == KYMO_ENCODING_ASCII)
			o.encoding = KYMO_ENCODING_UTF8;
		if (o.kind == KYMO_FIELD_TEXT)
			o.size_bytes = vary && below(2) && !simple ? 0 : 96;
	}
	kymo_fields_add_text(fields, name, &o);
}

static void define_members(struct kymo_fields *fields, struct node *node, unsigned int depth)
{
	struct node **next = &node->first;
	char name[16];

	node->n = 1 + below(5);
	for (unsigned int i = 0; i < node->n; i++) {
		/* Babeltrace 1 finds lengths and tags by their names, anywhere. */
		snprintf(name, sizeof(name), "m%zu", n_nodes);
		*next = define(fields, name, depth + 1);
		next = &(*next)->next;
	}
}

static void define_variant(struct kymo_fields *fields, const char *name, struct node *node,
			   unsigned int depth)
{
	static const char *const names[] = {"int", "first", "_x", "struct"};
	struct kymo_variant_def *variant = kymo_fields_add_variant(fields, name);
	struct node **next = &node->first;

	node->n = 1 + below(4);
	for (unsigned int i = 0; i < node->n; i++) {
		*next = define(kymo_variant_def_add(variant, names[i]), NULL, depth + 1);
		next = &(*next)->next;
	}
}

/* @name: NULL for elements and options, which cannot be all. */
static struct node *define(struct kymo_fields *fields, const char *name, unsigned int depth)
{
	enum what what = (enum what)below(depth < 4 ? N_WHAT : BYTES + 1);
	struct node *node;

	if (!ctf2 && (what == BYTES || what == OPTIONAL))
		what = NUMBER;
	/* Babeltrace 2.0 aborts on lengths and tags in the contexts of event types. */
	if (!ctf2 && in_context && (what == TEXT || what == SEQUENCE || what == VARIANT))
		what = REAL;
	if (simple && (what == VARIANT || (what == SEQUENCE && depth > 1)))
		what = NUMBER;
	if (!name && (what == SEQUENCE || what == VARIANT || what == OPTIONAL))
		what = STRUCT;
	/* Babeltrace 2.0 aborts on sequences of arrays; texts of a fixed size are arrays too. */
	if (!ctf2 && in_sequence && (what == ARRAY || what == TEXT))
		what = NUMBER;
	in_sequence = what == SEQUENCE;
	node = new_node(what);
	switch (what) {
	case NUMBER:
		define_number(fields, name, node);
		break;
	case REAL:
		define_real(fields, name, node);
		break;
	case TEXT:
	case BYTES:
		define_text(fields, name, node, name != NULL);
		break;
	case STRUCT:
		define_members(kymo_fields_add_struct(fields, name), node, depth);
		break;
	case ARRAY:
		node->n = 1 + below(4);
		node->first = define(kymo_fields_add_array(fields, name, node->n), NULL, depth + 1);
		break;
	case SEQUENCE:
		node->first = define(kymo_fields_add_sequence(fields, name), NULL, depth + 1);
		break;
	case VARIANT:
		define_variant(fields, name, node, depth);
		break;
	default:
		node->first = define(kymo_fields_add_optional(fields, name), NULL, depth + 1);
	}
	return node;
}

/* ---- values: written and told ----------------------------------------------------------------- */

static void put(struct kymo_output *output, const struct node *node);

static void put_number(struct kymo_output *output, const struct node *node)
{
	bool is_signed = node->kind == KYMO_FIELD_SINT || node->kind == KYMO_FIELD_VARSINT;
	bool varies = node->kind == KYMO_FIELD_VARUINT || node->kind == KYMO_FIELD_VARSINT;
	unsigned int bits = varies ? 64 : node->bits;
	uint64_t value = random_bits() >> (64 - bits) >> (below(2) ? below(bits) : 0);

	if (is_signed) {
		int64_t number = (int64_t)(value << (64 - bits)) >> (64 - bits);

		tell("i%" PRId64 "\n", number);
		kymo_output_i64(output, number);
	} else {
		tell("u%" PRIu64 "\n", value);
		kymo_output_u64(output, value);
	}
}

static void put_real(struct kymo_output *output, const struct node *node)
{
	double value = (double)((int)below(2001) - 1000) / 8;
	uint64_t bits = random_bits();

	/* The others do not hold every double. */
	if (node->bits >= 64 && below(2) && (bits >> 52 & 0x7ff) != 0x7ff)
		memcpy(&value, &bits, sizeof(value));
	tell("f%a\n", value);
	kymo_output_f64(output, value);
}

static void put_text(struct kymo_output *output)
{
	static const char *const texts[] = {"", "a", "text of some length", "h\xc3\xa9\xe2\x82\xac",
					    "\xf0\x9f\x98\x80 x"};
	/* Babeltrace 2.0 may show the text before instead of an empty one. */
	const char *text = texts[ctf2 ? below(5) : 1 + below(4)];

	tell("t%s\n", text);
	kymo_output_text(output, text);
}

static void put_bytes(struct kymo_output *output, const struct node *node)
{
	size_t len = node->n ? node->n : below(9);
	uint64_t data[2] = {random_bits(), random_bits()};

	tell("b%zu %02x\n", len, len ? ((unsigned char *)data)[len - 1] : 0u);
	kymo_output_bytes(output, data, len);
}

static void put_times(struct kymo_output *output, const struct node *node, unsigned int n)
{
	tell("n%u\n", n);
	while (n--)
		put(output, node);
}

static void put(struct kymo_output *output, const struct node *node)
{
	const struct node *child = node->first;
	unsigned int n;

	switch (node->what) {
	case NUMBER:
		put_number(output, node);
		break;
	case REAL:
		put_real(output, node);
		break;
	case TEXT:
		put_text(output);
		break;
	case BYTES:
		put_bytes(output, node);
		break;
	case STRUCT:
		for (; child; child = child->next)
			put(output, child);
		break;
	case ARRAY:
		put_times(output, child, node->n);
		break;
	case SEQUENCE:
		n = below(5);
		kymo_output_length(output, n);
		put_times(output, child, n);
		break;
	case VARIANT:
		n = below(node->n);
		kymo_output_option(output, n);
		while (n--)
			child = child->next;
		put(output, child);
		break;
	default:
		n = below(2);
		kymo_output_present(output, n);
		tell("p%u\n", n);
		if (n)
			put(output, child);
	}
}

/* ---- values: read and told -------------------------------------------------------------------- */

static void get_text(const struct kymo_value *value)
{
	char buffer[128];

	if (kymo_value_kind(value) != KYMO_FIELD_BLOB) {
		kymo_value_utf8(value, buffer, sizeof(buffer));
		tell("t%s\n", buffer);
	} else {
		size_t len;
		const unsigned char *data = (const unsigned char *)kymo_value_bytes(value, &len);

		tell("b%zu %02x\n", len, len ? data[len - 1] : 0u);
	}
}

static void get(const struct kymo_value *value)
{
	const struct kymo_value *child = kymo_value_first(value);
	enum kymo_field_kind kind = kymo_value_kind(value);
	size_t n = kymo_value_n_children(value);

	if (kind == KYMO_FIELD_SINT || kind == KYMO_FIELD_VARSINT)
		tell("i%" PRId64 "\n", kymo_value_i64(value));
	else if (kind == KYMO_FIELD_FLOAT)
		tell("f%a\n", kymo_value_f64(value));
	else if (kind <= KYMO_FIELD_VARUINT)
		tell("u%" PRIu64 "\n", kymo_value_u64(value));
	else if (kind <= KYMO_FIELD_BLOB)
		get_text(value);
	else if (kind == KYMO_FIELD_ARRAY)
		tell("n%zu\n", n);
	else if (kind == KYMO_FIELD_OPTIONAL)
		tell("p%zu\n", n);
	for (size_t i = 0; i < n; i++) {
		const char *name = kymo_value_name(child);

		/* Lengths and tags are the writer's own. */
		if (!name || name[0] != '_')
			get(child);
		child = kymo_value_next(child);
	}
}

static int get_event(const struct kymo_event *event, struct kymo_values *values,
		     struct kymo_error *err)
{
	static const enum kymo_scope scopes[] = {KYMO_SCOPE_STREAM_CONTEXT,
						 KYMO_SCOPE_EVENT_CONTEXT, KYMO_SCOPE_PAYLOAD};
	const struct kymo_value *root;

	tell("event %s %" PRIu64 "\n", kymo_event_class_name(event->event_class), event->cycles);
	for (int i = 0; i < 3; i++) {
		int ret = kymo_event_values(event, scopes[i], values, &root, err);

		if (ret < 0)
			return ret;
		if (ret)
			get(root);
	}
	return 1;
}

static int get_all(const char *path, struct kymo_error *err)
{
	struct kymo_values *values = kymo_values_new();
	struct kymo_reader *reader;
	struct kymo_batch batch;
	int ret = kymo_reader_open(&path, 1, NULL, &reader, err);

	if (ret < 0)
		return ret;
	while (ret >= 0 && (ret = kymo_reader_next(reader, &batch, err)) > 0) {
		kymo_batch_foreach(&batch, event) {
			to = &was_read[event->cpu];
			if (ret > 0)
				ret = get_event(event, values, err);
		}
	}
	kymo_reader_close(reader);
	kymo_values_free(values);
	return ret;
}

/* ---- the trace -------------------------------------------------------------------------------- */

struct type {
	struct kymo_event_def *def;
	struct node *context, *fields;
	char name[16];
};

static struct type types[N_OUTPUTS][N_TYPES];
static struct node *contexts[N_OUTPUTS];
static struct kymo_stream_def *streams[N_OUTPUTS];

static struct node *define_scope(struct kymo_fields *fields)
{
	struct node *node = new_node(STRUCT);

	define_members(fields, node, 1);
	return node;
}

static void define_stream(struct kymo_writer *writer, struct kymo_clock_def *clock, int s)
{
	byte_order = (enum kymo_byte_order)below(3);
	streams[s] = kymo_writer_add_stream(writer, clock);
	if (below(2))
		contexts[s] = define_scope(kymo_stream_def_context(streams[s]));
	for (int t = 0; t < N_TYPES; t++) {
		struct type *type = &types[s][t];

		snprintf(type->name, sizeof(type->name), "type_%d_%d", s, t);
		type->def = kymo_stream_def_add_event(streams[s], type->name);
		in_context = true;
		if (!below(3))
			type->context = define_scope(kymo_event_def_context(type->def));
		in_context = false;
		if (below(8))
			type->fields = define_scope(kymo_event_def_fields(type->def));
	}
}

static int put_event(struct kymo_output *output, int s, uint64_t now, struct kymo_error *err)
{
	const struct type *type = &types[s][below(N_TYPES)];

	to = &written[s];
	tell("event %s %" PRIu64 "\n", type->name, now);
	kymo_output_begin(output, type->def, now);
	if (contexts[s])
		put(output, contexts[s]);
	if (type->context)
		put(output, type->context);
	if (type->fields)
		put(output, type->fields);
	return kymo_output_commit(output, err);
}

static int put_all(struct kymo_writer *writer, const char *path, struct kymo_error *err)
{
	struct kymo_output *outputs[N_OUTPUTS];
	uint64_t now = UINT64_C(1700000000000000000);
	char name[16];
	int ret = kymo_writer_open(writer, path, err);

	for (int s = 0; s < N_OUTPUTS && ret == KYMO_OK; s++) {
		snprintf(name, sizeof(name), "out_%d", s);
		ret = kymo_output_open(writer, streams[s], name, (uint32_t)s, &outputs[s], err);
	}
	for (int i = 0; i < N_EVENTS && ret == KYMO_OK; i++) {
		int s = (int)below(N_OUTPUTS);

		/* Babeltrace 1 has no order for equal times. */
		now += 1 + (random_bits() >> (30 + below(30)));
		ret = put_event(outputs[s], s, now, err);
		if (ret == KYMO_OK && !below(50))
			ret = kymo_output_close_packet(outputs[s], err);
	}
	return ret;
}

static int compare(void)
{
	for (int s = 0; s < N_OUTPUTS; s++) {
		struct text *a = &written[s], *b = &was_read[s];
		size_t i = 0, line = 0;

		if (a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0))
			continue;
		for (; i < a->len && i < b->len && a->data[i] == b->data[i]; i++)
			line = a->data[i] == '\n' ? i + 1 : line;
		fprintf(stderr, "output %d: written\n%.300s\n\nread\n%.300s\n", s,
			a->len ? a->data + line : "", b->len ? b->data + line : "");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct kymo_writer_options options = kymo_writer_options_init();
	struct kymo_clock_options clock = kymo_clock_options_init();
	struct kymo_clock_def *clock_def;
	struct kymo_writer *writer;
	struct kymo_error err;
	int ret;

	if (argc != 4)
		return 2;
	ctf2 = strcmp(argv[2], "2") == 0;
	simple = strcmp(argv[2], "simple") == 0;
	seed = strtoull(argv[3], NULL, 10) * 1000003 + 12345;
	options.format = ctf2 ? KYMO_FORMAT_CTF_2 : KYMO_FORMAT_CTF_1_8;
	options.packet_bytes = 16384;
	options.atomic = below(2);
	if (kymo_writer_new(&options, &writer, &err) < 0)
		return 1;
	kymo_writer_env_text(writer, "hostname", "box");
	clock_def = kymo_writer_add_clock(writer, &clock);
	for (int s = 0; s < N_OUTPUTS; s++)
		define_stream(writer, clock_def, s);
	ret = put_all(writer, argv[1], &err);
	if (kymo_writer_close(writer, ret < 0 ? NULL : &err) < 0 || ret < 0 ||
	    get_all(argv[1], &err) < 0) {
		fprintf(stderr, "%s: %s\n", err.path, err.message);
		return 1;
	}
	ret = compare();
	for (int s = 0; s < N_OUTPUTS; s++) {
		free(written[s].data);
		free(was_read[s].data);
	}
	return ret;
}
