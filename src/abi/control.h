/* SPDX-License-Identifier: MIT */
/*
 * What a traced program and a recorder say to each other. They share no daemon and no socket: three
 * files of memory carry everything.
 *
 *	control file	a memfd of every program that links libkymo-trace, named "kymo-control". The
 *			program describes its events there; a recorder finds it in /proc/PID/fd, and
 *			asks the program to join a session.
 *	session file	"session" in a session's directory. The recorder says there what to record.
 *	ring file	one per program and session, in the session's directory: the ring buffer
 *			(abi/ring.h). Its client's region begins with a struct ky_blob: who the program
 *			is, and what its event ids mean. It is enough to read the ring when both the
 *			program and the recorder are gone.
 *
 * How a program comes to a session
 *
 *	A program that starts looks into the runtime directories (KY_RUNTIME_*), reads each session's
 *	file, and joins before main() runs, if any of its events is wanted.
 *
 *	A program that runs already is asked. The recorder maps its control file, takes a slot
 *	(struct ky_control_slot), writes the session's directory into it, and sets the slot's bit in
 *	the enable bytes of the events it wants. The program's next hit of such an event enters the
 *	library, sees a slot whose cookie it does not know, reads the session file, and joins. The
 *	program decides for itself which of its events are wanted and corrects the enable bytes, so a
 *	recorder may set too many of them. Best set the bits before the cookie of a slot that was empty
 *	(its owner's pid protects them), and after the cookie of one that is in use: then none is
 *	set when the program has corrected them. One that is costs a call at each hit until then.
 *
 *	The end of a session is said by storing 0 into the slots' cookies (and by removing the
 *	session's directory, first of all). The enable bytes stay: the next hit of each program
 *	clears them, and lets its ring file go. A record that is being written meanwhile is still
 *	written: read a ring a last time after that.
 *
 *	A session changes (more events, other filters) by a new session file with a new cookie and
 *	the old uuid: programs see the new cookie in their slot, and keep their ring and ids.
 *
 * Who may believe whom. A program trusts who can write to its control file and to the runtime
 * directories: its own user, and root. A recorder (often root) trusts nothing that a program
 * wrote: neither the control file nor a ring file nor the names of files. "Check:" below is what
 * it has to check. Both sides map with fixed sizes, never with sizes found in the file, and the
 * recorder first asks fstat() for the size and fcntl(F_GET_SEALS) for F_SEAL_SHRINK (control
 * file: memory that cannot shrink cannot raise SIGBUS), or reads with pread() (ring file's blob).
 * Copy a record before checking it: the program may change it in between.
 *
 * All integers are in native byte order. Offsets count from the start of the struct that has
 * them, unless said otherwise. Texts are UTF-8 and end with NUL. Reserved fields are 0.
 * A reader refuses another KY_CONTROL_VERSION. When to raise it: docs/design/tracer.md, "Versions".
 */
#ifndef KY_ABI_CONTROL_H
#define KY_ABI_CONTROL_H

#include <stdint.h>

#define KY_CONTROL_VERSION 1

/* ---- names ----------------------------------------------------------------------------- */

/*
 * The memfd: /proc/PID/fd/N is a link to "/memfd:kymo-control (deleted)". A program that closed all
 * files has it mapped still: the same name in /proc/PID/maps; root can open /proc/PID/map_files/...
 * A process may have several: each library that is linked statically with libkymo-trace has one.
 */
#define KY_CONTROL_MEMFD "kymo-control"

/*
 * The runtime directories of user UID, in the order in which programs look. Each contains one
 * directory per session, whose name is the recorder's choice (no leading '.', at most
 * KY_SESSION_NAME_MAX bytes). Programs look at a directory only when it, and the session's
 * directory in it, belong to the program's effective user or root and nobody else may write to
 * them. So a root recorder makes /run/kymo (root, 0755), /run/kymo/u1000 (root or 1000, 0755 or
 * 0700) and in it the session's directory, which must belong to user 1000 (0700): programs
 * create files in it. Instead of a session's directory there may be a link to one that is elsewhere (an
 * absolute path): programs read the link, and look at that directory in the same way; they do not
 * follow further links at its end. All on the way there should be writable for the user and root only.
 */
