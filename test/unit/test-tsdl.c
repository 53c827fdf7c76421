/* SPDX-License-Identifier: MIT */
/* TSDL text to model and back: own good and bad files, limits, and real traces' metadata. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl-lex.h"
#include "ctf/tsdl/tsdl.h"
#include "ctf/model/walk.h"
#include "os/file.h"

static struct kymo_error err;

static char *slurp(const char *path, size_t *len)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;

	*len = 0;
	if (ky_read_file(AT_FDCWD, path, 16 << 20, &buf) < 0)
		return NULL;
	*len = buf.len;
	return ky_strbuf_take(&buf);
}

/* NULL with err set when it cannot be read. */
static struct ky_trace_class *read_bytes(const char *text, size_t len)
{
	struct ky_trace_class *trace = NULL;
	char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	if (ky_metadata_read(copy, len, &trace, &err) < 0)
		trace = NULL;
	free(copy);
	return trace;
}

static struct ky_trace_class *read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static struct ky_trace_class *read_ok(const char *name)
{
	char path[512];
	struct ky_trace_class *trace;
	size_t len;
	char *text;

	snprintf(path, sizeof(path), KY_TEST_DATA "/ok/tsdl/%s.tsdl", name);
	text = slurp(path, &len);
	assert_non_null(text);
	trace = read_bytes(text, len);
	free(text);
	if (!trace)
		fail_msg("%s:%u:%u: %s", name, err.line, err.column, err.message);
	return trace;
}

static const struct ky_event_class *event_named(const struct ky_trace_class *trace,
						const char *name)
{
	for (size_t i = 0; i < trace->events.len; i++) {
		if (!strcmp(trace->events.data[i]->name, name))
			return trace->events.data[i];
	}
	fail_msg("no event %s", name);
	return NULL;
}

/* The class at a dotted path of written names. */
static const struct ky_field_class *at(const struct ky_field_class *cls, const char *path)
{
	char name[64];

	while (*path) {
		size_t len = strcspn(path, ".");
		const struct ky_member *member;

		while (cls->kind == KY_FIELD_ARRAY)
			cls = cls->array.element;
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		member = ky_struct_member(cls, name);
		if (!member)
			fail_msg("no member %s", name);
		cls = member->cls;
		path += len + (path[len] == '.');
	}
	return cls;
}

static const struct ky_field_class *target_of(const struct ky_field_class *root, const char *path)
{
	return ky_field_ref_of(at(root, path))->target;
}

/* ---- good files -------------------------------------------------------------------------- */

static void test_scopes(void **state)
{
	struct ky_trace_class *trace = read_ok("scopes");
	const struct ky_field_class *payload = event_named(trace, "all")->payload, *cls;

	assert_int_equal(payload->st.min_align_bits, 16);
	assert_int_equal(payload->align_bits, 64);
	assert_int_equal(at(payload, "o.wide")->num.length_bits, 32);
	assert_int_equal(at(payload, "o.in.nibble")->num.length_bits, 4);
	assert_int_equal(at(payload, "o.wide_again")->num.length_bits, 32);
	assert_int_equal(at(payload, "odd")->num.length_bits, 24);
	assert_int_equal(at(payload, "ul")->num.length_bits, 32);
	assert_int_equal(at(payload, "page")->num.length_bits, 64);
	assert_int_equal(at(payload, "page")->num.base, 16);
	assert_int_equal(at(payload, "c")->num.length_bits, 8);
	assert_int_equal(at(payload, "d")->array.length, 3);
	assert_int_equal(at(payload, "paren")->array.length, 5);
	/* As in C: an array of 2 arrays of 3 arrays of 4. */
	cls = at(payload, "matrix");
	assert_int_equal(cls->array.length, 2);
	assert_int_equal(cls->array.element->array.length, 3);
	assert_int_equal(cls->array.element->array.element->array.length, 4);
	cls = at(payload, "e");
	assert_int_equal(cls->kind, KY_FIELD_SINT);
	assert_int_equal(cls->num.length_bits, 16);
	assert_string_equal(ky_enum_label(cls, (uint64_t)-3), "B");
	assert_string_equal(ky_enum_label(cls, 5), "C D");
	assert_string_equal(ky_enum_label(cls, 7), "E");
	assert_true(trace->packet_header->st.members[0].cls->num.big_endian);
	assert_int_equal(at(payload, "gap")->align_bits, 32);
	ky_trace_class_free(trace);
}

