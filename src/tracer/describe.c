/* SPDX-License-Identifier: MIT */
/*
 * A call site's texts are what the programmer wrote: "shop, order_placed, o->id, KYMO_HEX(flags)".
 * This takes them apart. The compiler has parsed them before, but a site is not trusted to be
 * what the macros make: names are made to be names, and lengths are bounded.
 */
#include <string.h>

#include "tracer/tracer.h"

/* Appends to a record. */
struct out {
	uint8_t *base;
	uint32_t used, room;
	bool is_full;
};

static void *describe_grow(struct out *out, uint32_t bytes, uint32_t align)
{
	uint32_t at = (out->used + align - 1) & ~(align - 1);

	if (out->is_full || at > out->room || bytes > out->room - at) {
		out->is_full = true;
		return NULL;
	}
	memset(out->base + out->used, 0, at + bytes - out->used);
	out->used = at + bytes;
	return out->base + at;
}

static uint32_t describe_put_text(struct out *out, const char *text, size_t bytes)
{
	char *to = describe_grow(out, (uint32_t)bytes + 1, 1);

	if (!to)
		return 0;
	memcpy(to, text, bytes);
	return (uint32_t)(to - (char *)out->base);
}

/* ---- the text ---- */

struct piece {
	const char *at, *end;
};

static bool describe_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool describe_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static struct piece describe_trim(struct piece p)
{
	while (p.at < p.end && describe_is_space(*p.at))
		p.at++;
	while (p.at < p.end && describe_is_space(p.end[-1]))
		p.end--;
	return p;
}

/* Behind a string or character literal that begins at @at. */
static const char *describe_skip_literal(const char *at, const char *end)
{
	char quote = *at++;

	while (at < end && *at != quote)
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	return at < end ? at + 1 : end;
}

/* The next item of a list with commas, outside of brackets. @rest is moved behind it. */
static struct piece describe_next_item(struct piece *rest)
{
	struct piece item = {rest->at, rest->end};
	int depth = 0;

	while (rest->at < rest->end) {
		char c = *rest->at;

		if (c == '"' || c == '\'') {
			rest->at = describe_skip_literal(rest->at, rest->end);
			continue;
		}
		depth += c == '(' || c == '[' || c == '{';
		depth -= c == ')' || c == ']' || c == '}';
		if (c == ',' && depth <= 0)
			break;
		rest->at++;
	}
	item.end = rest->at;
	if (rest->at < rest->end)
		rest->at++;
	return describe_trim(item);
}

static bool describe_begins(struct piece p, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(p.end - p.at) >= n && !memcmp(p.at, with, n);
}

/* Behind the first '(' up to the last ')'. */
static struct piece inside(struct piece p)
{
	while (p.at < p.end && *p.at != '(')
		p.at++;
	p.at += p.at < p.end;
	if (p.at < p.end && p.end[-1] == ')')
		p.end--;
	return p;
}

/* The expression a field's name comes from: KYMO_HEX(x) has x's, KYMO_AS(name, x) name. */
static struct piece named_part(struct piece p)
{
	for (int depth = 0; depth < 4; depth++) {
		if (describe_begins(p,
				    "(kymo_form")) { /* expanded by a macro around KYMO_EVENT() */
			p = inside(p);
			describe_next_item(&p);
			p = describe_next_item(&p);
			return (struct piece){p.at + (p.at < p.end),
					      p.end - (p.at < p.end)}; /* a literal */
		} else if (!describe_begins(p, "KYMO_")) {
			break;
		} else {
			p = inside(p);
		}
		p = describe_next_item(&p);
	}
	return p;
}

/*
 * The last word in it: "order->items[i].price" is price, "*count" is count. A word that only
 * stands in brackets of an index or a call does not count.
 */
static struct piece last_word(struct piece p)
{
	struct piece word = {p.end, p.end};
	int depth = 0;