#define KY_RUNTIME_ROOT	    "/run/kymo/u%u"
#define KY_RUNTIME_USER	    "/run/user/%u/kymo"
#define KY_RUNTIME_SHM	    "/dev/shm/kymo-%u"
#define KY_SESSION_NAME_MAX 63
#define KY_SESSION_PATH_MAX 255 /* of the session's directory, without the NUL */

/* In a session's directory. The recorder writes another name and renames it. */
#define KY_SESSION_FILE "session"

/*
 * Ring files are "<pid>-<start>-<procname>.ring": the pid as the program sees it, its start_ns in
 * hexadecimal, its name with everything but letters, digits, '_', '-' and '.' replaced by '_'.
 * A program makes it as the same name with KY_RING_UNFINISHED in front, and renames it when head
 * and blob are valid: watch for IN_MOVED_TO. Unfinished files are garbage when the session ends.
 * Check: a regular file; opened with O_NOFOLLOW | O_NONBLOCK; everything else in this header.
 */
#define KY_RING_SUFFIX ".ring"
/*
 * A program that cannot make its ring file leaves a note for when it has ended: an empty file called
 * "<pid>-<start>-<procname>.off-<reason>-<errno>", numbers in decimal (enum ky_off; 0: no errno). So does one in
 * whose wanted events there is nothing that their filter is about (KY_OFF_FIELD): a recorder may know of a name
 * that is nearly the same. That note is not empty: it has struct ky_event_records of such events, not all of them
 * if there are many. Check: as of a ring's; at most KY_NOTE_BYTES_MAX are of interest.
 */
#define KY_NOTE_BYTES_MAX  65536
#define KY_NOTE_SUFFIX	   ".off-"
#define KY_RING_UNFINISHED "."

/* ---- limits ---------------------------------------------------------------------------- */

#define KY_CONTROL_SLOTS      8	   /* sessions that a program takes part in at a time */
#define KY_CONTROL_PAGES      256  /* executables and libraries with events, per program */
#define KY_ENABLE_BYTES	      4096 /* enable bytes of one of them */
#define KY_EVENT_FIELDS_MAX   10
#define KY_CONTEXT_FIELDS_MAX 64
#define KY_ENUM_LABELS_MAX    1024  /* of one field */
#define KY_NAME_MAX	      127   /* bytes of a provider's, event's, field's, label's name */
#define KY_RECORD_BYTES_MAX   65536 /* of a struct ky_event_record with all it contains */
#define KY_EVENTS_MAX	      65536 /* of a program: numbers and ids are below */

/* ---- the control file ------------------------------------------------------------------- */

/*
 *	0			struct ky_control
 *	KY_CONTROL_ENABLE	KY_CONTROL_PAGES pages of enable bytes
 *	KY_CONTROL_TABLE	the event table: struct ky_event_record, one behind the other
 *
 * The file has KY_CONTROL_BYTES; what is not used is a hole. It is sealed against shrinking and
 * growing. A forked child shares its parent's control file: the same inode in the fds
 * of both. The recorder treats it as one program (it gets one slot), and each process that hits an
 * event joins on its own, with a ring file of its own, except that a child goes on in the ring
 * files that its parent had when it forked. When a child loads a library, it makes itself a
 * control file first.
 */
#define KY_CONTROL_ENABLE      4096u
#define KY_CONTROL_TABLE       (KY_CONTROL_ENABLE + KY_CONTROL_PAGES * KY_ENABLE_BYTES)
#define KY_CONTROL_TABLE_BYTES (16u << 20)
#define KY_CONTROL_BYTES       (KY_CONTROL_TABLE + KY_CONTROL_TABLE_BYTES)

#define KY_CONTROL_MAGIC 0x4c5254434f4d594bull /* "KYMOCTRL" */