static void test_references(void **state)
{
	struct ky_trace_class *trace = read_ok("references");
	const struct ky_event_class *relative = event_named(trace, "relative");
	const struct ky_event_class *absolute = event_named(trace, "absolute");
	const struct ky_stream_class *stream = relative->stream;
	const struct ky_field_class *p = relative->payload;

	assert_ptr_equal(target_of(p, "twice.data"), at(p, "twice.len"));
	assert_ptr_equal(target_of(p, "hides.x.a"), at(p, "len"));
	assert_ptr_equal(target_of(p, "use.bound_late.data"), at(p, "use.len"));
	assert_ptr_equal(target_of(p, "tags.v"), at(p, "x"));
	assert_ptr_equal(target_of(p, "tags.w"), at(p, "tags.x"));
	assert_ptr_equal(target_of(p, "by_path"), at(p, "deep.n"));
	assert_int_equal(at(p, "tags.w")->var.options[2].ranges[0].begin.u, 10);
	assert_int_equal(at(p, "tags.w")->var.options[3].ranges[0].begin.u, 30);
	p = absolute->payload;
	assert_ptr_equal(target_of(p, "a"), at(stream->event_header, "sub.deep"));
	assert_int_equal(ky_field_ref_of(at(p, "a"))->scope, KY_SCOPE_EVENT_HEADER);
	assert_ptr_equal(target_of(p, "b"), at(stream->event_context, "common_len"));
	assert_ptr_equal(target_of(p, "c"), at(absolute->context, "own"));
	assert_ptr_equal(target_of(p, "d"), at(trace->packet_header, "hdr_len"));
	assert_ptr_equal(target_of(p, "g.f"), at(p, "e"));
	assert_ptr_equal(target_of(p, "h"), at(stream->event_header, "kind"));
	assert_ptr_equal(target_of(p, "outer_scope"), at(stream->event_header, "kind"));
	ky_trace_class_free(trace);
}

static void check_env(const struct ky_trace_class *trace, const char *name, const char *text)
{
	const struct ky_env *env = ky_env_find(trace, name);

	assert_non_null(env);
	assert_true(env->is_text);
	assert_string_equal(env->text, text);
}

static void check_number(const struct ky_trace_class *trace, const char *name, int64_t number)
{
	const struct ky_env *env = ky_env_find(trace, name);

	assert_non_null(env);
	assert_false(env->is_text);
	assert_int_equal(env->number, number);
}

static void test_words(void **state)
{
	struct ky_trace_class *trace = read_ok("words");
	const struct ky_clock_class *clock = trace->clocks.data[0];

	check_env(trace, "plain", "word");
	check_env(trace, "keyword", "string");
	check_env(trace, "escapes", "\a\b\f\n\r\t\v\\\"'? A# A##1 \xc3\xa9\xf0\x9f\x98\x80");
	check_env(trace, "cut", "seen");
	check_env(trace, "wide", "wide");
	check_env(trace, "joined", "one line");
	check_env(trace, "twice", "last one wins");
	check_number(trace, "hex", -1);
	check_number(trace, "oct", 0777);
	check_number(trace, "bin", 10);
	check_number(trace, "neg", -42);
	check_number(trace, "pos", 42);
	check_number(trace, "double_neg", 7);
	check_number(trace, "least", INT64_MIN);
	check_number(trace, "character", '\n');
	assert_memory_equal(trace->uuid,
			    "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd"
			    "\xee\xff",
			    16);
	assert_int_equal(clock->frequency_hz, 3000000000);
	assert_int_equal(clock->precision_cycles, 7);
	assert_int_equal(clock->base_ns, -5000000002);
	assert_true(clock->is_unix_epoch && clock->has_uuid);
	ky_trace_class_free(trace);
}

