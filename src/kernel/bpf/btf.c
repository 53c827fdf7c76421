/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/btf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/file.h"

#define BTF_MAX_BYTES (64u << 20)
#define BTF_MAGIC     0xeb9f

/* The kinds that have something behind their three words, and those that hold constants. */
enum {
	BTF_INT = 1,
	BTF_ARRAY = 3,
	BTF_STRUCT = 4,
	BTF_UNION = 5,
	BTF_ENUM = 6,
	BTF_FUNC_PROTO = 13,
	BTF_VAR = 14,
	BTF_DATASEC = 15,
	BTF_DECL_TAG = 17,
	BTF_ENUM64 = 19,
	BTF_LAST = BTF_ENUM64,
};

struct constant {
	int64_t value;
	bool is_ambiguous, is_asked;
};

struct sections {
	const uint8_t *types;
	uint32_t types_len;
	const char *strings;
	uint32_t strings_len;
};

void ky_btf_init(struct ky_btf *btf, const char *path)
{
	memset(btf, 0, sizeof(*btf));
	btf->path = path ? path : "/sys/kernel/btf/vmlinux";
	ky_strbuf_init(&btf->data);
	ky_arena_init(&btf->arena);
	ky_names_init(&btf->constants);
}

void ky_btf_fini(struct ky_btf *btf)
{
	ky_names_fini(&btf->constants);
	ky_arena_fini(&btf->arena);
	ky_strbuf_fini(&btf->data);
}

static uint32_t btf_word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The header: u16 magic, u8 version, u8 flags, then words: own length, types, strings. */
static bool find_sections(const struct ky_strbuf *data, struct sections *sections)
{
	const uint8_t *bytes = (const uint8_t *)ky_strbuf_text(data);
	uint64_t len = data->len, types_at, strings_at;
	uint16_t magic;

	if (len < 24)
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	if (magic != BTF_MAGIC || bytes[2] != 1)
		return false;
	types_at = (uint64_t)btf_word(bytes + 4) + btf_word(bytes + 8);
	strings_at = (uint64_t)btf_word(bytes + 4) + btf_word(bytes + 16);
	sections->types_len = btf_word(bytes + 12);
	sections->strings_len = btf_word(bytes + 20);
	if (types_at > len || sections->types_len > len - types_at || strings_at > len ||
	    sections->strings_len > len - strings_at || !sections->strings_len)
		return false;
	sections->types = bytes + types_at;
	sections->strings = (const char *)bytes + strings_at;
	return sections->strings[sections->strings_len - 1] == '\0';
}

static uint32_t bytes_behind(uint32_t kind, uint32_t n)
{
	switch (kind) {
	case BTF_INT:
	case BTF_VAR:
	case BTF_DECL_TAG:
		return 4;
	case BTF_ARRAY:
		return 12;
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_DATASEC:
	case BTF_ENUM64:
		return n * 12;
	case BTF_ENUM:
	case BTF_FUNC_PROTO:
		return n * 8;
	default:
		return 0;
	}
}

static bool add_constant(struct ky_btf *btf, const char *name, int64_t value)
{
	struct constant *constant = ky_names_get(&btf->constants, name);

	if (constant) {
		constant->is_ambiguous |= constant->value != value;
		return true;
	}
	constant = ky_arena_new(&btf->arena, struct constant);
	if (!constant)
		return false;
	constant->value = value;
	return ky_names_set(&btf->constants, name, constant) == 0;
}

/* The constants of one enumeration; @at is behind the type's three words. */
static bool take_enum(struct ky_btf *btf, const struct sections *sections, const uint8_t *at,
		      uint32_t info)
{
	bool is_wide = ((info >> 24) & 31) == BTF_ENUM64, is_signed = info >> 31;
	uint32_t n = info & 0xffff;

	for (uint32_t i = 0; i < n; i++, at += is_wide ? 12 : 8) {
		uint32_t name = btf_word(at);
		int64_t value =
			is_signed ? (int64_t)(int32_t)btf_word(at + 4) : (int64_t)btf_word(at + 4);

		if (is_wide)
			value = (int64_t)((uint64_t)btf_word(at + 8) << 32 | btf_word(at + 4));
		if (name < sections->strings_len &&
		    !add_constant(btf, sections->strings + name, value))
			return false;
	}
	return true;
}

static bool take_types(struct ky_btf *btf, const struct sections *sections)
{
	uint32_t at = 0;

	while (sections->types_len - at >= 12) {
		const uint8_t *type = sections->types + at;
		uint32_t info = btf_word(type + 4), kind = (info >> 24) & 31;
		uint32_t behind = bytes_behind(kind, info & 0xffff);

		/* Of a kind that we do not know, we do not know where it ends. */
		if (kind > BTF_LAST || behind > sections->types_len - at - 12)
			return false;
		if ((kind == BTF_ENUM || kind == BTF_ENUM64) &&
		    !take_enum(btf, sections, type + 12, info))
			return false;
		at += 12 + behind;
	}
	return true;
}

static void btf_read_all(struct ky_btf *btf)
{
	struct sections sections;

	btf->is_read = true;
	if (ky_read_file(AT_FDCWD, btf->path, BTF_MAX_BYTES, &btf->data) == 0 &&
	    find_sections(&btf->data, &sections) && take_types(btf, &sections))
		return;
	/* Half of the names would look like all of them. */
	ky_names_fini(&btf->constants);
	ky_names_init(&btf->constants);
}

bool ky_btf_constant(struct ky_btf *btf, const char *name, size_t len, int64_t *value)
{
	struct constant *constant;

	if (!btf->is_read)
		btf_read_all(btf);
	constant = ky_names_getn(&btf->constants, name, len);
	if (!constant || constant->is_ambiguous)
		return false;
	constant->is_asked = true;
	*value = constant->value;
	return true;
}

static void btf_put_constant(struct ky_strbuf *text, const char *name,
			     const struct constant *constant)
{
	if (constant->is_asked)
		ky_strbuf_addf(text, "constant %s %" PRId64 "\n", name, constant->value);
}

void ky_btf_asked(const struct ky_btf *btf, struct ky_strbuf *text)
{
	size_t pos = 0;
	const char *name;
	void *value;

	while (ky_names_next(&btf->constants, &pos, &name, &value))
		btf_put_constant(text, name, value);
}

bool ky_btf_know(struct ky_btf *btf, const char *text)
{
	size_t len;

	btf->is_read = true;
	for (; *text; text += len, text += *text == '\n') {
		char line[600], name[256];
		const char *copy;
		int64_t value;

		/* sscanf() looks for the end of all that it is given. */
		len = strcspn(text, "\n");
		if (len >= sizeof(line))
			return false;
		memcpy(line, text, len);
		line[len] = '\0';
		if (sscanf(line, "constant %255[A-Za-z0-9_] %" SCNd64, name, &value) != 2)
			return false;
		/* The table keeps the name itself. */
		copy = ky_arena_strdup(&btf->arena, name);
		if (!copy || !add_constant(btf, copy, value))
			return false;
	}
	return true;
}