/* Why a program records nothing (ky_control.off), or not in a session (ky_control_slot.reason). */
enum ky_off {
	KY_OFF_NOT = 0,
	KY_OFF_VERSION, /* the session file's version is not the library's */
	KY_OFF_DIRECTORY, /* the session's directory cannot be opened (container?); os_error says why */
	KY_OFF_OWNER,	/* it does not belong to the program's user or root, or others may write */
	KY_OFF_SESSION, /* no session file, or it is malformed */
	KY_OFF_NO_RECORDER, /* nobody holds the session file's lock: its recorder is dead */
	KY_OFF_NO_EVENT,    /* the program has no event that is wanted (yet) */
	KY_OFF_FILE_SIZE,   /* RLIMIT_FSIZE is below the ring file's size */
	KY_OFF_SPACE,	    /* no space in the session's file system */
	KY_OFF_CREATE,	    /* the ring file cannot be created; os_error says why */
	KY_OFF_MEMORY,	    /* no memory, or mmap() failed */
	KY_OFF_SLOTS,	    /* all slots are taken */
	KY_OFF_TABLE,	    /* the event table is full: later events are not there */
	KY_OFF_FILTER,	    /* a filter uses something that this library does not know */
	KY_OFF_CONTEXT,	    /* a context cannot be had here (the others are recorded) */
	KY_OFF_OFTEN,	    /* it was asked to join, or to change its rules, too often */
	KY_OFF_FIELD,	    /* its wanted events lack what the filter is about */
};

/*
 * The program is in a sandbox (seccomp), where a system call may be its end: it leaves the session
 * without any, and keeps the ring's memory.
 */
#define KY_SLOT_NO_CALLS 1u

/*
 * One session. Who wants to fill a slot takes it by an atomic exchange of `owner` from 0 to its
 * pid (a slot whose owner is dead and whose cookie is 0 may be taken over), writes directory, then
 * stores cookie (release). Recorder: look for the session's cookie in all slots first; a program
 * that found the session by itself has filled one. The same cookie in two slots does no harm: the
 * program empties the later one.
 */
struct ky_control_slot {
	uint32_t owner;
	uint32_t flags;	 /* KY_SLOT_*; the recorder's, stored before cookie */
	uint64_t cookie; /* the session file's; 0: no session (any more) */
	/* Written by the program: what became of it. */
	uint64_t joined;  /* the cookie that the program knows; when it is `cookie`, these count: */
	uint32_t reason;  /* enum ky_off; KY_OFF_NOT: it records */
	int32_t os_error; /* errno, where the reason has one */
	uint32_t n_events;   /* wanted ones */
	uint32_t joined_pid; /* who wrote this; after fork() there may be several */
	char directory[KY_SESSION_PATH_MAX + 1]; /* absolute, NUL-terminated */
};

/* The program writes everything but the slots. */
struct ky_control {
	uint64_t magic; /* stored last (release), when the rest is valid */
	uint32_t version;
	uint32_t off; /* enum ky_off: why the library is off altogether */
	uint32_t pid; /* as the program sees it: in its pid namespace */
	uint32_t uid; /* effective, when it started */
	/* CLOCK_MONOTONIC when the library started: with pid it names a program for ever. */
	uint64_t start_ns;
	char procname[16]; /* NUL-terminated */
	uint32_t n_pages;  /* enable pages ever handed out (release). Check: <= KY_CONTROL_PAGES */
	uint32_t n_events; /* records in the table, those of unloaded libraries included */
	/* Bytes of the table that are valid (release). Check: <= KY_CONTROL_TABLE_BYTES. */
	uint64_t table_bytes;
	/* Counts changes of what is in the table: records appended, libraries unloaded. */
	uint32_t table_changes;
	uint32_t reserved[7];
	struct ky_control_slot slots[KY_CONTROL_SLOTS];
};

/*
 * Enable byte `byte` of page `page`: bit s is set when slot s wants the event that has this byte.
 * Several events may share one byte. Change bits with atomic operations (or, and) only: both sides do.
 */
#define KY_ENABLE_OFFSET(page, byte) \
	(KY_CONTROL_ENABLE + (uint64_t)(page)*KY_ENABLE_BYTES + (uint64_t)(byte))

/* ---- descriptions of events ------------------------------------------------------------- */

