/* SPDX-License-Identifier: MIT */
/* The text sink: what the numbers of some fields mean, behind the number: "rwbs = 1057 (FWS)". */
#include <stdio.h>

#include "flow/sinks/text-internal.h"

enum decoder {
	DECODE_NOTHING,
	DECODE_RWBS,
	DECODE_SIGNAL,
	DECODE_DEVICE,
	DECODE_MADVICE,
	DECODE_FADVICE
};

/* Events by the begin of their names, and one of their fields. */
static const struct {
	const char *event, *field;
	enum decoder decoder;
} decoded[] = {
	{"block_", "rwbs", DECODE_RWBS},
	{"block_", "dev", DECODE_DEVICE},
	{"block_", "old_dev", DECODE_DEVICE},
	{"filemap_", "s_dev", DECODE_DEVICE},
	{"mm_filemap_", "s_dev", DECODE_DEVICE},
	{"lttng_statedump_block_device", "dev", DECODE_DEVICE},
	{"signal_", "sig", DECODE_SIGNAL},
	{"syscall_entry_kill", "sig", DECODE_SIGNAL},
	{"syscall_entry_tkill", "sig", DECODE_SIGNAL},
	{"syscall_entry_tgkill", "sig", DECODE_SIGNAL},
	{"syscall_entry_rt_sigaction", "sig", DECODE_SIGNAL},
	{"syscall_entry_rt_sigqueueinfo", "sig", DECODE_SIGNAL},
	{"syscall_entry_madvise", "behavior", DECODE_MADVICE},
	{"syscall_entry_fadvise64", "advice", DECODE_FADVICE},
};

uint8_t ky_text_decoder(const char *event, const char *field)
{
	for (size_t i = 0; i < sizeof(decoded) / sizeof(*decoded); i++) {
		if (strcmp(decoded[i].field, field) == 0 &&
		    strncmp(decoded[i].event, event, strlen(decoded[i].event)) == 0)
			return decoded[i].decoder;
	}
	return DECODE_NOTHING;
}

/* LTTng's bits as the kernel's letters. */
static void put_rwbs(char *to, uint64_t rwbs)
{
	static const struct {
		uint64_t bit;
		char letter;
	} rest[] = {{512, 'F'}, {8, 'A'}, {32, 'S'}, {64, 'M'}, {128, 'E'}};

	if (rwbs & 1024)
		*to++ = 'F';
	*to++ = (char)(rwbs & 2 ? 'D' : rwbs & 256 ? 'F' : rwbs & 1 ? 'W' : rwbs & 4 ? 'R' : 'N');
	for (size_t i = 0; i < sizeof(rest) / sizeof(*rest); i++) {
		if (rwbs & rest[i].bit)
			*to++ = rest[i].letter;
	}
	*to = '\0';
}

static const char *name_of_signal(uint64_t nr, char *room, size_t size)
{
	const char *name = nr && nr < 32 ? sigabbrev_np((int)nr) : NULL;

	if (name)
		snprintf(room, size, "SIG%s", name);
	else if (nr >= 32 && nr <= 64)
		snprintf(room, size, "SIGRTMIN+%u", (unsigned int)nr - 32);
	else
		return NULL;
	return room;
}

static const char *name_of_advice(uint64_t advice, bool of_file)
{
	static const char *const names[] = {
		"NORMAL",
		"RANDOM",
		"SEQUENTIAL",
		"WILLNEED",
		"DONTNEED",
		NULL,
		NULL,
		NULL,
		"FREE",
		"REMOVE",
		"DONTFORK",
		"DOFORK",
		"MERGEABLE",
		"UNMERGEABLE",
		"HUGEPAGE",
		"NOHUGEPAGE",
		"DONTDUMP",
		"DODUMP",
		"WIPEONFORK",
		"KEEPONFORK",
		"COLD",
		"PAGEOUT",
		"POPULATE_READ",
		"POPULATE_WRITE",
		"DONTNEED_LOCKED",
		"COLLAPSE",
	};

	if (of_file && advice > 4)
		return advice == 5 ? "NOREUSE" : NULL;
	return advice < sizeof(names) / sizeof(*names) ? names[advice] : NULL;
}

char *ky_text_put_decoded(char *at, uint8_t decoder, uint64_t value)
{
	char room[24];
	const char *name = room;

	switch ((enum decoder)decoder) {
	case DECODE_RWBS:
		put_rwbs(room, value);
		break;
	case DECODE_SIGNAL:
		name = name_of_signal(value, room, sizeof(room));
		break;
	case DECODE_DEVICE:
		snprintf(room, sizeof(room), "%u:%u", (unsigned int)(value >> 20 & 0xfff),
			 (unsigned int)(value & 0xfffff));
		break;
	case DECODE_MADVICE:
	case DECODE_FADVICE:
		name = name_of_advice(value, decoder == DECODE_FADVICE);
		break;
	case DECODE_NOTHING:
		name = NULL;
		break;
	}
	if (!name)
		return at;
	at = stpcpy(at, " (");
	at = stpcpy(at, name);
	return stpcpy(at, ")");
}