static void test_extremes(void **state)
{
	struct ky_trace_class *trace = read_ok("words");
	const struct ky_event_class *event = event_named(trace, "extremes");
	const struct ky_field_class *p = event->payload;

	assert_int_equal(event->loglevel, 13);
	assert_string_equal(event->emf_uri, "http://x");
	assert_string_equal(ky_enum_label(at(p, "s"), (uint64_t)INT64_MIN), "low");
	assert_string_equal(ky_enum_label(at(p, "s"), INT64_MAX), "high");
	assert_string_equal(ky_enum_label(at(p, "u"), UINT64_MAX), "max");
	assert_string_equal(ky_enum_label(at(p, "bit"), 1), "yes");
	assert_int_equal(at(p, "repeated")->num.n_mappings, 3);
	assert_int_equal(at(p, "repeated")->num.mappings[0].n_ranges, 2);
	assert_string_equal(ky_enum_label(at(p, "repeated"), 9), "struct");
	assert_true(at(p, "f")->num.big_endian);
	assert_int_equal(at(p, "f")->align_bits, 8);
	assert_int_equal(at(p, "d")->num.length_bits, 64);
	assert_int_equal(at(p, "ascii")->text.encoding, KY_ENCODING_ASCII);
	assert_int_equal(at(p, "text")->kind, KY_FIELD_TEXT);
	assert_int_equal(at(p, "text")->fixed_bits, 80);
	assert_int_equal(at(p, "no_text")->kind, KY_FIELD_ARRAY);
	assert_int_equal(at(p, "huge")->num.length_bits, 1024);
	assert_int_equal(at(p, "binary")->num.base, 2);
	assert_string_equal(p->st.members[p->st.n_members - 1].display, "");
	assert_null(event_named(trace, "dotted.word")->payload);
	ky_trace_class_free(trace);
}

static void test_minimal(void **state)
{
	struct ky_trace_class *trace = read_ok("minimal");

	assert_int_equal(trace->streams.len, 1);
	assert_false(trace->streams.data[0]->has_id);
	assert_string_equal(trace->events.data[0]->name, "");
	assert_null(trace->streams.data[0]->clock);
	ky_trace_class_free(trace);
}

static void test_late_trace(void **state)
{
	struct ky_trace_class *trace = read_ok("late-trace");
	const struct ky_event_class *event = event_named(trace, "e");

	assert_false(at(event->payload, "x")->num.big_endian);
	assert_true(at(event->payload, "y")->num.big_endian);
	assert_ptr_equal(event->stream->clock, trace->clocks.data[0]);
	assert_int_equal(at(event->stream->event_header, "timestamp")->role, KY_ROLE_CLOCK_BEGIN);
	ky_trace_class_free(trace);
}

static void test_lttng_clock(void **state)
{
	struct ky_trace_class *trace =
		read_text("/* CTF 1.8 */ trace { byte_order = le; }; clock { name = monotonic; };"
			  "env { tracer_name = \"lttng-ust\"; };");

	assert_non_null(trace);
	assert_true(trace->clocks.data[0]->is_unix_epoch);
	ky_trace_class_free(trace);
}

static void test_crlf(void **state)
{
	struct ky_trace_class *trace =
		read_text("/* CTF 1.8 */\r\ntrace {\r\n\tbyte_order = le; // x\r\n};\r\n");

	assert_non_null(trace);
	ky_trace_class_free(trace);
	assert_null(read_text("/* CTF 1.8 */\r\ntrace {\r\n  oops };\r\n"));
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 8);
}

/* ---- bad files --------------------------------------------------------------------------- */

static void check_bad(const char *name)
{
	struct ky_trace_class *trace;
	char path[512], *text, *expected;
	unsigned int line, column;
	int skip = 0;
	size_t len;

	snprintf(path, sizeof(path), KY_TEST_DATA "/bad/tsdl/%s", name);
	text = slurp(path, &len);
	assert_non_null(text);
	trace = read_bytes(text, len);
	if (trace)
		fail_msg("%s was read", name);
	text[strcspn(text, "\n") < len ? len - 1 : len] = '\0';
	expected = strrchr(text, '\n');
	assert_non_null(expected);
	assert_int_equal(sscanf(expected, "\n// %u:%u %n", &line, &column, &skip), 2);
	if (err.line != line || err.column != column ||
	    strncmp(err.message, expected + skip, strlen(expected + skip)) != 0)
		fail_msg("%s: %u:%u %s", name, err.line, err.column, err.message);
	free(text);
}