enum ky_event_kind {
	KY_EVENT_PLAIN = 0,
	KY_EVENT_SPAN_BEGIN, /* "NAME_begin" and "NAME_end" enclose what one thread does */
	KY_EVENT_SPAN_END,
	KY_EVENT_COUNTER, /* its only field is a quantity's new value */
	KY_EVENT_TEXT,	  /* kymo_printf(): its last field is what people should see */
	KY_EVENT_CONTEXT, /* no event: the context fields that each event of a ring has */
	/*
	 * No event: a place that asks whether an event of this name is wanted, so it has an
	 * enable byte. In the control file only; no fields; its log level does not count.
	 */
	KY_EVENT_QUERY,
};

enum ky_event_field_kind {
	KY_KIND_INTEGER = 1,
	KY_KIND_FLOAT,	  /* element_bytes 4 or 8 */
	KY_KIND_BOOLEAN,  /* an unsigned integer of 1 byte, 0 or 1 */
	KY_KIND_STRING,	  /* bytes up to a NUL */
	KY_KIND_ENUM,	  /* an integer with labels */
	KY_KIND_ARRAY,	  /* `length` integers or floats */
	KY_KIND_SEQUENCE, /* u32 count, then as many integers or floats */
	KY_KIND_TEXT,	  /* u32 bytes, then as many bytes of UTF-8 */
	KY_KIND_TEXT_ARRAY, /* `length` bytes of UTF-8, what follows a NUL does not count (procname) */
	KY_KIND_BLOB,	    /* u32 bytes, then as many bytes of anything */
};
/*
 * Where a u32 count stands before the elements, the metadata calls it as LTTng does:
 * "_NAME_length". Nothing is aligned, neither fields nor elements.
 */

#define KY_FIELD_SIGNED		1u
#define KY_FIELD_BIG_ENDIAN	2u /* whatever the machine's order: network byte order */
#define KY_FIELD_LITTLE_ENDIAN	4u
#define KY_FIELD_FLOAT_ELEMENTS 8u  /* of an array or sequence */
#define KY_FIELD_FILTER_ONLY	16u /* not recorded; for filters. Leave it out of the metadata. */

struct ky_field_record {
	uint32_t name; /* offset in the ky_event_record. Check: a text within it, KY_NAME_MAX */
	uint8_t kind;  /* enum ky_event_field_kind */
	uint8_t element_bytes; /* of a number or an element: 1, 2, 4, 8; texts and blobs: 1 */
	uint8_t flags;	       /* KY_FIELD_* */
	uint8_t base;	       /* 2, 8, 10, 16: how to show integers */
	uint32_t length;       /* ARRAY, TEXT_ARRAY: elements. Check: <= 65536 */
	uint32_t labels;       /* ENUM: offset of struct ky_label_record[n_labels], multiple of 8 */
	uint32_t n_labels;     /* Check: <= KY_ENUM_LABELS_MAX, and within the record */
	uint32_t reserved;
};

struct ky_label_record {
	int64_t first, last; /* inclusive; of unsigned fields: the bits of a uint64_t */
	uint32_t name;	     /* offset in the ky_event_record */
	uint32_t reserved;
};

/* The record's library was unloaded: nothing more of it comes. In the control file only. */
#define KY_EVENT_GONE 1u

/*
 * One event: in the control file's table, and in a ring file's blob. All it refers to is within its
 * `bytes`. Check: bytes is a multiple of 8, sizeof(struct ky_event_record) <= bytes <=
 * KY_RECORD_BYTES_MAX, and not more than is left of what is valid; names are not empty and have
 * only letters, digits and '_', fields' and context fields' also ':' (perf counters,
 * applications' contexts), labels anything that is UTF-8; no two fields have one name; the labels of all fields,
 * with their names, have bytes of their own: together not more than the record's.
 * The same provider:name may stand there several times (it is hit in several places); in a ring
 * they share one id when their fields are alike, and have different ids otherwise.
 */
