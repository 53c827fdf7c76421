/* SPDX-License-Identifier: MIT */
/* Classes of events as formats of the kernel, and events as its records. */
#include <inttypes.h>
#include <string.h>

#include "analysis/export/trace-dat-internal.h"
#include "analysis/state/model-internal.h"
#include "flow/sinks/json-value.h"

#define COMMON_BYTES 8
#define COMM_SIZE    16

/* ---- classes ------------------------------------------------------------------------------ */

static bool dat_format_is_number(const struct ky_field_class *cls)
{
	return (cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT ||
		cls->kind == KY_FIELD_VARUINT || cls->kind == KY_FIELD_VARSINT ||
		cls->kind == KY_FIELD_BOOL) &&
	       cls->num.length_bits <= 64;
}

static uint32_t dat_format_size(const struct ky_field_class *cls)
{
	uint32_t bits = cls->num.length_bits;

	if (cls->kind != KY_FIELD_UINT && cls->kind != KY_FIELD_SINT)
		return cls->kind == KY_FIELD_BOOL ? 1 : 8;
	return bits > 32 ? 8 : bits > 16 ? 4 : bits > 8 ? 2 : 1;
}

static bool dat_format_is_comm(const struct ky_event_words *words, const char *name)
{
	size_t len = strlen(name);

	return strcmp(words->words.system, "sched") == 0 && len >= 4 &&
	       strcmp(name + len - 4, "comm") == 0;
}

static void dat_format_field(struct ky_dat_class *own, const char *name,
			     const struct ky_field_class *cls)
{
	struct ky_dat_field *field = &own->fields[own->n_fields++];

	field->name = name;
	field->kind = KY_DAT_TEXT;
	field->size = 4;
	if (dat_format_is_number(cls)) {
		field->kind = KY_DAT_INT;
		field->size = dat_format_size(cls);
		field->is_signed = cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
		field->is_hex = cls->num.base == 16;
		field->is_prio = ky_kernel_field_is_prio(&own->words.words, name);
	} else if (dat_format_is_comm(&own->words, name)) {
		field->kind = KY_DAT_COMM;
		field->size = COMM_SIZE;
	}
	own->head_bytes = (own->head_bytes + (field->size > 8 ? 1 : field->size) - 1) &
			  ~((field->size > 8 ? 1 : field->size) - 1);
	field->offset = own->head_bytes;
	own->head_bytes += field->size;
}

int ky_dat_class_init(struct ky_dat_class *own, struct ky_arena *arena, const struct ky_host *host,
		      const struct ky_event_class *cls, uint16_t id)
{
	const struct ky_field_class *payload = cls->payload;
	size_t n = payload ? payload->st.n_members : 0;

	ky_event_words_find(&own->words, host, cls);
	own->is_used = own->words.is_kernel && !own->words.is_dump;
	own->id = id;
	own->head_bytes = COMMON_BYTES;
	if (!own->is_used)
		return KYMO_OK;
	n = n < KY_DAT_FIELDS_MAX ? n : KY_DAT_FIELDS_MAX;
	own->fields = ky_arena_array(arena, n + 1, sizeof(*own->fields));
	if (!own->fields)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++)
		dat_format_field(own, payload->st.members[i].display, payload->st.members[i].cls);
	return KYMO_OK;
}

/* ---- the text ----------------------------------------------------------------------------- */

/* Names stay what a C parser takes. */
static void dat_format_name(struct ky_strbuf *out, const char *name)
{
	for (; *name; name++) {
		bool is_plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
				(*name >= '0' && *name <= '9') || *name == '_';

		ky_strbuf_addc(out, is_plain ? *name : '_');
	}
}

static void dat_format_field_name(struct ky_strbuf *out, const struct ky_dat_class *cls,
				  const struct ky_dat_field *field)
{
	const char *name = ky_kernel_field(&cls->words.words, field->name);

	/* "ret" of the end of a system call is as it is; its parser takes no number as the first character. */
	if (name[0] >= '0' && name[0] <= '9')
		ky_strbuf_addc(out, '_');
	dat_format_name(out, name);
}

static void dat_format_put_field(struct ky_strbuf *out, const struct ky_dat_class *cls,
				 const struct ky_dat_field *field)
{
	static const char *const ints[] = {
		[1] = "char", [2] = "short", [4] = "int", [8] = "long long"};

	ky_strbuf_adds(out, "\tfield:");
	if (field->kind == KY_DAT_TEXT)
		ky_strbuf_adds(out, "__data_loc char[] ");
	else if (field->kind == KY_DAT_COMM)
		ky_strbuf_adds(out, "char ");
	else
		ky_strbuf_addf(out, "%s%s ", field->is_signed ? "" : "unsigned ",
			       ints[field->size]);
	dat_format_field_name(out, cls, field);
	if (field->kind == KY_DAT_COMM)
		ky_strbuf_addf(out, "[%d]", COMM_SIZE);
	ky_strbuf_addf(out, ";\toffset:%u;\tsize:%u;\tsigned:%d;\n", field->offset, field->size,
		       field->is_signed);
}

