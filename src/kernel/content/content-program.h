/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs that read what system calls' arguments point at, and what they leave behind.
 *
 * Two programs, at raw tracepoints sys_enter and sys_exit, interpret one descriptor per call. Where it says
 * MESSAGES, they end in a third one, which goes through the messages. They write records into a region of shared
 * memory per CPU, of which this process is the only reader:
 *
 *	page 0		struct ky_content_ring
 *	data		@data_bytes, a power of two; a record begins at (head & mask)
 *	slack		a record that begins in the data may end here: records never wrap
 *
 * Who may run beside whom: the programs run with preemption off and never within one another,
 * so a region has one writer. Should a kernel ever change that, `busy` says so: the second one
 * counts its record as lost. The reader owns `tail`, the writer everything else. A record is whole before
 * `head` says that it is there (x86 keeps stores in order; the reader loads head with acquire).
 */
#ifndef KY_KERNEL_CONTENT_PROGRAM_H
#define KY_KERNEL_CONTENT_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/bpf/bpf.h"
#include "kernel/events/content-calls.h"

#define KY_CONTENT_TEXT_BYTES	  4104u /* PATH_MAX with its NUL, and some: then it was cut */
#define KY_CONTENT_PATH_BYTES	  4096u /* PATH_MAX with its NUL: what the kernel reads */
#define KY_CONTENT_SOCKADDR_BYTES 128u
#define KY_CONTENT_IOVECS	  1024u	 /* what the kernel takes at most */
#define KY_CONTENT_GATHERED	  8u	 /* of so many the contents are read */
#define KY_CONTENT_TEXTS_MAX	  128u	 /* of a list */
#define KY_CONTENT_MESSAGES_MAX	  1024u	 /* of sendmmsg, recvmmsg: what the kernel takes at most */
#define KY_CONTENT_MESSAGES_BYTES 65536u /* when they take so much, no further one is begun */
#define KY_CONTENT_MESSAGE_IOVECS 64u	 /* of each of them so many vectors are looked at */
#define KY_CONTENT_DATA_OFFSET	  4096u
#define KY_CONTENT_LIMIT_MAX	  65536u

/* Messages in hand: what a program tells the one that goes on with them. */
struct ky_content_walk {
	uint64_t pointer, left; /* the next message, and how many there are from it on */
	uint64_t at;		/* bytes of the record until now */
	uint64_t data_at;	/* the same, where the content of the message in hand goes */
	uint64_t count;		/* of messages in all */
	uint64_t status, id;	/* S_STATUS, S_ID of content-writer.h */
	uint64_t is_exit, place;
	uint64_t faults; /* the place's bit, when something could not be read */
	uint64_t
		wanted; /* of a message's content: that, or what has arrived, whichever has more bits */
	uint64_t name, name_len, vectors, n_vectors, len; /* of the message in hand */
};

/* The first page of a region. The programs know these places by number. */
struct ky_content_ring {
	uint64_t head;
	uint8_t pad1[56];
	uint64_t tail;
	uint64_t busy;
	uint64_t lost;
	uint64_t lost_calls; /* whole events */
	uint8_t pad2[32];
	uint8_t scratch[128];
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
	/* SOCKADDR, BUFFER: the full length; TEXT: KY_CONTENT_TEXT_BYTES: it is longer; IOVEC: of all that it points at; TEXTS: 1: there were more */
	uint64_t value;
};

/*
 * TEXTS: of each text a word, its length with its NUL, then the text, up to a multiple of 8. Of one that could not be
 * read, only a word: its address, every bit inverted, which is negative.
 */

/* MESSAGES, where @value is how many there were: of each this, its address, then its content, both up to a multiple of 8. */
struct ky_content_message {
	uint32_t name_len, data_len;
	uint64_t bytes; /* of all its vectors that were looked at */
	uint32_t len;	/* msg_len: what has arrived */
	uint32_t flags; /* KY_CONTENT_MESSAGE_* */
};

enum {
	KY_CONTENT_MESSAGE_LONGER = 1, /* it had more vectors */
};

/* Of one call, in the map of calls. */
struct ky_content_descriptor {
	struct {
		uint8_t kind, arg, len_arg;
	} items[KY_CONTENT_PLACES];
	uint8_t replaces_memory;
	uint8_t whole;	     /* a record is written in any case: KY_CONTENT_WHOLE_* */
	uint8_t unknown;     /* KY_CONTENT_UNKNOWN: a 64-bit call that is */
	uint8_t block_bytes; /* of what socketcall stands for: arguments; and the number of that call */
	uint16_t stands_for;
};

enum {
	KY_CONTENT_WHOLE_ENTRY = 1,
	KY_CONTENT_WHOLE_EXIT = 2,
};

struct ky_btf;

/* Where the kernel's structs have what struct ky_thread_ids tells: bytes. */
struct ky_content_task {
	int32_t cred, uid, user_ns, nsproxy, thread_pid, group_leader, real_parent, level, numbers,
		upid_nr, upid_ns;
	int32_t of_nsproxy[8], inum[8]; /* by KY_NS_*; of_nsproxy -1: reached in another way */
};

/* False: this kernel does not tell. */
bool ky_content_task_layout(struct ky_btf *btf, struct ky_content_task *task);

struct ky_content_programs {
	/* To be filled in by the caller: */
	int calls_map;	/* array of struct ky_content_descriptor, by number */
	int rings_map;	/* array of regions, by CPU */
	int faults_map; /* hash: thread -> what is known of the call since its entry: S_KEPT */
	int next_map;	/* of programs: [0] goes on with messages */
	uint32_t data_bytes;
	uint32_t limit;	   /* of buffers; 0: they are not read */
	uint32_t own_pid;  /* whose calls are left out */
	int status_offset; /* of thread_info.status in struct task_struct; -1: not known */
	bool fields;	   /* what arguments point at is read */
	bool compat;	   /* 32-bit calls, too; else they are left out */
	bool unknown;	   /* those of 64 bits that the kernel does not know, too */
	bool ids;	   /* who calls is read, too, by @task */
	struct ky_content_task task;
};

/*
 * content-multiplexed.c: @to becomes the descriptor of socketcall's @i-th call, of KY_CONTENT_MULTIPLEXED, but for what is
 * that call's own. Returns its number; 0: there is none.
 */
uint32_t ky_content_multiplexed(uint32_t i, struct ky_content_descriptor *to);

/* A record is never longer. */
uint32_t ky_content_record_max(uint32_t limit);
/* What a region takes in all. */
uint64_t ky_content_region_bytes(uint32_t data_bytes, uint32_t limit);

/* Write and load a program. Returns its descriptor or an error. */
int ky_content_load_program(const struct ky_content_programs *programs, bool is_exit,
			    struct kymo_error *err);
/* The same, of the one that @next_map is to hold: the others jump there, and it does to itself. */
int ky_content_load_messages(const struct ky_content_programs *programs, struct kymo_error *err);

#endif
