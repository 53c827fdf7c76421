/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Content of system calls: the input and output of the BPF programs (content.bpf.c).
 * The programs and their reader (kernel/content/content.h) both include this file.
 *
 * Programs at raw tracepoints sys_enter and sys_exit interpret one descriptor per call. They write records into a
 * region of shared memory per CPU, of which the recorder is the only reader:
 *
 *	page 0		struct ky_content_ring
 *	data		@data_bytes, a power of two; a record begins at (head & mask)
 *	slack		a record that begins in the data may end here: records never wrap
 *	vectors		room for KY_CONTENT_IOVECS of them while a program adds them up
 *
 * Who may run beside whom: the programs run with preemption off and never within one another, so a region has one
 * writer. Should a kernel ever change that, `busy` says so: the second program counts its record as lost. The reader
 * owns `tail`, the writer everything else. A record is whole before `head` says that it is there (x86 keeps stores in
 * order; the reader loads head with acquire).
 */
#ifndef KY_KERNEL_BPF_CONTENT_LAYOUT_H
#define KY_KERNEL_BPF_CONTENT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* ---- what is asked for ------------------------------------------------------------------ */

enum ky_content_kind {
	KY_CONTENT_NONE,
	KY_CONTENT_TEXT,     /* null-terminated; only input */
	KY_CONTENT_SOCKADDR, /* @len_arg: its length; as output, the address of its length */
	KY_CONTENT_BUFFER, /* @len_arg: its length; as output, what the call returns, if that is less */
	KY_CONTENT_MSG_NAME, /* the sockaddr of a struct msghdr */
	KY_CONTENT_OUT_TEXT, /* a buffer, of what the call returns, that is a text */
	KY_CONTENT_VALUE,    /* @len_arg as of SOCKADDR: a few bytes */
	KY_CONTENT_IDS, /* the identity of the thread now: no argument, and no field of the event */
	/*
	 * Those from here on have programs of their own, which the ones at the tracepoints end in. So of one entry or
	 * exit there is only one, but for TEXTS, which ENVIRON may follow.
	 */
	KY_CONTENT_IOVEC,     /* @len_arg: how many */
	KY_CONTENT_MSG_IOVEC, /* the vector of a struct msghdr */
	KY_CONTENT_MESSAGES, /* @len_arg: how many struct mmsghdr; as output, what the call returns. Alone in its call */
	KY_CONTENT_TEXTS,   /* an array of addresses of texts, with a null behind; only input */
	KY_CONTENT_ENVIRON, /* the same, only where buffers are wanted: it may hold secrets */
	KY_CONTENT_LONG_FIRST = KY_CONTENT_IOVEC,
};

/* Which program. */
enum {
	KY_CONTENT_NEXT_VECTORS,
	KY_CONTENT_NEXT_MESSAGES,
	KY_CONTENT_NEXT_TEXTS,
	KY_CONTENT_NEXT,
};

/* Places of items: the programs have code for each kind at each place where it may stand. */
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

/*
 * Numbers of system calls are below this; behind those of 64-bit calls come those of 32-bit ones, and then what socketcall
 * stands for, by its first argument.
 */
#define KY_CONTENT_MAX_CALLS	  512
#define KY_CONTENT_BEYOND	  511 /* has no call, and stands for all numbers behind it */
#define KY_CONTENT_MULTIPLEXED_AT (2 * KY_CONTENT_MAX_CALLS)
#define KY_CONTENT_MULTIPLEXED	  21
#define KY_CONTENT_ALL_CALLS	  (KY_CONTENT_MULTIPLEXED_AT + KY_CONTENT_MULTIPLEXED)
#define KY_CONTENT_SOCKETCALL	  102 /* of 32-bit calls */

enum {
	KY_CONTENT_WHOLE_ENTRY = 1,
	KY_CONTENT_WHOLE_EXIT = 2,
};

/* Of one call. All zeros: nothing of it is wanted. */
struct ky_content_descriptor {
	struct {
		uint8_t kind, arg, len_arg;
	} items[KY_CONTENT_PLACES];
	uint8_t replaces_memory; /* when it succeeds, what it was given is gone: execve */
	uint8_t whole;		 /* a record is written in any case: KY_CONTENT_WHOLE_* */
	uint8_t unknown;	 /* KY_CONTENT_UNKNOWN: a 64-bit call that is */
	uint8_t block_bytes; /* of what socketcall stands for: arguments; and the number of that call */
	uint16_t stands_for;
};

/* What does not change while the programs run: to them these are constants. */
struct ky_content_config {
	uint64_t data_bytes; /* of a region */
	uint64_t room_bytes; /* a record is begun while no more than that waits for its reader */
	uint64_t record_max; /* no record is longer */
	uint64_t iovecs_at;  /* of a region: where the vectors of a call are copied to */
	uint64_t limit;	     /* of buffers; 0: they are not read */
	uint64_t own_pid;    /* the process whose calls are left out */
	bool fields;	     /* what arguments point at is read */
	bool compat;	     /* 32-bit calls, too; else they are left out */
	bool unknown;	     /* those of 64 bits that the kernel does not know, too */
	bool ids;	     /* the identity of the thread, too */
};