static void test_bad_files(void **state)
{
	DIR *dir = opendir(KY_TEST_DATA "/bad/tsdl");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".tsdl"))
			continue;
		check_bad(entry->d_name);
		n++;
	}
	closedir(dir);
	assert_true(n > 20);
}

/* ---- limits ------------------------------------------------------------------------------ */

#define HEAD "/* CTF 1.8 */ trace { byte_order = le; }; typealias integer { size = 8; } := u8;\n"

/* Each struct holds ten of the one before: memory must not grow as the tree would. */
static void test_explosion(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_strbuf_adds(&out, HEAD "struct s0 { u8 x; };\n");
	for (int i = 1; i < 20; i++) {
		ky_strbuf_addf(&out, "struct s%d {", i);
		for (int k = 0; k < 10; k++)
			ky_strbuf_addf(&out, " struct s%d m%d;", i - 1, k);
		ky_strbuf_adds(&out, " };\n");
	}
	assert_null(read_bytes(out.data, out.len));
	assert_int_equal(err.code, KYMO_E_LIMIT);
	assert_true(err.line > 5);
	ky_strbuf_fini(&out);
}

static int nested(const char *open, const char *close, int levels)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_trace_class *trace;

	ky_strbuf_adds(&out, HEAD "event { fields := ");
	for (int i = 0; i < levels; i++)
		ky_strbuf_adds(&out, open);
	ky_strbuf_adds(&out, "u8 x;");
	for (int i = 0; i < levels; i++)
		ky_strbuf_adds(&out, close);
	ky_strbuf_adds(&out, ";};");
	trace = read_bytes(out.data, out.len);
	ky_trace_class_free(trace);
	ky_strbuf_fini(&out);
	return trace ? 0 : err.code;
}

/* As deep as memory allows, whatever the stack of the thread. */
#define LEVELS 50000

static char *write_text(const struct ky_trace_class *trace);

static void *read_deep(void *data)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_trace_class *trace;
	const struct ky_field_class *cls;
	char *text;
	int depth = 0;

	ky_strbuf_adds(&out, HEAD "event { fields := struct {");
	for (int i = 0; i < LEVELS; i++)
		ky_strbuf_adds(&out, "struct {");
	ky_strbuf_adds(&out, "u8 n; struct { u8 a[n]; } last;");
	for (int i = 0; i < LEVELS; i++)
		ky_strbuf_adds(&out, "} s;");
	ky_strbuf_adds(&out, "}; };");
	trace = read_bytes(out.data, out.len);
	assert_non_null(trace);
	cls = trace->events.data[0]->payload;
	while (cls->kind == KY_FIELD_STRUCT) {
		cls = ky_field_child(cls, ky_field_n_children(cls) - 1);
		depth++;
	}
	assert_int_equal(depth, LEVELS + 2);
	assert_int_equal(cls->kind, KY_FIELD_ARRAY);
	text = write_text(trace);
	ky_trace_class_free(trace);
	trace = read_text(text);
	assert_non_null(trace);
	ky_trace_class_free(trace);
	free(text);
	ky_strbuf_fini(&out);
	return NULL;
}