struct ky_event_record {
	uint32_t bytes;
	uint32_t number;   /* counts the table's records from 0; in a blob: the event's id */
	uint32_t provider; /* offset of the text "shop" */
	uint32_t name;	   /* "order_placed": the event is called "shop:order_placed" */
	uint32_t file;	   /* of the source; may be "" */
	uint32_t line;
	uint16_t page;	      /* where its enable byte is. Check: below n_pages */
	uint16_t enable_byte; /* Check: below KY_ENABLE_BYTES */
	uint8_t log_level;    /* 0 EMERG .. 6 INFO, 7 DEBUG_SYSTEM .. 13 DEBUG_LINE, 14 DEBUG */
	uint8_t kind;	      /* enum ky_event_kind */
	uint8_t n_fields;     /* Check: <= KY_EVENT_FIELDS_MAX (CONTEXT: KY_CONTEXT_FIELDS_MAX) */
	uint8_t flags;	      /* KY_EVENT_* */
	struct ky_field_record fields[];
};

/* ---- the ring file's client region -------------------------------------------------------- */

#define KY_BLOB_MAGIC  0x424f4c424f4d594bull /* "KYMOBLOB" */
#define KY_BLOB_BYTES  (1u << 20)	     /* of the client's region; mostly a hole */
#define KY_NOTES_BYTES (256u << 10) /* behind that: notes; the end of the client's region */

/*
 * What a program notes of its executable and libraries, for readers that look addresses up: when it joins, before its
 * first event; and when libraries come and go that have events. The recorder looks itself, too, but may be too late.
 */
enum ky_note_kind {
	KY_NOTE_MAPS = 1, /* the text of /proc/self/maps */
	KY_NOTE_UNLOAD,	  /* uint64_t: an address in a library that is about to be unloaded */
};

struct ky_note {
	uint64_t cycles; /* when, by the ring's clock */
	uint32_t kind;	 /* enum ky_note_kind */
	uint32_t
		bytes; /* that follow, and zeros up to a multiple of 8. Check: within notes_bytes */
};

/* The clock of a recording, as os/clock.h has it. Written by the recorder, handed on by programs. */
struct ky_clock_record {
	uint32_t kind; /* 1: TSC, read by the instruction; 2: CLOCK_MONOTONIC in ns */
	uint32_t reserved;
	uint64_t frequency_hz;
	int64_t offset_s;
	int64_t offset_cycles;
	uint64_t precision_ns;
	uint8_t uuid[16]; /* the recorder's boot id; zeros: it did not know */
};
#define KY_CLOCK_RECORD_TSC	  1u
#define KY_CLOCK_RECORD_MONOTONIC 2u

/*
 * Records follow the struct: the first is of kind KY_EVENT_CONTEXT (it has no fields when no
 * context was asked for), then one per id, in the order in which events were enabled. An id's
 * record is there before the first event with that id is: read `bytes` again after reading packets.
 *
 * Packets: abi/packet.h's prolog with this trace_uuid, stream class 0, stream_id = cpu_id; then
 * events: LTTng's compact header (KY_HEADER_*), the context fields, the event's fields.
 */
struct ky_blob {
	uint64_t magic;
	uint32_t version;
	uint32_t head_bytes; /* sizeof(struct ky_blob) */
	/* All that is valid, the head included (release). Check: <= KY_BLOB_BYTES. */
	uint64_t bytes;
	uint8_t session_uuid[16]; /* the session file's */
	uint8_t trace_uuid[16];	  /* of this program's trace: packets bear it */
	struct ky_clock_record clock;
	uint32_t pid;		   /* as the program sees it */
	uint32_t uid;		   /* effective, when it joined */
	uint64_t start_ns;	   /* as in the control file */
	int64_t start_realtime_ns; /* Unix time at start_ns: for the trace's name */
	char procname[16];
	char hostname[64]; /* NUL-terminated */
	char exe[256];	   /* path of the executable, cut; "" when not known */
	/* Events lost outside the ring: hits while another hit was joining, ... */
	uint64_t lost_joining;
	uint64_t lost_no_id; /* wanted events that got no id: the blob is full */
	uint64_t lost_large; /* records larger than a sub-buffer */
	/* How many bytes of notes there are (release), at KY_BLOB_BYTES of the client's region. Check: <= KY_NOTES_BYTES. */
	uint32_t notes_bytes;
	uint32_t reserved_32;
	uint64_t cut_texts; /* strings that were longer than KYMO_STRING_MAX */
	uint64_t reserved[3];
};

