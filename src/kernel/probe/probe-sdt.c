/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-sdt.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define NOTE_TYPE      3
#define MAX_PROBES     100000
#define MAX_ARGUMENTS  12
#define MAX_NAME_BYTES 200

/* ---- notes ---------------------------------------------------------------------------- */

/* The address that the linker gave .stapsdt.base: a file that was moved later says so by it. */
static uint64_t base_address(Elf *elf, size_t names)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && strcmp(name, ".stapsdt.base") == 0)
			return header.sh_addr;
	}
	return 0;
}

/* The next text of a note; NULL: it is not terminated within it. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at;
	size_t len = strnlen(text, (size_t)(end - text));

	if (len == (size_t)(end - text))
		return NULL;
	*at = text + len + 1;
	return text;
}

static bool probe_sdt_is_name(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (!isprint((unsigned char)text[i]) || text[i] == ' ')
			return false;
	return len && len < MAX_NAME_BYTES;
}

static int probe_sdt_take_note(const char *data, size_t len, uint64_t base, struct ky_arena *arena,
			       struct ky_sdt_probes *probes)
{
	const char *at = data + 24, *end = data + len;
	const char *provider, *name, *arguments;
	struct ky_sdt_probe probe;
	uint64_t words[3];

	if (len < 24 + 3)
		return KYMO_OK;
	memcpy(words, data, sizeof(words));
	provider = next_text(&at, end);
	name = provider ? next_text(&at, end) : NULL;
	arguments = name ? next_text(&at, end) : NULL;
	if (!arguments || !probe_sdt_is_name(provider) || !probe_sdt_is_name(name) ||
	    probes->len >= MAX_PROBES)
		return KYMO_OK;
	probe = (struct ky_sdt_probe){
		.provider = ky_arena_strdup(arena, provider),
		.name = ky_arena_strdup(arena, name),
		.arguments = ky_arena_strdup(arena, arguments),
		.address = words[0] + (base ? base - words[1] : 0),
		.semaphore = words[2] ? words[2] + (base ? base - words[1] : 0) : 0,
	};
	if (!probe.provider || !probe.name || !probe.arguments)
		return KYMO_E_MEMORY;
	return ky_vec_push(probes, probe);
}

static int take_section(Elf_Scn *section, uint64_t base, struct ky_arena *arena,
			struct ky_sdt_probes *probes)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t at = 0, next, name_at, desc_at;
	int ret = KYMO_OK;
	GElf_Nhdr note;

	while (data && data->d_buf && !ret &&
	       (next = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type == NOTE_TYPE && note.n_namesz == 8 &&
		    memcmp(bytes + name_at, "stapsdt", 8) == 0)
			ret = probe_sdt_take_note(bytes + desc_at, note.n_descsz, base, arena,
						  probes);
		at = next;
	}
	return ret;
}

int ky_sdt_read(const struct ky_probe_file *file, struct ky_arena *arena,
		struct ky_sdt_probes *probes, struct kymo_error *err)
{
	Elf_Scn *section = NULL;
	uint64_t base;
	size_t names;
	int ret = KYMO_OK;

	if (elf_getshdrstrndx(file->elf, &names) != 0)
		return KYMO_OK;
	base = base_address(file->elf, names);
	while (!ret && (section = elf_nextscn(file->elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(file->elf, names, header.sh_name);
		if (name && strcmp(name, ".note.stapsdt") == 0)
			ret = take_section(section, base, arena, probes);
	}
	return ret < 0 ? ky_error_nomem(err) : ret;
}

/* ---- operands ------------------------------------------------------------------------- */

/* "rdi", "edi", "di", "dil" are all the kernel's %di; the size comes from the argument. */
static bool take_register(const char *text, size_t len, char out[8])
{
	static const struct {
		const char *name, *forms;
	} registers[] = {
		{"ax", " rax eax ax al "},  {"bx", " rbx ebx bx bl "},	{"cx", " rcx ecx cx cl "},
		{"dx", " rdx edx dx dl "},  {"si", " rsi esi si sil "}, {"di", " rdi edi di dil "},
		{"bp", " rbp ebp bp bpl "}, {"sp", " rsp esp sp spl "},
	};
	char padded[16];

	if (!len || len > 5)
		return false;
	snprintf(padded, sizeof(padded), " %.*s ", (int)len, text);
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		if (!strstr(registers[i].forms, padded))
			continue;
		snprintf(out, 8, "%%%s", registers[i].name);
		return true;
	}
	if (text[0] == 'r' && isdigit((unsigned char)text[1])) {
		char *end;
		unsigned long n = strtoul(padded + 2, &end, 10);

		if (n < 8 || n > 15 || !strchr("dwb ", *end))
			return false;
		snprintf(out, 8, "%%r%lu", n);
		return true;
	}
	return false;
}