	for (const char *at = p.at; at < p.end;) {
		const char *start = at;

		if (*at == '"' || *at == '\'') {
			at = describe_skip_literal(at, p.end);
			continue;
		}
		if (!describe_is_word(*at)) {
			depth += *at == '[' || (*at == '(' && word.at < word.end);
			depth -= depth > 0 && (*at == ']' || *at == ')');
			at++;
			continue;
		}
		while (at < p.end && describe_is_word(*at))
			at++;
		if (!depth && !(*start >= '0' && *start <= '9'))
			word = (struct piece){start, at};
	}
	return word;
}

static bool describe_is_taken(const struct out *out, const struct ky_event_record *record,
			      uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp((const char *)out->base + record->fields[i].name, name))
			return true;
	}
	return false;
}

/* A name for field @i: a word that no field before it has. */
static uint32_t put_field_name(struct out *out, const struct ky_event_record *record, uint32_t i,
			       struct piece p)
{
	struct piece word = last_word(named_part(p));
	char name[KY_NAME_MAX + 1];
	size_t n = (size_t)(word.end - word.at), tail;

	if (n > KY_NAME_MAX - 4)
		n = KY_NAME_MAX - 4;
	memcpy(name, word.at, n);
	if (!n) {
		memcpy(name, "field", 5);
		n = 5;
	}
	name[n] = 0;
	for (unsigned int again = 2; describe_is_taken(out, record, i, name) && again < 100;
	     again++) {
		tail = n;
		name[tail++] = '_';
		if (again >= 10)
			name[tail++] = (char)('0' + again / 10);
		name[tail++] = (char)('0' + again % 10);
		name[tail] = 0;
	}
	return describe_put_text(out, name, strlen(name));
}

/* Provider and event: words already; anything else becomes '_'. */
static uint32_t describe_put_name(struct out *out, struct piece p, const char *suffix)
{
	char name[KY_NAME_MAX + 1];
	size_t n = 0;

	for (; p.at < p.end && n < KY_NAME_MAX - 6; p.at++)
		name[n++] = describe_is_word(*p.at) ? *p.at : '_';
	if (!n)
		name[n++] = '_';
	memcpy(name + n, suffix, strlen(suffix) + 1);
	return describe_put_text(out, name, n + strlen(suffix));
}

/* ---- fields ---- */

static uint32_t describe_put_labels(struct out *out, const struct kymo_label *labels,
				    uint32_t *n_labels)
{
	uint32_t n = 0, at, text;
	struct ky_label_record *to;

	while (n < KY_ENUM_LABELS_MAX && labels[n].name)
		n++;
	to = describe_grow(out, n * (uint32_t)sizeof(*to), 8);
	if (!to)
		return 0;
	at = (uint32_t)((uint8_t *)to - out->base);
	for (uint32_t i = 0; i < n; i++) {
		text = describe_put_text(out, labels[i].name, strnlen(labels[i].name, KY_NAME_MAX));
		to = (struct ky_label_record *)(out->base + at);
		to[i].first = labels[i].first;
		to[i].last = labels[i].last;
		to[i].name = text;
	}
	*n_labels = n;
	return at;
}

static const void *at_offset(const int32_t *offset)
{
	return (const char *)offset + *offset;
}

static void describe_put_field(struct out *out, struct ky_event_record *record, uint32_t i,
			       const struct kymo_site_field *from, const void *no_labels,
			       struct piece text)
{
	static const uint8_t bases[4] = {10, 16, 8, 2};
	struct ky_field_record *field = &record->fields[i];
	const void *labels = at_offset(&from->labels);

	field->name = put_field_name(out, record, i, text);
	field->kind = from->type & 15;
	field->element_bytes = (from->type >> 4) & 15;
	field->flags = (from->type >> 8) & 31;
	field->base = bases[(from->type >> 13) & 3];
	field->length = from->type >> 16;
	if (field->kind == KY_KIND_ENUM && labels != no_labels)
		field->labels = describe_put_labels(out, labels, &field->n_labels);
}