/*
 * LTTng's compact header. Ids up to 30 whose event comes less than 2^27 cycles after the one before:
 *	u32	id | low 27 bits of the time << 5
 * All others:
 *	u8	31
 *	u32	id
 *	u64	time
 * (a 5-bit field 31, then an alignment to 8 bits: bits 5-7 of the first byte are 0).
 */
#define KY_HEADER_COMPACT_BYTES	 4u
#define KY_HEADER_EXTENDED_BYTES 13u
#define KY_HEADER_ID_MAX	 30u
#define KY_HEADER_EXTENDED	 31u
#define KY_HEADER_TIME_BITS	 27u

/* ---- the session file ---------------------------------------------------------------------- */

#define KY_SESSION_MAGIC     0x535345534f4d594bull /* "KYMOSESS" */
#define KY_SESSION_BYTES_MAX (1u << 20)

/*
 * Contexts in the order in which their fields are recorded. Name and type of the field:
 * vpid, vtid i32; procname TEXT_ARRAY[17]; ip, pthread_id u64 in base 16; cpu_id i32;
 * vuid, veuid, vsuid, vgid, vegid, vsgid u32; *_ns u32 (inode numbers of namespaces); perf counters
 * u64 "perf_thread_NAME"; callstack_user SEQUENCE of u64 in base 16; applications' "app_PROVIDER_NAME".
 * The blob's CONTEXT record has what a program really records.
 */
enum ky_context_kind {
	KY_CONTEXT_VPID = 1,
	KY_CONTEXT_VTID,
	KY_CONTEXT_PROCNAME,
	KY_CONTEXT_IP,
	KY_CONTEXT_CPU_ID,
	KY_CONTEXT_PTHREAD_ID,
	KY_CONTEXT_VUID,
	KY_CONTEXT_VEUID,
	KY_CONTEXT_VSUID,
	KY_CONTEXT_VGID,
	KY_CONTEXT_VEGID,
	KY_CONTEXT_VSGID,
	KY_CONTEXT_CGROUP_NS,
	KY_CONTEXT_IPC_NS,
	KY_CONTEXT_MNT_NS,
	KY_CONTEXT_NET_NS,
	KY_CONTEXT_PID_NS,
	KY_CONTEXT_TIME_NS,
	KY_CONTEXT_USER_NS,
	KY_CONTEXT_UTS_NS,
	KY_CONTEXT_CALLSTACK_USER,
	/* config_type, config: as in struct perf_event_attr; per thread. */
	KY_CONTEXT_PERF,
	KY_CONTEXT_APP, /* name is "PROVIDER:NAME" */
};

struct ky_session_context {
	uint32_t kind;
	uint32_t name; /* PERF: NAME; APP: "PROVIDER:NAME"; else 0 */
	uint32_t config_type;
	uint32_t reserved;
	uint64_t config;
};

/*
 * Which events are wanted. A rule takes those whose "provider:name" matches `pattern` ('*' any
 * run of bytes, '\' takes away the next one's meaning) and none of the exclusions, and whose
 * log level is in the range. An event is recorded when it is taken by any rule, and that rule's
 * filter (if it has one) is true.
 */
struct ky_session_rule {
	uint32_t pattern;    /* offset of a text */
	uint32_t exclusions; /* offset of n_exclusions uint32_t offsets of texts: patterns */
	uint32_t n_exclusions;
	uint8_t log_level_min, log_level_max; /* inclusive, 0 .. 14; 0 and 14 take all */
	uint16_t reserved;
	uint32_t code;	 /* filter: offset of n_code struct ky_filter_op */
	uint32_t n_code; /* 0: no filter; at most KY_FILTER_OPS_MAX */
};