/* "NAME", "NAME+8", "NAME-4", "12", "-4", "": a symbol's address, if there is one, plus a number. */
static bool take_displacement(const struct ky_probe_file *file, const char *text, size_t len,
			      bool *has_symbol, int64_t *value)
{
	size_t name = 0;
	char number[32] = "";
	uint64_t address = 0;
	char *end;

	while (name < len && (isalnum((unsigned char)text[name]) || strchr("_.$@", text[name])))
		name++;
	*has_symbol = name && !isdigit((unsigned char)text[0]);
	if (!*has_symbol)
		name = 0;
	else if (!ky_probe_file_symbol(file, text, name, &address))
		return false;
	if (len - name >= sizeof(number))
		return false;
	memcpy(number, text + name, len - name);
	*value = (int64_t)strtoull(number, &end, 0);
	*value += (int64_t)address;
	return *end == '\0';
}

/* OFFSET(%REGISTER), SYMBOL+OFFSET(%rip) */
static bool take_memory(const struct ky_probe_file *file, uint64_t base, const char *text,
			size_t len, char *out, size_t size)
{
	const char *open = memchr(text, '(', len);
	bool has_symbol;
	int64_t value;
	char reg[8];

	if (!open || text[len - 1] != ')' || open[1] != '%')
		return false;
	if (!take_displacement(file, text, (size_t)(open - text), &has_symbol, &value))
		return false;
	if (len - (size_t)(open - text) == 6 && memcmp(open, "(%rip)", 6) == 0) {
		if (!has_symbol)
			return false;
		snprintf(out, size, "@+%" PRIu64, (uint64_t)value - base);
		return true;
	}
	/* With an index register: the kernel cannot add two. */
	if (has_symbol || !take_register(open + 2, (size_t)(text + len - 1 - open - 2), reg))
		return false;
	snprintf(out, size, "%+" PRId64 "(%s)", value, reg);
	return true;
}

static bool probe_sdt_take_operand(const struct ky_probe_file *file, uint64_t base,
				   const char *text, size_t len, char *out, size_t size)
{
	bool has_symbol;
	int64_t value;
	char reg[8];

	if (!len)
		return false;
	if (text[0] == '%') {
		if (!take_register(text + 1, len - 1, reg))
			return false;
		snprintf(out, size, "%s", reg);
		return true;
	}
	if (text[0] == '$') {
		if (!take_displacement(file, text + 1, len - 1, &has_symbol, &value) || has_symbol)
			return false;
		snprintf(out, size, "\\%" PRId64, value);
		return true;
	}
	return take_memory(file, base, text, len, out, size);
}

int ky_sdt_fetch(const struct ky_probe_file *file, uint64_t base, const char *arguments,
		 struct ky_strbuf *fetch)
{
	int left_out = 0, n = 0;

	while (*arguments && n < MAX_ARGUMENTS) {
		size_t len = strcspn(arguments, " ");
		const char *at = memchr(arguments, '@', len);
		/* Without a size it is a word. */
		long bytes = at ? strtol(arguments, NULL, 10) : 8;
		const char *operand = at ? at + 1 : arguments;
		bool is_float = at && at > arguments && at[-1] == 'f';
		long size = bytes < -8 ? 0 : labs(bytes);
		char text[64];

		if (len) {
			n++;
			if (!is_float && (size == 1 || size == 2 || size == 4 || size == 8) &&
			    probe_sdt_take_operand(file, base, operand,
						   (size_t)(arguments + len - operand), text,
						   sizeof(text)))
				ky_strbuf_addf(fetch, " arg%d=%s:%c%ld", n, text,
					       bytes < 0 ? 's' : 'u', size * 8);
			else
				left_out++;
		}
		arguments += len;
		arguments += strspn(arguments, " ");
	}
	return left_out;
}