uint32_t ky_describe(const struct kymo_site *site, const void *no_labels, uint32_t number,
		     uint16_t page, void *to, uint64_t room)
{
	static const char *const suffixes[] = {"", "_begin", "_end", "", "", "", ""};
	struct out out = {.base = to,
			  .room = room < KY_RECORD_BYTES_MAX ? (uint32_t)room
							     : KY_RECORD_BYTES_MAX};
	const char *text = at_offset(&site->text);
	struct piece rest = {text, text + strlen(text)};
	const char *file = rest.end + 1;
	struct ky_event_record *record;

	if (site->n_fields > KY_EVENT_FIELDS_MAX || site->kind > KY_EVENT_QUERY ||
	    site->kind == KY_EVENT_CONTEXT || site->enable_byte >= KY_ENABLE_BYTES)
		return 0;
	record = describe_grow(
		&out, (uint32_t)(sizeof(*record) + site->n_fields * sizeof(record->fields[0])), 8);
	if (!record)
		return 0;
	record->number = number;
	record->line = site->line;
	record->page = page;
	record->enable_byte = site->enable_byte;
	record->log_level = site->log_level;
	record->kind = site->kind;
	record->n_fields = site->n_fields;
	record->provider = describe_put_name(&out, describe_next_item(&rest), "");
	record->name = describe_put_name(&out, describe_next_item(&rest), suffixes[site->kind]);
	for (uint32_t i = 0; i < site->n_fields && !out.is_full; i++)
		describe_put_field(&out, record, i, &site->fields[i], no_labels,
				   describe_next_item(&rest));
	record->file = describe_put_text(&out, file, strlen(file));
	describe_grow(&out, 0, 8);
	record->bytes = out.used;
	return out.is_full ? 0 : out.used;
}

/* ---- comparing ---- */

static bool same_field(const struct ky_event_record *a, const struct ky_event_record *b, uint32_t i)
{
	const struct ky_field_record *f = &a->fields[i], *g = &b->fields[i];
	const struct ky_label_record *l, *m;

	if (f->kind != g->kind || f->element_bytes != g->element_bytes || f->flags != g->flags ||
	    f->base != g->base || f->length != g->length || f->n_labels != g->n_labels ||
	    strcmp(ky_record_text(a, f->name), ky_record_text(b, g->name)) != 0)
		return false;
	l = (const struct ky_label_record *)ky_record_text(a, f->labels);
	m = (const struct ky_label_record *)ky_record_text(b, g->labels);
	for (uint32_t j = 0; j < f->n_labels; j++) {
		if (l[j].first != m[j].first || l[j].last != m[j].last ||
		    strcmp(ky_record_text(a, l[j].name), ky_record_text(b, m[j].name)) != 0)
			return false;
	}
	return true;
}

bool ky_record_same(const struct ky_event_record *a, const struct ky_event_record *b)
{
	if (a->kind != b->kind || a->n_fields != b->n_fields || a->log_level != b->log_level ||
	    strcmp(ky_record_text(a, a->provider), ky_record_text(b, b->provider)) != 0 ||
	    strcmp(ky_record_text(a, a->name), ky_record_text(b, b->name)) != 0)
		return false;
	for (uint32_t i = 0; i < a->n_fields; i++) {
		if (!same_field(a, b, i))
			return false;
	}
	return true;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
	return hash;
}

uint64_t ky_record_hash(const struct ky_event_record *record)
{
	const char *provider = ky_record_text(record, record->provider);
	const char *name = ky_record_text(record, record->name);
	uint64_t hash = 0xcbf29ce484222325u;

	hash = hash_bytes(hash, provider, strlen(provider) + 1);
	hash = hash_bytes(hash, name, strlen(name) + 1);
	for (uint32_t i = 0; i < record->n_fields; i++) {
		const struct ky_field_record *field = &record->fields[i];
		const char *text = ky_record_text(record, field->name);

		hash = hash_bytes(hash, &field->kind, 4);
		hash = hash_bytes(hash, text, strlen(text) + 1);
	}
	return hash ? hash : 1;
}