/*
 * Filters are for a machine with a stack of KY_FILTER_STACK_MAX values, each an integer (64 bits,
 * signed or unsigned, compared by value), a real, a text, or nothing. Fields are named, and are
 * looked for in each event when it is enabled: the event's fields first, then contexts. What
 * they are in the expression language is in docs/filter.md: comparing with nothing is false, and
 * arithmetic with nothing, or without meaning, is nothing. A program is well-formed when every
 * operator finds its operands and exactly one value is left; jumps go forward only.
 */
enum ky_filter_code {
	KY_FILTER_INTEGER = 1, /* push arg as int64_t */
	KY_FILTER_UNSIGNED,    /* push arg as uint64_t */
	KY_FILTER_REAL,	       /* push arg's bits as a double */
	KY_FILTER_TEXT,	       /* push the text at offset arg */
	KY_FILTER_FIELD,       /* push the field whose name is the text at offset arg */
	KY_FILTER_CONTEXT,     /* push the context whose name is the text at offset arg */
	KY_FILTER_HAS,	       /* push 1 when there is a field (or context) of that name, else 0 */
	/* Two operands, the left one was pushed first. */
	KY_FILTER_EQ,
	KY_FILTER_NE,
	KY_FILTER_LT,
	KY_FILTER_LE,
	KY_FILTER_GT,
	KY_FILTER_GE,
	KY_FILTER_MATCH, /* left text matches right pattern ('*', '?') */
	KY_FILTER_OR_BITS,
	KY_FILTER_XOR_BITS,
	KY_FILTER_AND_BITS,
	KY_FILTER_SHIFT_LEFT,
	KY_FILTER_SHIFT_RIGHT,
	KY_FILTER_ADD,
	KY_FILTER_SUBTRACT,
	KY_FILTER_MULTIPLY,
	KY_FILTER_DIVIDE,
	KY_FILTER_MODULO,
	/* One operand. */
	KY_FILTER_NOT, /* 1 when it is false: nothing, 0, 0.0, "" */
	KY_FILTER_NEGATE,
	KY_FILTER_INVERT,
	/*
	 * a && b:	a, AND to after b, b.	AND: top is false: make it 0 and jump; else drop it.
	 * a || b:	a, OR to after b, b.	OR: top is true: make it 1 and jump; else drop it.
	 */
	KY_FILTER_AND, /* arg: index of the operation to go on with; larger than its own */
	KY_FILTER_OR,
};
#define KY_FILTER_OPS_MAX   1024
#define KY_FILTER_STACK_MAX 16

struct ky_filter_op {
	uint32_t code; /* enum ky_filter_code */
	uint32_t reserved;
	uint64_t arg;
};

#define KY_SESSION_OVERWRITE   1u /* the oldest sub-buffers give way; else new events are lost */
#define KY_SESSION_PREALLOCATE 2u /* all CPUs' buffers when joining, not a CPU's at its first use */

/*
 * The recorder writes the file once, complete, and renames it to KY_SESSION_FILE, holding a
 * write lock over the whole file (F_OFD_SETLK) from before the rename until the session's end:
 * programs do not join a session whose recorder is dead.
 */
struct ky_session_file {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes;	 /* of the file; at most KY_SESSION_BYTES_MAX */
	uint64_t cookie; /* not 0; new for every session file that was ever written (random) */
	uint8_t uuid[16];
	struct ky_clock_record clock;
	uint32_t flags;	       /* KY_SESSION_* */
	uint32_t subbuf_bytes; /* power of two, 4096 .. 64 MiB */
	uint32_t n_subbufs;    /* power of two, 2 .. 1024 */
	uint32_t contexts;     /* offset of struct ky_session_context[n_contexts], multiple of 8 */
	uint32_t n_contexts;   /* at most KY_CONTEXT_FIELDS_MAX */
	uint32_t rules;	       /* offset of struct ky_session_rule[n_rules], multiple of 8 */
	uint32_t n_rules;      /* at most 1024 */
	uint32_t track_pids;   /* offset of n_track_pids uint32_t: only these pids join */
	uint32_t n_track_pids; /* 0: all */
	uint32_t reserved[7];
};

#endif