static void dat_format_put_print(struct ky_strbuf *out, const struct ky_dat_class *cls)
{
	ky_strbuf_adds(out, "\nprint fmt: \"");
	for (size_t i = 0; i < cls->n_fields; i++) {
		const struct ky_dat_field *field = &cls->fields[i];
		const char *length = field->size == 8 ? "ll" : "";

		ky_strbuf_adds(out, i ? " " : "");
		dat_format_field_name(out, cls, field);
		if (field->kind != KY_DAT_INT)
			ky_strbuf_adds(out, "=%s");
		else
			ky_strbuf_addf(out, "=%s%%%s%s", field->is_hex ? "0x" : "", length,
				       field->is_hex	  ? "x"
				       : field->is_signed ? "d"
							  : "u");
	}
	ky_strbuf_addc(out, '"');
	for (size_t i = 0; i < cls->n_fields; i++) {
		bool is_text = cls->fields[i].kind == KY_DAT_TEXT;

		ky_strbuf_adds(out, is_text ? ", __get_str(" : ", REC->");
		dat_format_field_name(out, cls, &cls->fields[i]);
		ky_strbuf_adds(out, is_text ? ")" : "");
	}
	ky_strbuf_addc(out, '\n');
}

void ky_dat_put_format(struct ky_strbuf *out, const struct ky_dat_class *cls)
{
	ky_strbuf_adds(out, "name: ");
	dat_format_name(out, cls->words.words.event);
	ky_strbuf_addf(out, "\nID: %u\nformat:\n", cls->id);
	ky_strbuf_adds(
		out, "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		     "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n");
	for (size_t i = 0; i < cls->n_fields; i++)
		dat_format_put_field(out, cls, &cls->fields[i]);
	dat_format_put_print(out, cls);
}

/* ---- records ------------------------------------------------------------------------------ */

static void dat_format_text(struct ky_strbuf *out, const struct ky_value *v)
{
	if ((v->cls->kind == KY_FIELD_STRING || v->cls->kind == KY_FIELD_TEXT) &&
	    v->cls->text.encoding <= KY_ENCODING_ASCII)
		ky_strbuf_add(out, v->str.data, v->str.len_bytes);
	else
		ky_json_value(out, v);
}

static void dat_format_int(struct ky_strbuf *out, const struct ky_dat_class *cls,
			   const struct ky_dat_field *field, const struct ky_value *v)
{
	uint64_t value = v->u + (field->is_prio ? (uint64_t)(int64_t)cls->words.prio_offset : 0);

	memcpy(out->data + field->offset, &value, field->size);
}

/* A text behind the fields: where it is, and how long, with its end. */
static void dat_format_loc(struct ky_strbuf *out, const struct ky_dat_field *field,
			   const struct ky_value *v, size_t left)
{
	uint32_t at = (uint32_t)out->len, loc;

	dat_format_text(out, v);
	if (out->len - at > left)
		out->len = at + left;
	ky_strbuf_addc(out, '\0');
	loc = (uint32_t)(out->len - at) << 16 | at;
	if (!out->failed)
		memcpy(out->data + field->offset, &loc, sizeof(loc));
}

void ky_dat_put_record(struct ky_strbuf *out, const struct ky_dat_class *cls,
		       const struct ky_value *payload, int32_t tid)
{
	const struct ky_value *at = payload ? payload + 1 : NULL;
	const struct ky_value *end = at ? at + payload->n_below : NULL;

	for (uint32_t i = 0; i < cls->head_bytes; i++)
		ky_strbuf_addc(out, '\0');
	if (out->failed)
		return;
	memcpy(out->data, &cls->id, sizeof(cls->id));
	memcpy(out->data + 4, &tid, sizeof(tid));
	for (size_t i = 0; i < cls->n_fields && at < end && !out->failed;
	     i++, at += 1 + at->n_below) {
		const struct ky_dat_field *field = &cls->fields[i];
		size_t left = out->len < KY_DAT_EVENT_BYTES ? KY_DAT_EVENT_BYTES - out->len : 0;

		if (field->kind == KY_DAT_INT)
			dat_format_int(out, cls, field, at);
		else if (field->kind == KY_DAT_TEXT)
			dat_format_loc(out, field, at, left);
		else if (at->cls->kind == KY_FIELD_STRING || at->cls->kind == KY_FIELD_TEXT)
			memcpy(out->data + field->offset, at->str.data,
			       at->str.len_bytes < COMM_SIZE ? at->str.len_bytes : COMM_SIZE - 1);
	}
}
