/* SPDX-License-Identifier: MIT */
/* Types of BTF, the kernel's own type information (kdi-make.h). It may come from a file: it is untrusted. */
#include <stdlib.h>
#include <string.h>

#include "abi/btf-kinds.h"
#include "symbols/make/kdi-make.h"

struct reader {
	struct ky_kdi_info *info;
	const uint8_t *types, *types_end;
	const char *strings, *base_strings;
	size_t string_bytes, base_string_bytes;
	KY_VEC(uint32_t) numbers; /* of BTF's types in the debug information; 0: none */
	KY_VEC(const uint8_t *) records;
	struct ky_names functions; /* name -> signature's number in BTF */
};

static const char *btf_name(const struct reader *reader, uint32_t offset)
{
	const char *strings = reader->base_strings;
	size_t bytes = reader->base_string_bytes;

	if (offset >= bytes) {
		offset -= (uint32_t)bytes;
		strings = reader->strings;
		bytes = reader->string_bytes;
	}
	return offset < bytes && memchr(strings + offset, 0, bytes - offset) ? strings + offset
									     : "";
}

static struct btf_type kdi_btf_head_of(const uint8_t *record)
{
	struct btf_type type;

	memcpy(&type, record, sizeof(type));
	return type;
}

/* ---- records to types ------------------------------------------------------------------- */

static uint32_t type_kind(const struct btf_type *type)
{
	static const uint8_t kinds[32] = {
		[BTF_KIND_INT] = KY_KDI_BASE,	       [BTF_KIND_PTR] = KY_KDI_POINTER,
		[BTF_KIND_ARRAY] = KY_KDI_ARRAY,       [BTF_KIND_STRUCT] = KY_KDI_STRUCT,
		[BTF_KIND_UNION] = KY_KDI_UNION,       [BTF_KIND_ENUM] = KY_KDI_ENUM,
		[BTF_KIND_FWD] = KY_KDI_FORWARD,       [BTF_KIND_TYPEDEF] = KY_KDI_TYPEDEF,
		[BTF_KIND_VOLATILE] = KY_KDI_VOLATILE, [BTF_KIND_CONST] = KY_KDI_CONST,
		[BTF_KIND_RESTRICT] = KY_KDI_RESTRICT, [BTF_KIND_FUNC_PROTO] = KY_KDI_FUNCTION,
		[BTF_KIND_FLOAT] = KY_KDI_BASE,	       [BTF_KIND_ENUM64] = KY_KDI_ENUM,
	};

	return kinds[BTF_INFO_KIND(type->info)];
}

