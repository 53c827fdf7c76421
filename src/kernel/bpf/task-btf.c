/* SPDX-License-Identifier: MIT */
/*
 * BTF has types one after the other, and struct task_struct is among the first. sysfs gives 4 KiB with each read, so its
 * members take a few reads, and all types 1,400. A kernel whose types are not as expected here has them read by libbpf.
 */
#include "kernel/bpf/task-btf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <bpf/btf.h>

#include "abi/btf-kinds.h"
#include "base/error.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"
/* Further back, a search costs more than it saves. */
#define TYPES_MAX  4096
#define NAME_BYTES 32

/* A part of the file. */
struct window {
	int fd;
	uint64_t at;
	size_t len;
	char data[4096];
};

struct kernel_types {
	struct window types, texts; /* two places that are read in turns */
	uint64_t types_at, types_end, texts_at, texts_end;
};

/* The members that programs read, in bits from the begin of struct task_struct. */
struct members {
	uint32_t pid, prio, comm;
};

/* @len bytes at @at, at most half a window. NULL: the file does not have them. */
static const char *window_at(struct window *window, uint64_t at, size_t len)
{
	ssize_t got;

	if (at < window->at || at + len > window->at + window->len) {
		got = pread(window->fd, window->data, sizeof(window->data), (off_t)at);
		window->at = at;
		window->len = got > 0 ? (size_t)got : 0;
	}
	return at >= window->at && at + len <= window->at + window->len
		       ? window->data + (at - window->at)
		       : NULL;
}

static bool has_name(struct kernel_types *own, uint32_t offset, const char *name)
{
	uint64_t at = own->texts_at + offset;
	size_t len = strlen(name) + 1;
	const char *text = at + len <= own->texts_end ? window_at(&own->texts, at, len) : NULL;

	return text && memcmp(text, name, len) == 0;
}

static bool open_types(struct kernel_types *own)
{
	struct btf_header head;
	const char *bytes;

	own->types.fd = own->texts.fd = open(BTF_PATH, O_RDONLY | O_CLOEXEC);
	bytes = own->types.fd >= 0 ? window_at(&own->types, 0, sizeof(head)) : NULL;
	if (!bytes)
		return false;
	memcpy(&head, bytes, sizeof(head));
	own->types_at = (uint64_t)head.hdr_len + head.type_off;
	own->types_end = own->types_at + head.type_len;
	own->texts_at = (uint64_t)head.hdr_len + head.str_off;
	own->texts_end = own->texts_at + head.str_len;
	return head.magic == BTF_MAGIC && head.version == BTF_VERSION;
}

/* Takes the member at @at if it is one of ours. How many of ours it is, or -1. */
static int task_btf_take_member(struct kernel_types *own, uint64_t at, bool has_bitfields,
				struct members *members)
{
	const char *bytes = window_at(&own->types, at, sizeof(struct btf_member));
	const struct {
		const char *name;
		uint32_t *bits;
	} wanted[] = {{"pid", &members->pid}, {"prio", &members->prio}, {"comm", &members->comm}};
	struct btf_member member;

	if (!bytes)
		return -1;
	memcpy(&member, bytes, sizeof(member));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!has_name(own, member.name_off, wanted[i].name))
			continue;
		*wanted[i].bits =
			has_bitfields ? BTF_MEMBER_BIT_OFFSET(member.offset) : member.offset;
		return has_bitfields && BTF_MEMBER_BITFIELD_SIZE(member.offset) ? -1 : 1;
	}
	return 0;
}

static bool task_btf_take_members(struct kernel_types *own, uint64_t at, uint32_t info,
				  struct members *members)
{
	int n = 0;

	for (uint32_t i = 0; i < BTF_INFO_VLEN(info); i++) {
		int one = task_btf_take_member(own, at + i * sizeof(struct btf_member),
					       BTF_INFO_KFLAG(info), members);

		if (one < 0)
			return false;
		n += one;
	}
	return n == 3;
}

static bool task_btf_find_members(struct kernel_types *own, struct members *members)
{
	uint64_t at = own->types_at;
	struct btf_type type;

	for (int i = 0; i < TYPES_MAX && at + sizeof(type) <= own->types_end; i++) {
		const char *bytes = window_at(&own->types, at, sizeof(type));
		int64_t rest;

		if (!bytes)
			return false;
		memcpy(&type, bytes, sizeof(type));
		at += sizeof(type);
		if (BTF_INFO_KIND(type.info) == BTF_KIND_STRUCT &&
		    has_name(own, type.name_off, "task_struct"))
			return task_btf_take_members(own, at, type.info, members);
		rest = ky_btf_bytes_behind(type.info);
		if (rest < 0)
			return false;
		at += (uint64_t)rest;
	}
	return false;
}

/* A struct task_struct of these members alone; NULL: no memory. */
static struct btf *make_task(const struct members *members)
{
	struct btf *btf = btf__new_empty();
	int number = btf ? btf__add_int(btf, "int", 4, BTF_INT_SIGNED) : -1;
	int character = number > 0 ? btf__add_int(btf, "char", 1, BTF_INT_SIGNED) : -1;
	int comm = character > 0 ? btf__add_array(btf, number, character, 16) : -1;
	uint32_t bytes = UINT16_MAX;

	if (comm > 0 && btf__add_struct(btf, "task_struct", bytes) > 0 &&
	    btf__add_field(btf, "pid", number, members->pid, 0) == 0 &&
	    btf__add_field(btf, "prio", number, members->prio, 0) == 0 &&
	    btf__add_field(btf, "comm", comm, members->comm, 0) == 0)
		return btf;
	btf__free(btf);
	return NULL;
}

struct btf *ky_bpf_task_btf(void)
{
	struct kernel_types own = {.types.fd = -1};
	struct members members = {0};
	bool found = open_types(&own) && task_btf_find_members(&own, &members);

	if (own.types.fd >= 0)
		close(own.types.fd);
	return found ? make_task(&members) : NULL;
}