static void test_depth(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;

	assert_int_equal(nested("struct { struct {", "} s; }", 1), 0);
	assert_int_equal(nested("enum : ", "", LEVELS), KYMO_E_FORMAT);
	assert_int_equal(nested("((((((((", "))))))))", 100000), KYMO_E_FORMAT);
	read_deep(NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 512 << 10);
	assert_int_equal(pthread_create(&thread, &attr, read_deep, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

static void test_bit_fields(void **state)
{
	struct ky_trace_class *trace = read_ok("bit-fields");
	const struct ky_field_class *p = event_named(trace, "example")->payload;

	assert_int_equal(p->align_bits, 16);
	assert_int_equal(p->fixed_bits, 21);
	assert_int_equal(at(p, "b")->kind, KY_FIELD_SINT);
	assert_int_equal(at(p, "b")->num.length_bits, 5);
	assert_int_equal(at(p, "b")->align_bits, 16);
	p = event_named(trace, "padding")->payload;
	assert_int_equal(p->align_bits, 32);
	assert_int_equal(p->st.n_members, 5);
	assert_int_equal(p->st.members[2].cls->num.length_bits, 20);
	assert_int_equal(at(p, "c")->align_bits, 1);
	assert_int_equal(at(p, "d")->align_bits, 32);
	assert_int_equal(p->fixed_bits, 33);
	p = event_named(trace, "varies")->payload;
	assert_int_equal(at(p, "a")->num.unit_bits, 32);
	assert_int_equal(p->fixed_bits, -1);
	p = event_named(trace, "enum")->payload;
	assert_string_equal(ky_enum_label(at(p, "e"), 7), "B");
	assert_int_equal(p->fixed_bits, 8);
	p = event_named(trace, "env")->payload;
	assert_int_equal(at(p, "x")->array.length, 3);
	assert_int_equal(at(p, "x")->array.element->array.length, 2);
	assert_int_equal(at(p, "t")->text.length_bytes, 3);
	assert_int_equal(p->fixed_bits, 72);
	ky_trace_class_free(trace);
}

/* Deep by names instead of braces. */
static void test_depth_by_name(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_strbuf_adds(&out, HEAD "struct s0 { u8 x; };\n");
	for (int i = 1; i < 2000; i++)
		ky_strbuf_addf(&out, "struct s%d { struct s%d m[1]; };\n", i, i - 1);
	ky_strbuf_adds(&out, "event { fields := struct s1999; };");
	assert_null(read_bytes(out.data, out.len));
	assert_int_equal(err.code, KYMO_E_LIMIT);
	ky_strbuf_fini(&out);
}

static void test_parentheses(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_strbuf_adds(&out, HEAD "struct s { u8 ");
	for (int i = 0; i < 100000; i++)
		ky_strbuf_addc(&out, '(');
	assert_null(read_bytes(out.data, out.len));
	assert_int_equal(err.code, KYMO_E_FORMAT);
	ky_strbuf_fini(&out);
}

/* A large real-size trace stays far below the limits, and reading it is quick. */
static void test_many_events(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_trace_class *trace;

	ky_strbuf_adds(&out, HEAD "stream { event.header := struct { u8 id; }; };\n");
	for (int i = 0; i < 5000; i++) {
		ky_strbuf_addf(&out, "event { id = %d; fields := struct {", i);
		for (int k = 0; k < 20; k++)
			ky_strbuf_addf(&out, " u8 f%d;", k);
		ky_strbuf_adds(&out, " }; };\n");
	}
	trace = read_bytes(out.data, out.len);
	assert_non_null(trace);
	assert_int_equal(trace->events.len, 5000);
	ky_trace_class_free(trace);
	ky_strbuf_fini(&out);
}

/* Every beginning of a good text, cut anywhere, is refused without harm. */
static void test_every_prefix(void **state)
{
	char path[] = KY_TEST_DATA "/ok/tsdl/references.tsdl";
	size_t len;
	char *text = slurp(path, &len);

	assert_non_null(text);
	for (size_t n = 0; n < len; n++)
		ky_trace_class_free(read_bytes(text, n));
	free(text);
}

/* ---- lexer ------------------------------------------------------------------------------- */

static void test_tokens(void **state)
{
	struct ky_tokens tokens = KY_VEC_INIT;
	const char *text = "a:=b ... 0x1F ->\n  \"x\" 'y' enum_ enum";
	struct ky_arena arena;

	ky_arena_init(&arena);
	assert_int_equal(ky_tsdl_lex(text, strlen(text), &arena, &tokens, &err), 0);
	assert_int_equal(tokens.len, 11);
	assert_int_equal(tokens.data[1].punct, KY_PUNCT_ASSIGN_TYPE);
	assert_int_equal(tokens.data[3].punct, KY_PUNCT_ELLIPSIS);
	assert_int_equal(tokens.data[4].value, 31);
	assert_int_equal(tokens.data[5].punct, KY_PUNCT_ARROW);
	assert_int_equal(tokens.data[6].line, 2);
	assert_int_equal(tokens.data[6].column, 3);
	assert_int_equal(tokens.data[7].value, 'y');
	assert_int_equal(tokens.data[8].keyword, KY_KEYWORD_NONE);
	assert_int_equal(tokens.data[9].keyword, KY_KEYWORD_ENUM);
	assert_int_equal(tokens.data[10].kind, KY_TOKEN_END);
	ky_vec_fini(&tokens);
	ky_arena_fini(&arena);
}

static void test_names(void **state)
{
	assert_true(ky_tsdl_is_name("_x1"));
	assert_false(ky_tsdl_is_name(""));
	assert_false(ky_tsdl_is_name("1x"));
	assert_false(ky_tsdl_is_name("a-b"));
	assert_false(ky_tsdl_is_name("stream"));
}

/* ---- writer ------------------------------------------------------------------------------ */

static char *write_text(const struct ky_trace_class *trace)
{
	size_t len;
	char *text = NULL;

	if (ky_tsdl_write(trace, &text, &len, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(strlen(text), len);
	return text;
}

static void assert_same_class(const struct ky_field_class *a, const struct ky_field_class *b);

static void assert_same_numbers(const struct ky_field_class *a, const struct ky_field_class *b)
{
	assert_int_equal(a->num.length_bits, b->num.length_bits);
	assert_int_equal(a->num.big_endian, b->num.big_endian);
	assert_int_equal(a->num.base, b->num.base);
	assert_int_equal(a->num.encoding, b->num.encoding);
	assert_int_equal(a->num.is_enum, b->num.is_enum);
	assert_int_equal(!a->num.clock, !b->num.clock);
	if (a->num.clock)
		assert_string_equal(a->num.clock->name, b->num.clock->name);
	assert_int_equal(a->num.n_mappings, b->num.n_mappings);
	for (size_t i = 0; i < a->num.n_mappings; i++) {
		const struct ky_mapping *m = &a->num.mappings[i], *n = &b->num.mappings[i];

		assert_string_equal(m->label, n->label);
		assert_int_equal(m->n_ranges, n->n_ranges);
		assert_memory_equal(m->ranges, n->ranges, m->n_ranges * sizeof(*m->ranges));
	}
}

static void assert_same_children(const struct ky_field_class *a, const struct ky_field_class *b)
{
	assert_int_equal(ky_field_n_children(a), ky_field_n_children(b));
	for (size_t i = 0; i < ky_field_n_children(a); i++) {
		if (a->kind == KY_FIELD_STRUCT)
			assert_string_equal(a->st.members[i].name, b->st.members[i].name);
		if (a->kind == KY_FIELD_VARIANT) {
			assert_string_equal(a->var.options[i].name, b->var.options[i].name);
			assert_int_equal(a->var.options[i].n_ranges, b->var.options[i].n_ranges);
		}
		assert_same_class(ky_field_child(a, i), ky_field_child(b, i));
	}
}

static void assert_same_class(const struct ky_field_class *a, const struct ky_field_class *b)
{
	const struct ky_field_ref *ra, *rb;

	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->role, b->role);
	assert_int_equal(a->align_bits, b->align_bits);
	assert_int_equal(a->fixed_bits, b->fixed_bits);
	assert_int_equal(a->slot, b->slot);
	ra = ky_field_ref_of(a);
	rb = ky_field_ref_of(b);
	assert_int_equal(!ra, !rb);
	if (ra) {
		assert_int_equal(ra->scope, rb->scope);
		assert_int_equal(ra->target->slot, rb->target->slot);
	}
	if (ky_field_is_num(a))
		assert_same_numbers(a, b);
	if (a->kind == KY_FIELD_TEXT || a->kind == KY_FIELD_STRING) {
		assert_int_equal(a->text.encoding, b->text.encoding);
		assert_int_equal(a->text.length_bytes, b->text.length_bytes);
	}
	if (a->kind == KY_FIELD_ARRAY)
		assert_int_equal(a->array.length, b->array.length);
	assert_same_children(a, b);
}

static void assert_same_clock(const struct ky_clock_class *a, const struct ky_clock_class *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(!a->description, !b->description);
	if (a->description)
		assert_string_equal(a->description, b->description);
	assert_int_equal(a->has_uuid, b->has_uuid);
	assert_memory_equal(a->uuid, b->uuid, 16);
	assert_int_equal(a->frequency_hz, b->frequency_hz);
	assert_int_equal(a->precision_cycles, b->precision_cycles);
	assert_int_equal(a->offset_s, b->offset_s);
	assert_int_equal(a->offset_cycles, b->offset_cycles);
	assert_int_equal(a->is_unix_epoch, b->is_unix_epoch);
}

static void assert_same_stream(const struct ky_stream_class *a, const struct ky_stream_class *b)
{
	/* The id of an only stream is not written where no packet tells it. */
	assert_true(a->has_id || !b->has_id);
	if (b->has_id)
		assert_int_equal(a->id, b->id);
	assert_int_equal(!a->clock, !b->clock);
	assert_same_class(a->packet_context, b->packet_context);
	assert_same_class(a->event_header, b->event_header);
	assert_same_class(a->event_context, b->event_context);
}

static void assert_same_event(const struct ky_event_class *a, const struct ky_event_class *b)
{
	assert_int_equal(a->id, b->id);
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->has_loglevel, b->has_loglevel);
	assert_int_equal(a->loglevel, b->loglevel);
	assert_int_equal(!a->emf_uri, !b->emf_uri);
	if (b->stream->has_id)
		assert_int_equal(a->stream->id, b->stream->id);
	assert_same_class(a->context, b->context);
	assert_same_class(a->payload, b->payload);
}

static void assert_same_trace(const struct ky_trace_class *a, const struct ky_trace_class *b)
{
	assert_int_equal(a->has_uuid, b->has_uuid);
	assert_memory_equal(a->uuid, b->uuid, 16);
	assert_int_equal(a->big_endian, b->big_endian);
	assert_int_equal(a->n_slots, b->n_slots);
	assert_same_class(a->packet_header, b->packet_header);
	assert_int_equal(a->env.len, b->env.len);
	for (size_t i = 0; i < a->env.len; i++) {
		assert_string_equal(a->env.data[i].name, b->env.data[i].name);
		assert_int_equal(a->env.data[i].is_text, b->env.data[i].is_text);
		if (a->env.data[i].is_text)
			assert_string_equal(a->env.data[i].text, b->env.data[i].text);
		else
			assert_int_equal(a->env.data[i].number, b->env.data[i].number);
	}
	assert_int_equal(a->clocks.len, b->clocks.len);
	for (size_t i = 0; i < a->clocks.len; i++)
		assert_same_clock(a->clocks.data[i], b->clocks.data[i]);
	assert_int_equal(a->streams.len, b->streams.len);
	for (size_t i = 0; i < a->streams.len; i++)
		assert_same_stream(a->streams.data[i], b->streams.data[i]);
	assert_int_equal(a->events.len, b->events.len);
	for (size_t i = 0; i < a->events.len; i++)
		assert_same_event(a->events.data[i], b->events.data[i]);
}

/* Writing loses nothing, and writing what was read gives the same text. */
static void check_round_trip(struct ky_trace_class *trace)
{
	char *first = write_text(trace), *second;
	struct ky_trace_class *again = read_text(first);

	if (!again)
		fail_msg("%u:%u: %s\n%s", err.line, err.column, err.message, first);
	assert_same_trace(trace, again);
	second = write_text(again);
	assert_string_equal(first, second);
	free(first);
	free(second);
	ky_trace_class_free(again);
	ky_trace_class_free(trace);
}

static void test_round_trips(void **state)
{
	check_round_trip(read_ok("scopes"));
	check_round_trip(read_ok("references"));
	check_round_trip(read_ok("words"));
	check_round_trip(read_ok("minimal"));
	check_round_trip(read_ok("late-trace"));
	check_round_trip(read_ok("bit-fields"));
}

static struct ky_trace_class *lttng_trace(bool compact)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_clock_class *clock = ky_clock_class_new(trace, "monotonic");
	struct ky_event_class *event;
	struct ky_stream_class *stream;
	struct ky_field_class *length, *tag, *variant, *payload;

	assert_int_equal(ky_lttng_layout_trace(trace), 0);
	stream = ky_lttng_layout_stream(trace, 0, clock, compact);
	assert_non_null(ky_lttng_layout_stream(trace, 1, clock, compact));
	assert_int_equal(ky_env_add_text(trace, "text", "a \"b\" \\ \n\t\x01\x7f 1\xc3\xa9"), 0);
	event = ky_event_class_new(stream, 5, "an \"event\"\n");
	event->payload = payload = ky_struct_new(trace);
	ky_struct_add_text(trace, payload, "_comm", 16);
	length = ky_struct_add_int(trace, payload, "__v_length", 8, false, 10);
	ky_struct_add_sequence(trace, payload, "_v", ky_int_new(trace, 32, true, 16), length);
	ky_struct_add_dynamic_text(trace, payload, "_t", length);
	tag = ky_struct_add_enum(trace, payload, "_tag", 8, true);
	assert_int_equal(ky_enum_add(trace, tag, "x y", -2, 3), 0);
	assert_int_equal(ky_enum_add(trace, tag, "_z", 4, 4), 0);
	variant = ky_struct_add_variant(trace, payload, "_var", tag);
	assert_int_equal(ky_variant_add(trace, variant, "_z", ky_struct_new(trace)), 0);
	assert_int_equal(ky_trace_class_finish(trace, true, &err), 0);
	return trace;
}

static void test_lttng_layout(void **state)
{
	struct ky_trace_class *trace = lttng_trace(false);
	char *text = write_text(trace);

	assert_non_null(strstr(text, "\tevent.header := struct event_header_large;\n"));
	assert_non_null(strstr(text, "\tpacket.context := struct packet_context;\n"));
	assert_non_null(strstr(text, "\tuint64_clock_monotonic_t timestamp_begin;\n"));
	/* The named structs are written once, for both streams. */
	assert_null(strstr(strstr(text, "struct packet_context {") + 1, "struct packet_context {"));
	free(text);
	check_round_trip(trace);
	check_round_trip(lttng_trace(true));
}

static void test_cannot_be_said(void **state)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_event_class *event = ky_event_class_new(ky_stream_class_new(trace, 0), 0, "e");
	char *text;
	size_t len;

	event->payload = ky_struct_new(trace);
	ky_struct_add_int(trace, event->payload, "stream", 8, false, 10);
	assert_int_equal(ky_trace_class_finish(trace, true, &err), 0);
	assert_int_equal(ky_tsdl_write(trace, &text, &len, &err), KYMO_E_UNSUPPORTED);
	assert_string_equal(err.message, "CTF 1.8 metadata cannot name a field \"stream\"");
	event->payload->st.members[0].name = "_stream";
	event->payload->st.members[0].cls->kind = KY_FIELD_BOOL;
	assert_int_equal(ky_tsdl_write(trace, &text, &len, &err), KYMO_E_UNSUPPORTED);
	ky_trace_class_free(trace);
}

/* ---- real traces ------------------------------------------------------------------------- */

static void check_shared(const char *name)
{
	const char *shared = getenv("KYMO_SHARED");
	struct ky_trace_class *trace;
	char path[512], *text;
	size_t len;

	snprintf(path, sizeof(path), "%s/traces/%s/metadata", shared ? shared : KY_TEST_SHARED,
		 name);
	if (access(path, R_OK) < 0) {
		print_message("no reference traces here\n");
		skip();
	}
	text = slurp(path, &len);
	assert_non_null(text);
	trace = read_bytes(text, len);
	free(text);
	if (!trace)
		fail_msg("%s:%u:%u: %s", path, err.line, err.column, err.message);
	assert_true(trace->events.len > 0);
	check_round_trip(trace);
}

static void test_kernel_trace(void **state)
{
	check_shared("lttng-kernel/kernel");
}

static void test_ust_trace(void **state)
{
	check_shared("lttng-ust/uid/0/64-bit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scopes),	       cmocka_unit_test(test_references),
		cmocka_unit_test(test_words),	       cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_minimal),	       cmocka_unit_test(test_late_trace),
		cmocka_unit_test(test_lttng_clock),    cmocka_unit_test(test_crlf),
		cmocka_unit_test(test_bad_files),      cmocka_unit_test(test_explosion),
		cmocka_unit_test(test_depth),	       cmocka_unit_test(test_bit_fields),
		cmocka_unit_test(test_depth_by_name),  cmocka_unit_test(test_parentheses),
		cmocka_unit_test(test_many_events),    cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_tokens),	       cmocka_unit_test(test_names),
		cmocka_unit_test(test_round_trips),    cmocka_unit_test(test_lttng_layout),
		cmocka_unit_test(test_cannot_be_said), cmocka_unit_test(test_kernel_trace),
		cmocka_unit_test(test_ust_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
