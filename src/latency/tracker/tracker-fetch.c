/* SPDX-License-Identifier: MIT */
/*
 * The kernel's fetch arguments, in which src/kernel/probe says where arguments of probes are, as steps for tracker.bpf.c:
 *
 *	%di:s32		a register
 *	+8(+0(%di)):u64	memory: at its end, and at each pointer on the way
 *	$stack2:u64	a word of the stack
 *	\5:s32		a constant
 *	@+123:u32	a variable in the probe's file
 *	+0(%si):string	a text
 *	%di:b3@5/32	a bit field
 */
#include <asm/ptrace.h>
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/tracefs/format.h"
#include "latency/tracker/tracker-internal.h"

struct tracker_register {
	const char *name;
	size_t at;
};

#if defined(__x86_64__)
#define REGISTER_(name, member)                        \
	{                                              \
		name, offsetof(struct pt_regs, member) \
	}
static const struct tracker_register registers[] = {
	REGISTER_("ax", rax),  REGISTER_("bx", rbx),  REGISTER_("cx", rcx),  REGISTER_("dx", rdx),
	REGISTER_("si", rsi),  REGISTER_("di", rdi),  REGISTER_("bp", rbp),  REGISTER_("sp", rsp),
	REGISTER_("r8", r8),   REGISTER_("r9", r9),   REGISTER_("r10", r10), REGISTER_("r11", r11),
	REGISTER_("r12", r12), REGISTER_("r13", r13), REGISTER_("r14", r14), REGISTER_("r15", r15),
	REGISTER_("ip", rip),
};
#define RESULT_REGISTER "ax"
#define STACK_REGISTER	"sp"
#define CODE_REGISTER	"ip"
#else /* src/kernel/probe knows no other processor's registers either */
static const struct tracker_register registers[] = {{NULL, 0}};
#define RESULT_REGISTER ""
#define STACK_REGISTER	""
#define CODE_REGISTER	""
#endif

static bool tracker_fetch_register(const char *name, size_t len, struct ky_tracker_fetch *fetch)
{
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		if (!registers[i].name || strlen(registers[i].name) != len ||
		    memcmp(registers[i].name, name, len) != 0)
			continue;
		fetch->base = KY_TRACKER_REGISTER;
		fetch->reg = (uint8_t)registers[i].at;
		return true;
	}
	return false;
}

/* One more pointer that is followed: what is in memory becomes a value. */
static bool tracker_fetch_load(struct ky_tracker_fetch *fetch, int64_t next_offset)
{
	if (fetch->in_memory) {
		if (fetch->n_loads == KY_TRACKER_LOADS)
			return false;
		fetch->offsets[fetch->n_loads++] = fetch->last_offset;
	}
	fetch->in_memory = 1;
	fetch->last_offset = next_offset;
	return true;
}

/* The innermost part, from @at to @end. */
static bool tracker_fetch_root(const char *at, const char *end, struct ky_tracker_fetch *fetch)
{
	size_t len = (size_t)(end - at);
	char *behind;

	if (*at == '%')
		return tracker_fetch_register(at + 1, len - 1, fetch);
	if (len == 7 && memcmp(at, "$retval", 7) == 0)
		return tracker_fetch_register(RESULT_REGISTER, strlen(RESULT_REGISTER), fetch);
	if (len > 6 && memcmp(at, "$stack", 6) == 0 && isdigit((unsigned char)at[6])) {
		unsigned long word = strtoul(at + 6, &behind, 10);

		return behind == end && word < 65536 &&
		       tracker_fetch_register(STACK_REGISTER, strlen(STACK_REGISTER), fetch) &&
		       tracker_fetch_load(fetch, (int64_t)word * 8);
	}
	if (*at == '\\') {
		fetch->base = KY_TRACKER_CONSTANT;
		fetch->constant = (uint64_t)strtoll(at + 1, &behind, 0);
		return behind == end && len > 1;
	}
	if (len > 2 && at[0] == '@' && at[1] == '+' &&
	    tracker_fetch_register(CODE_REGISTER, strlen(CODE_REGISTER), fetch)) {
		fetch->base = KY_TRACKER_IN_FILE;
		fetch->constant = strtoull(at + 2, &behind, 0);
		return behind == end && tracker_fetch_load(fetch, 0);
	}
	return false;
}

/* "+8(+0(%di))": from the inside to the outside. */
static bool tracker_fetch_place(const char *at, const char *end, struct ky_tracker_fetch *fetch,
				int depth)
{
	const char *open = memchr(at, '(', (size_t)(end - at));
	char *behind;
	int64_t offset;

	if (at == end || depth > KY_TRACKER_LOADS)
		return false;
	if (*at != '+' && *at != '-')
		return tracker_fetch_root(at, end, fetch);
	if (!open || end[-1] != ')')
		return false;
	offset = strtoll(at, &behind, 0);
	return behind == open && tracker_fetch_place(open + 1, end - 1, fetch, depth + 1) &&
	       tracker_fetch_load(fetch, offset);
}

static bool tracker_fetch_bits(const char *type, struct ky_tracker_fetch *fetch)
{
	unsigned int bits, at, whole;

	if (sscanf(type, "b%2u@%2u/%2u", &bits, &at, &whole) != 3 || !bits || bits > 64 ||
	    at + bits > whole || (whole != 8 && whole != 16 && whole != 32 && whole != 64))
		return false;
	fetch->bits = (uint8_t)bits;
	fetch->bit_offset = (uint8_t)at;
	fetch->size = (uint8_t)(whole / 8);
	return true;
}

static bool tracker_fetch_type(const char *type, struct ky_tracker_fetch *fetch,
			       struct ky_format_field *field)
{
	unsigned long bits;
	char *end;

	field->kind = KY_FORMAT_INT;
	field->type = "";
	field->size = 8;
	if (strcmp(type, "string") == 0 || strcmp(type, "ustring") == 0) {
		fetch->is_text = 1;
		field->kind = KY_FORMAT_TEXT;
		field->size = KY_TRACKER_TEXT_BYTES + 1;
		return fetch->in_memory;
	}
	if (type[0] == 'b')
		return tracker_fetch_bits(type, fetch);
	bits = strtoul(type + 1, &end, 10);
	if (!strchr("usx", type[0]) || *end ||
	    (bits != 8 && bits != 16 && bits != 32 && bits != 64))
		return false;
	fetch->size = (uint8_t)(bits / 8);
	field->size = (uint16_t)(bits / 8);
	field->is_signed = type[0] == 's';
	return true;
}

int ky_tracker_fetch(const char *text, size_t len, struct ky_tracker_fetch *fetch,
		     struct ky_format_field *field, struct kymo_error *err)
{
	const char *colon = memrchr(text, ':', len);
	char type[16] = "";

	memset(fetch, 0, sizeof(*fetch));
	if (colon && (size_t)(text + len - colon) <= sizeof(type))
		memcpy(type, colon + 1, (size_t)(text + len - colon - 1));
	if (type[0] && tracker_fetch_place(text, colon, fetch, 0) &&
	    tracker_fetch_type(type, fetch, field))
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "a tracker cannot fetch '%.*s'", (int)len,
			    text);
}