/* ---- what is left behind ---------------------------------------------------------------- */

#define KY_CONTENT_TEXT_BYTES	      4104u /* PATH_MAX with its NUL, and some: then it was cut */
#define KY_CONTENT_PATH_BYTES	      4096u /* PATH_MAX with its NUL: what the kernel reads */
#define KY_CONTENT_SOCKADDR_BYTES     128u
#define KY_CONTENT_IOVECS	      1024u /* what the kernel takes at most */
#define KY_CONTENT_GATHERED	      8u    /* of so many the contents are read */
#define KY_CONTENT_TEXTS_MAX	      128u  /* of a list */
#define KY_CONTENT_MESSAGES_MAX	      1024u /* of sendmmsg, recvmmsg: what the kernel takes at most */
#define KY_CONTENT_MESSAGES_BYTES     65536u /* when they take so much, no further one is begun */
#define KY_CONTENT_MESSAGE_IOVECS     64u    /* of each of them so many vectors are looked at */
#define KY_CONTENT_MESSAGE_IOVECS_OLD 16u    /* by kernels without bpf_loop() */
#define KY_CONTENT_DATA_OFFSET	      4096u
#define KY_CONTENT_LIMIT_MAX	      65536u

/*
 * The record in hand, from one program to the next. What is here the verifier does not follow, so it looks at what
 * comes after an item once, however that item ended.
 */
struct ky_content_walk {
	uint64_t len;	 /* bytes of the record until now */
	uint64_t faults; /* the places that were not readable, a bit each */
	uint64_t
		room; /* how long an address may be that the call returns, in 32 bits: KY_CONTENT_ANY_ROOM: not known */
	uint64_t late; /* at exit: the places to be read again, a bit each */
	uint64_t id;   /* pid << 32 | tid */
	uint64_t is_exit, compat;
	int64_t ret;
	struct ky_content_descriptor call;
	/* The item of a program of its own: its place, and what its arguments say. */
	uint64_t place, kind, pointer, count;
	uint64_t status; /* what became of it: enum ky_content_status, or KY_CONTENT_GOES_ON */
	/* Vectors: their number here, the bytes of all, and of their contents those to be read and those that were. */
	uint64_t n_vectors, narrow, total, wanted, gathered;
	/* Texts: bytes of the list until now; whether one could not be read; whether there are more. */
	uint64_t texts_bytes, texts_bad, texts_cut;
	/* Messages: how many are left, and where the content of the one in hand goes in the record. */
	uint64_t left, data_at, bad;
	uint64_t name, name_len, vectors, len_vectors, arrived; /* of the message in hand */
};

#define KY_CONTENT_ANY_ROOM 0xffffffffu

/* The first page of a region. */
struct ky_content_ring {
	uint64_t head;
	uint8_t pad1[56];
	uint64_t tail;
	uint64_t busy;
	uint64_t lost;
	uint64_t lost_calls; /* whole events */
	uint8_t pad2[32];
	uint64_t scratch[16];
	struct ky_content_walk walk;
};

enum {
	KY_CONTENT_EXIT = 1,	/* of the record: written by the program at sys_exit */
	KY_CONTENT_COMPAT = 2,	/* a 32-bit call: the record is the event */
	KY_CONTENT_UNKNOWN = 4, /* the same of a 64-bit call that the kernel does not know */
};

struct ky_content_record {
	uint32_t bytes; /* in all, a multiple of 8 */
	uint32_t tid;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t number;
	uint32_t flags;
	uint32_t pid, reserved;
	uint64_t args[6];
	int64_t ret;
	uint64_t reserved2;
};

enum ky_content_status {
	KY_CONTENT_OK,
	KY_CONTENT_UNREADABLE, /* a bad address, or a page that was not in memory */
	KY_CONTENT_ABSENT,     /* a null pointer, or nothing was to be read */
	KY_CONTENT_LATE,       /* as it was at exit; not by the programs, but in content-join.c */
};

/* Of each item that was there; then @len bytes, and up to 7 more to a multiple of 8. */
struct ky_content_part {
	uint8_t place;
	uint8_t status;
	uint16_t reserved;
	uint32_t len;
	/*
	 * SOCKADDR, BUFFER: the full length; TEXT: KY_CONTENT_TEXT_BYTES: it is longer; IOVEC: of all that it points
	 * at; TEXTS: 1: there were more; MESSAGES: how many there were
	 */
	uint64_t value;
};

/*
 * TEXTS: of each text a word, its length with its NUL, then the text, up to a multiple of 8. Of one that could not be
 * read, only a word: its address, every bit inverted, which is negative.
 */

/* MESSAGES: of each this, its address, then its content, both up to a multiple of 8. */
struct ky_content_message {
	uint32_t name_len, data_len;
	uint64_t bytes; /* of all its vectors that were looked at */
	uint32_t len;	/* msg_len: what has arrived */
	uint32_t flags; /* KY_CONTENT_MESSAGE_* */
};

enum {
	KY_CONTENT_MESSAGE_LONGER = 1, /* it had more vectors */
};

#endif