static uint32_t kdi_btf_word_at(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static void set_encoding(struct ky_kdi_type *out, const struct btf_type *type,
			 const uint8_t *behind)
{
	uint32_t kind = BTF_INFO_KIND(type->info);

	if (kind == BTF_KIND_FLOAT) {
		out->encoding = KY_KDI_FLOAT;
	} else if (kind == BTF_KIND_INT) {
		uint32_t bits = BTF_INT_ENCODING(kdi_btf_word_at(behind));

		out->encoding = bits & BTF_INT_BOOL	? KY_KDI_BOOL
				: bits & BTF_INT_CHAR	? KY_KDI_CHAR
				: bits & BTF_INT_SIGNED ? KY_KDI_SIGNED
							: KY_KDI_UNSIGNED;
	} else if (out->kind == KY_KDI_ENUM) {
		out->encoding = BTF_INFO_KFLAG(type->info);
	}
}

/* Adds what a record is, without its target and members, which may come later. */
static int add_record(struct reader *reader, const uint8_t *record)
{
	struct btf_type type = kdi_btf_head_of(record);
	struct ky_kdi_type out = {.kind = (uint8_t)type_kind(&type)};
	uint32_t number = 0, kind = BTF_INFO_KIND(type.info);

	if (kind == BTF_KIND_FUNC)
		ky_names_set(&reader->functions, btf_name(reader, type.name_off),
			     (void *)(uintptr_t)(type.type + 1ull));
	out.name = btf_name(reader, type.name_off);
	if (out.kind == KY_KDI_STRUCT || out.kind == KY_KDI_UNION || out.kind == KY_KDI_ENUM ||
	    out.kind == KY_KDI_BASE)
		out.bytes = type.size;
	if (kind == BTF_KIND_ARRAY)
		out.bytes = kdi_btf_word_at(record + sizeof(type) + 8);
	set_encoding(&out, &type, record + sizeof(type));
	if (out.kind) {
		number = ky_kdi_info_type(reader->info, &out);
		if (!number)
			return KYMO_E_MEMORY;
	}
	if (ky_vec_push(&reader->numbers, number) < 0)
		return KYMO_E_MEMORY;
	return ky_vec_push(&reader->records, record);
}

/* The number of BTF's type @id; tags stand for what they are on. */
static uint32_t kdi_btf_number_of(const struct reader *reader, uint32_t id)
{
	for (int depth = 0; depth < 32 && id < reader->numbers.len; depth++) {
		struct btf_type type;

		if (!id || reader->numbers.data[id])
			return id ? reader->numbers.data[id] : 0;
		type = kdi_btf_head_of(reader->records.data[id]);
		if (BTF_INFO_KIND(type.info) != BTF_KIND_TYPE_TAG)
			return 0;
		id = type.type;
	}
	return 0;
}

static int add_btf_members(struct reader *reader, const struct btf_type *type, const uint8_t *at)
{
	int ret = KYMO_OK;

	for (uint32_t i = 0; !ret && i < BTF_INFO_VLEN(type->info); i++, at += 12) {
		uint32_t offset = kdi_btf_word_at(at + 8);
		struct ky_kdi_member member = {
			.name = btf_name(reader, kdi_btf_word_at(at)),
			.type = kdi_btf_number_of(reader, kdi_btf_word_at(at + 4)),
			.at = BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BIT_OFFSET(offset) : offset,
			.bits = BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BITFIELD_SIZE(offset) : 0,
		};

		ret = ky_kdi_info_member(reader->info, &member);
	}
	return ret;
}

static int add_values(struct reader *reader, const struct btf_type *type, const uint8_t *at)
{
	bool is_wide = BTF_INFO_KIND(type->info) == BTF_KIND_ENUM64;
	int ret = KYMO_OK;

	for (uint32_t i = 0; !ret && i < BTF_INFO_VLEN(type->info); i++, at += is_wide ? 12 : 8) {
		struct ky_kdi_member value = {.name = btf_name(reader, kdi_btf_word_at(at))};

		value.at = is_wide ? (int64_t)((uint64_t)kdi_btf_word_at(at + 8) << 32 |
					       kdi_btf_word_at(at + 4))
			   : BTF_INFO_KFLAG(type->info) ? (int64_t)(int32_t)kdi_btf_word_at(at + 4)
							: (int64_t)kdi_btf_word_at(at + 4);
		ret = ky_kdi_info_member(reader->info, &value);
	}
	return ret;
}

static int add_parameters(struct reader *reader, struct ky_kdi_type *out,
			  const struct btf_type *type, const uint8_t *at)
{
	int ret = KYMO_OK;

	for (uint32_t i = 0; !ret && i < BTF_INFO_VLEN(type->info); i++, at += 8) {
		struct ky_kdi_member argument = {
			.name = btf_name(reader, kdi_btf_word_at(at)),
			.type = kdi_btf_number_of(reader, kdi_btf_word_at(at + 4))};

		if (!kdi_btf_word_at(at) && !kdi_btf_word_at(at + 4)) {
			out->encoding = 1; /* ... */
			break;
		}
		ret = ky_kdi_info_member(reader->info, &argument);
	}
	return ret;
}

static int fill_type(struct reader *reader, uint32_t id)
{
	const uint8_t *record = reader->records.data[id];
	struct btf_type type = kdi_btf_head_of(record);
	struct ky_kdi_type *out = &reader->info->types.data[reader->numbers.data[id]];
	uint32_t first = (uint32_t)reader->info->members.len;
	int ret = KYMO_OK;

	record += sizeof(type);
	if (reader->info->is_signatures_only && out->kind >= KY_KDI_STRUCT &&
	    out->kind <= KY_KDI_ENUM)
		return KYMO_OK;
	switch (out->kind) {
	case KY_KDI_STRUCT:
	case KY_KDI_UNION:
		ret = add_btf_members(reader, &type, record);
		break;
	case KY_KDI_ENUM:
		ret = add_values(reader, &type, record);
		break;
	case KY_KDI_ARRAY:
		out->target = kdi_btf_number_of(reader, kdi_btf_word_at(record));
		break;
	case KY_KDI_FUNCTION:
		ret = add_parameters(reader, out, &type, record);
		/* fall through */
	case KY_KDI_POINTER:
	case KY_KDI_CONST:
	case KY_KDI_VOLATILE:
	case KY_KDI_RESTRICT:
	case KY_KDI_TYPEDEF:
		out->target = kdi_btf_number_of(reader, type.type);
		break;
	default:
		break;
	}
	out->first_member = first;
	out->n_members = (uint32_t)reader->info->members.len - first;
	return ret;
}

/* ---- files ------------------------------------------------------------------------------ */

static int kdi_btf_take_header(struct reader *reader, const void *data, size_t bytes)
{
	struct btf_header head;

	if (bytes < sizeof(head))
		return KYMO_E_FORMAT;
	memcpy(&head, data, sizeof(head));
	if (head.magic != BTF_MAGIC || head.hdr_len > bytes ||
	    head.type_off > bytes - head.hdr_len ||
	    head.type_len > bytes - head.hdr_len - head.type_off ||
	    head.str_off > bytes - head.hdr_len ||
	    head.str_len > bytes - head.hdr_len - head.str_off)
		return KYMO_E_FORMAT;
	reader->base_strings = reader->strings;
	reader->base_string_bytes = reader->string_bytes;
	reader->strings = (const char *)data + head.hdr_len + head.str_off;
	reader->string_bytes = head.str_len;
	reader->types = (const uint8_t *)data + head.hdr_len + head.type_off;
	reader->types_end = reader->types + head.type_len;
	return KYMO_OK;
}

static int read_records(struct reader *reader)
{
	const uint8_t *at = reader->types;
	int ret = KYMO_OK;

	while (!ret && at < reader->types_end) {
		size_t left = (size_t)(reader->types_end - at);
		struct btf_type type;
		int64_t rest;

		if (left < sizeof(type))
			return KYMO_E_FORMAT;
		type = kdi_btf_head_of(at);
		rest = ky_btf_bytes_behind(type.info);
		if (rest < 0 || (uint64_t)rest > left - sizeof(type))
			return KYMO_E_FORMAT;
		ret = add_record(reader, at);
		at += sizeof(type) + (uint64_t)rest;
	}
	return ret;
}

static void set_signatures(struct reader *reader)
{
	ky_vec_foreach(&reader->info->functions, function) {
		uintptr_t id = (uintptr_t)ky_names_get(&reader->functions, function->name);

		if (!id)
			continue;
		function->signature = kdi_btf_number_of(reader, (uint32_t)(id - 1));
		if (reader->info->types.data[function->signature].kind != KY_KDI_FUNCTION)
			function->signature = 0;
	}
}

int ky_kdi_read_btf(struct ky_kdi_info *info, const void *btf, size_t bytes, const void *base,
		    size_t base_bytes)
{
	struct reader reader = {.info = info};
	int ret = ky_vec_push(&reader.numbers, 0u);

	ky_names_init(&reader.functions);
	if (!ret)
		ret = ky_vec_push(&reader.records, (const uint8_t *)"");
	if (!ret && base) {
		ret = kdi_btf_take_header(&reader, base, base_bytes);
		if (!ret)
			ret = read_records(&reader);
	}
	if (!ret)
		ret = kdi_btf_take_header(&reader, btf, bytes);
	if (!ret)
		ret = read_records(&reader);
	for (uint32_t id = 1; !ret && id < reader.numbers.len; id++)
		if (reader.numbers.data[id])
			ret = fill_type(&reader, id);
	if (!ret)
		set_signatures(&reader);
	ky_names_fini(&reader.functions);
	ky_vec_fini(&reader.numbers);
	ky_vec_fini(&reader.records);
	return ret;
}
