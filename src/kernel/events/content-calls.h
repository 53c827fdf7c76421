/* SPDX-License-Identifier: MIT */
/*
 * Which arguments of system calls point at something worth recording: a table.
 *
 * An item is one such argument. Items of input are read when the call is entered, those of output when it
 * is left. Their places matter: a BPF program has code for every kind of item at every place where
 * the kind may stand, so buffers stand in places of their own.
 * Threads: any.
 */
#ifndef KY_KERNEL_CONTENT_CALLS_H
#define KY_KERNEL_CONTENT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ky_content_kind {
	KY_CONTENT_NONE,
	KY_CONTENT_TEXT,     /* null-terminated; only input */
	KY_CONTENT_SOCKADDR, /* @len_arg: its length; as output, the address of its length */
	KY_CONTENT_BUFFER, /* @len_arg: its length; as output, what the call returns, if that is less */
	KY_CONTENT_IOVEC,     /* @len_arg: how many */
	KY_CONTENT_MSG_NAME,  /* the sockaddr of a struct msghdr */
	KY_CONTENT_MSG_IOVEC, /* its vector */
	KY_CONTENT_OUT_TEXT,  /* a buffer, of what the call returns, that is a text */
	KY_CONTENT_VALUE,     /* @len_arg as of SOCKADDR: a few bytes */
	KY_CONTENT_TEXTS,     /* an array of addresses of texts, with a null behind; only input */
	KY_CONTENT_ENVIRON,   /* the same, only where buffers are wanted: it may hold secrets */
	KY_CONTENT_MESSAGES, /* @len_arg: how many struct mmsghdr; as output, what the call returns. Alone in its call */
	KY_CONTENT_IDS, /* whose the thread is now: no argument, and no field of the event */
};

/* Places of items. */
enum {
	KY_CONTENT_IN_A,    /* TEXT, SOCKADDR, MSG_NAME, VALUE */
	KY_CONTENT_IN_B,    /* TEXT, BUFFER, IOVEC, MSG_IOVEC, MESSAGES, TEXTS */
	KY_CONTENT_IN_C,    /* TEXT, ENVIRON */
	KY_CONTENT_OUT_A,   /* SOCKADDR, MSG_NAME, VALUE */
	KY_CONTENT_OUT_B,   /* BUFFER, OUT_TEXT, IOVEC, MSG_IOVEC, MESSAGES */
	KY_CONTENT_OUT_IDS, /* IDS */
	KY_CONTENT_PLACES,
	KY_CONTENT_IN_PLACES = 3,
};

struct ky_content_item {
	uint8_t kind; /* enum ky_content_kind */
	uint8_t arg, len_arg;
	const char *name; /* of the argument, as the kernel calls it */
};

struct ky_content_call {
	const char *name; /* as in tracefs: sys_enter_NAME */
	uint16_t number;
	bool replaces_memory; /* when it succeeds, what it was given is gone: execve */
	struct ky_content_item items[KY_CONTENT_PLACES];
};

/* The call of tracefs event @event ("sys_enter_openat", "sys_exit_openat"); NULL: nothing to read. */
const struct ky_content_call *ky_content_call_find(const char *event, bool *is_exit);

/* The @i-th call that may change a thread's ids (or whose child has others), as in tracefs; NULL: no more. */
const char *ky_content_call_of_ids(size_t i);

/*
 * Numbers of system calls are below this; behind those of 64-bit calls come those of 32-bit ones, and then what socketcall
 * stands for, by its first argument.
 */
#define KY_CONTENT_MAX_CALLS	  512
#define KY_CONTENT_BEYOND	  511 /* has no call, and stands for all numbers behind it */
#define KY_CONTENT_MULTIPLEXED_AT (2 * KY_CONTENT_MAX_CALLS)
#define KY_CONTENT_MULTIPLEXED	  21
#define KY_CONTENT_ALL_CALLS	  (KY_CONTENT_MULTIPLEXED_AT + KY_CONTENT_MULTIPLEXED)

#endif
