/* SPDX-License-Identifier: MIT */
/*
 * The interface between traced programs and recorders. They share no daemon and no socket, only
 * three files in memory:
 *
 *	control file	a memfd of every program that links libkymo-trace, named "kymo-control". The
 *			program describes its events in it. A recorder finds it in /proc/PID/fd, and
 *			asks the program to join a session.
 *	session file	"session" in a session's directory. It has the recorder's rules.
 *	ring file	one per program and session (KY_SESSION_SHARED: one for all programs of a user),
 *			in the session's directory: the ring buffer
 *			(kymo/ring-layout.h). Its client's region begins with a struct ky_blob, which
 *			describes the program and the meaning of event ids. A reader needs nothing
 *			else when both the program and the recorder have ended.
 *
 * How a program joins a session
 *
 *	A program looks into the runtime directories (KY_RUNTIME_*) at its start, reads each session's
 *	file, and joins before main() runs if a rule of the session selects any of its events.
 *
 *	The recorder asks a running program to join. It maps the program's control file, takes a slot
 *	(struct ky_control_slot), writes the session's directory into it, and sets the slot's bit in
 *	the enable bytes of the selected events. The program's next hit of such an event enters the
 *	library, which finds a slot with an unknown cookie, reads the session file, and joins. The
 *	program itself decides which of its events are selected, and corrects the enable bytes. So a
 *	recorder may set too many bits. It should set them before the cookie in a slot that was empty
 *	(its owner's pid protects them), and after the cookie in a slot that is in use: then no wrong
 *	bit is left after the program's correction. A wrong bit costs a call at each hit until then.
 *
 *	To end a session, the recorder removes the session's directory, and then stores 0 into the
 *	slots' cookies. The enable bytes stay: the next hit of each program clears them and closes
 *	its ring file. A program may finish a record that it is writing at that time, so the recorder
 *	reads each ring a last time after that.
 *
 *	To change a session (more events, other filters), the recorder writes a new session file with
 *	a new cookie and the old uuid. Programs see the new cookie in their slot, and keep their ring
 *	and ids.
 *
 * Trust. A program trusts the users who can write to its control file and to the runtime
 * directories: its own user, and root. A recorder (often root) trusts nothing that a program wrote:
 * neither the control file nor a ring file nor the names of files. "Check:" below lists the checks
 * of a recorder. Both sides map with fixed sizes, never with sizes from the file. The recorder
 * first checks the size with fstat(), and F_SEAL_SHRINK with fcntl(F_GET_SEALS) (for the control
 * file: memory that cannot shrink cannot raise SIGBUS), or reads with pread() (the ring file's
 * blob). It must copy a record before it checks the record, because the program may change the
 * record in between.
 *
 * All integers are in native byte order. Offsets count from the start of the struct that has them,
 * unless noted otherwise. Texts are UTF-8 and end with NUL. Reserved fields are 0. A reader refuses
 * another KY_CONTROL_VERSION. docs/design/tracer.md ("Versions") says when to raise it.
 */
#ifndef KY_ABI_CONTROL_H
#define KY_ABI_CONTROL_H

#include <stdint.h>

#define KY_CONTROL_VERSION 1

/* ---- names ----------------------------------------------------------------------------- */

/*
 * The memfd: /proc/PID/fd/N is a link to "/memfd:kymo-control (deleted)". A program that closed all
 * descriptors still has it mapped, under the same name in /proc/PID/maps; root can open
 * /proc/PID/map_files/... A process may have several: each library that is linked statically with
 * libkymo-trace has one.
 */
#define KY_CONTROL_MEMFD "kymo-control"

/*
 * The runtime directories of user UID, in the order in which programs search them. Each contains
 * one directory per session. The recorder chooses its name (no leading '.', at most
 * KY_SESSION_NAME_MAX bytes). Programs use a directory only when it, and the session's directory in
 * it, belong to the program's effective user or root, and no other user may write to them. So a
 * root recorder makes /run/kymo (root, 0755), /run/kymo/u1000 (root or 1000, 0755 or 0700), and in
 * it the session's directory, which must belong to user 1000 (0700), because programs create files
 * in it. A link may take the place of a session's directory, with the absolute path of a directory
 * elsewhere. Programs read the link and check that directory in the same way; they do not follow
 * further links at its end. Only the user and root should have write permission for all directories
 * on that path.
 */
#define KY_RUNTIME_ROOT	    "/run/kymo/u%u"
#define KY_RUNTIME_USER	    "/run/user/%u/kymo"
#define KY_RUNTIME_SHM	    "/dev/shm/kymo-%u"
#define KY_SESSION_NAME_MAX 63
#define KY_SESSION_PATH_MAX 255 /* of the session's directory, without the NUL */

/* In a session's directory. The recorder writes a file of another name and renames it. */
#define KY_SESSION_FILE "session"

/*
 * Ring files have names "<pid>-<start>-<procname>.ring": the pid in the program's pid namespace,
 * its start_ns in hexadecimal, and its name, in which '_' replaces every character except letters,
 * digits, '_', '-' and '.'. A program creates the file as the same name after KY_RING_UNFINISHED,
 * and renames it when head and blob are valid; recorders watch for IN_MOVED_TO. Unfinished files
 * are garbage at the session's end. Check: a regular file; opened with O_NOFOLLOW | O_NONBLOCK;
 * everything else in this header.
 */
#define KY_RING_SUFFIX ".ring"
/*
 * A program that cannot make its ring file leaves a note, which outlives the program: an empty file
 * "<pid>-<start>-<procname>.off-<reason>-<errno>", with decimal numbers (enum ky_off; 0: no errno).
 * A program also leaves a note when its selected events lack all fields of their filter
 * (KY_OFF_FIELD), since a recorder may know a similar field name. That note has the struct
 * ky_event_records of such events, or of some of them if there are many. Check: as for a ring file;
 * a recorder reads at most KY_NOTE_BYTES_MAX.
 */
#define KY_NOTE_BYTES_MAX  65536
#define KY_NOTE_SUFFIX	   ".off-"
#define KY_RING_UNFINISHED "."

/* ---- limits ---------------------------------------------------------------------------- */

#define KY_CONTROL_SLOTS      8	   /* sessions that a program can join at the same time */
#define KY_CONTROL_PAGES      256  /* executables and libraries with events, per program */
#define KY_ENABLE_BYTES	      4096 /* enable bytes of one of them */
#define KY_EVENT_FIELDS_MAX   10
#define KY_CONTEXT_FIELDS_MAX 64
#define KY_ENUM_LABELS_MAX    1024  /* of one field */
#define KY_NAME_MAX	      127   /* bytes of a provider's, event's, field's, label's name */
#define KY_RECORD_BYTES_MAX   65536 /* of a struct ky_event_record with its texts and tables */
#define KY_EVENTS_MAX	      65536 /* of a program; numbers and ids are lower */

/* ---- the control file ------------------------------------------------------------------- */

/*
 *	0			struct ky_control
 *	KY_CONTROL_ENABLE	KY_CONTROL_PAGES pages of enable bytes
 *	KY_CONTROL_TABLE	the event table: struct ky_event_record, one after another
 *
 * The file has KY_CONTROL_BYTES; unused parts are holes. Seals prevent shrinking and growing. A
 * forked child shares its parent's control file: both processes have a descriptor of the same
 * inode. The recorder treats the file as one program (with one slot). Each process joins at its
 * first hit and gets a ring file of its own, but a child continues to use the ring files that its
 * parent had at the fork. A child that loads a library first makes its own control file.
 */
#define KY_CONTROL_ENABLE      4096u
#define KY_CONTROL_TABLE       (KY_CONTROL_ENABLE + KY_CONTROL_PAGES * KY_ENABLE_BYTES)
#define KY_CONTROL_TABLE_BYTES (16u << 20)
#define KY_CONTROL_BYTES       (KY_CONTROL_TABLE + KY_CONTROL_TABLE_BYTES)

#define KY_CONTROL_MAGIC 0x4c5254434f4d594bull /* "KYMOCTRL" */

/*
 * The reason why a program records nothing (ky_control.off), or nothing in a session
 * (ky_control_slot.reason).
 */
enum ky_off {
	KY_OFF_NOT = 0,
	KY_OFF_VERSION, /* the session file's version is not the library's */
	KY_OFF_DIRECTORY, /* the session's directory cannot be opened (container?); os_error has the cause */
	KY_OFF_OWNER,	/* the directory belongs to another user, or other users may write to it */
	KY_OFF_SESSION, /* no session file, or it is malformed */
	KY_OFF_NO_RECORDER, /* no process holds the session file's lock: the recorder is dead */
	KY_OFF_NO_EVENT,    /* no rule selects an event of the program (yet) */
	KY_OFF_FILE_SIZE,   /* RLIMIT_FSIZE is below the ring file's size */
	KY_OFF_SPACE,	    /* no space in the session's file system */
	KY_OFF_CREATE,	    /* the ring file cannot be created; os_error has the cause */
	KY_OFF_MEMORY,	    /* no memory, or mmap() failed */
	KY_OFF_SLOTS,	    /* all slots are taken */
	KY_OFF_TABLE,	    /* the event table is full: later events are missing */
	KY_OFF_FILTER,	    /* a filter uses a feature that this library does not know */
	KY_OFF_CONTEXT,	    /* a context field is not available here (the others are recorded) */
	KY_OFF_OFTEN,	    /* the recorder sent too many requests to join or to change rules */
	KY_OFF_FIELD,	    /* the selected events lack all fields of the filter */
};

/*
 * The program is in a sandbox (seccomp), in which a system call may kill it: it leaves the session
 * without system calls, and keeps the ring's memory.
 */
#define KY_SLOT_NO_CALLS 1u

/*
 * One session. A process that fills a slot first takes it with an atomic exchange of `owner` from 0
 * to its pid (a slot with a dead owner and cookie 0 may be taken over), writes the directory, then
 * stores the cookie (release). A recorder must first search all slots for the session's cookie,
 * because a program that found the session by itself has filled one. The same cookie in two slots
 * does no harm: the program empties the later one.
 */
struct ky_control_slot {
	uint32_t owner;
	uint32_t flags;	 /* KY_SLOT_*; the recorder stores it before cookie */
	uint64_t cookie; /* that of the session file; 0: no session (any more) */
	/*
	 * The program writes the result here. @joined is the last cookie that the program has read;
	 * the members after it are valid when it equals @cookie.
	 */
	uint64_t joined;
	uint32_t reason;     /* enum ky_off; KY_OFF_NOT: the program records */
	int32_t os_error;    /* errno, when the reason has one */
	uint32_t n_events;   /* number of selected events */
	uint32_t joined_pid; /* process that wrote this; after fork() there may be several */
	char directory[KY_SESSION_PATH_MAX + 1]; /* absolute, NUL-terminated */
};

/* The program writes everything except the slots. */
struct ky_control {
	uint64_t magic; /* stored last (release): the rest is then valid */
	uint32_t version;
	uint32_t off; /* enum ky_off: why the library is off */
	uint32_t pid; /* in the program's pid namespace */
	uint32_t uid; /* the effective user at the program's start */
	/*
	 * CLOCK_MONOTONIC at the library's start. Together with pid it identifies a program for
	 * ever.
	 */
	uint64_t start_ns;
	char procname[16]; /* NUL-terminated */
	uint32_t n_pages;  /* number of enable pages so far (release). Check: <= KY_CONTROL_PAGES */
	uint32_t n_events; /* records in the table, including those of unloaded libraries */
	/* Valid bytes of the table (release). Check: <= KY_CONTROL_TABLE_BYTES. */
	uint64_t table_bytes;
	/* Counts changes of the table: appended records, unloaded libraries. */
	uint32_t table_changes;
	uint32_t reserved[7];
	struct ky_control_slot slots[KY_CONTROL_SLOTS];
};

/*
 * Enable byte `byte` of page `page`. Bit s is set when slot s selects the event of this byte.
 * Several events may share one byte. Both sides must change bits with atomic operations (or, and)
 * only.
 */
#define KY_ENABLE_OFFSET(page, byte) \
	(KY_CONTROL_ENABLE + (uint64_t)(page)*KY_ENABLE_BYTES + (uint64_t)(byte))

/* ---- descriptions of events ------------------------------------------------------------- */

enum ky_event_kind {
	KY_EVENT_PLAIN = 0,
	KY_EVENT_SPAN_BEGIN, /* "NAME_begin" and "NAME_end" enclose a span of a thread's work */
	KY_EVENT_SPAN_END,
	KY_EVENT_COUNTER, /* its only field is a quantity's new value */
	KY_EVENT_TEXT,	  /* kymo_printf(): its last field is the text for people */
	KY_EVENT_CONTEXT, /* not an event: the context fields of each event of a ring */
	/*
	 * Not an event: a place in the program that checks whether an event of this name is
	 * enabled, so it has an enable byte. Only in the control file; it has no fields, and its
	 * log level does not matter.
	 */
	KY_EVENT_QUERY,
};

enum ky_event_field_kind {
	KY_KIND_INTEGER = 1,
	KY_KIND_FLOAT,	    /* element_bytes 4 or 8 */
	KY_KIND_BOOLEAN,    /* an unsigned integer of 1 byte, 0 or 1 */
	KY_KIND_STRING,	    /* bytes up to a NUL */
	KY_KIND_ENUM,	    /* an integer with labels */
	KY_KIND_ARRAY,	    /* `length` integers or floats */
	KY_KIND_SEQUENCE,   /* u32 count, then that many integers or floats */
	KY_KIND_TEXT,	    /* u32 bytes, then that many bytes of UTF-8 */
	KY_KIND_TEXT_ARRAY, /* `length` bytes of UTF-8; bytes after a NUL do not count (procname) */
	KY_KIND_BLOB,	    /* u32 bytes, then that many bytes of any kind */
};
/*
 * The metadata gives a u32 count before elements the same name as LTTng does: "_NAME_length".
 * Neither fields nor elements are aligned.
 */

#define KY_FIELD_SIGNED		1u
#define KY_FIELD_BIG_ENDIAN	2u /* network byte order, on all machines */
#define KY_FIELD_LITTLE_ENDIAN	4u
#define KY_FIELD_FLOAT_ELEMENTS 8u /* of an array or sequence */
#define KY_FIELD_FILTER_ONLY \
	16u /* not recorded; for filters. The metadata does not have the field. */

struct ky_field_record {
	uint32_t name; /* offset in the ky_event_record. Check: a text within it, KY_NAME_MAX */
	uint8_t kind;  /* enum ky_event_field_kind */
	uint8_t element_bytes; /* of a number or an element: 1, 2, 4, 8; texts and blobs: 1 */
	uint8_t flags;	       /* KY_FIELD_* */
	uint8_t base;	       /* 2, 8, 10, 16: the base in which readers show integers */
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

/* The record's library was unloaded: the event will not occur again. Only in the control file. */
#define KY_EVENT_GONE 1u

/*
 * One event: in the control file's table, and in a ring file's blob. All its offsets lie within its
 * `bytes`. Check: bytes is a multiple of 8, sizeof(struct ky_event_record) <= bytes <=
 * KY_RECORD_BYTES_MAX, and bytes does not exceed the rest of the valid part; names are not empty
 * and have only letters, digits and '_', names of fields and context fields also ':' (perf
 * counters, applications' contexts), labels any UTF-8; field names are unique; the labels of all
 * fields, with their names, do not overlap: together they have at most the record's bytes. The same
 * provider:name may have several records (one per place in the code). In a ring, they share one id
 * when their fields are alike, and have different ids otherwise.
 */
struct ky_event_record {
	uint32_t bytes;
	uint32_t number;   /* index of the record in the table, from 0; in a blob: the event's id */
	uint32_t provider; /* offset of the text "shop" */
	uint32_t name;	   /* "order_placed": the event's full name is "shop:order_placed" */
	uint32_t file;	   /* name of the source file; may be "" */
	uint32_t line;
	uint16_t page;	      /* page of the enable byte. Check: below n_pages */
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
#define KY_NOTES_BYTES (256u << 10)	     /* after that: notes; the end of the client's region */

/*
 * Notes of a program about its executable and libraries, for readers that look addresses up. The
 * program writes one when it joins, before its first event, and when a library with events is
 * loaded or unloaded. The recorder looks at the maps, too, but may be too late.
 */
enum ky_note_kind {
	KY_NOTE_MAPS = 1, /* the text of /proc/self/maps */
	KY_NOTE_UNLOAD,	  /* uint64_t: an address in a library that is about to be unloaded */
};

struct ky_note {
	uint64_t cycles; /* the time, in cycles of the ring's clock */
	uint32_t kind;	 /* enum ky_note_kind */
	uint32_t
		bytes; /* bytes that follow, and zeros up to a multiple of 8. Check: within notes_bytes */
};

/*
 * A ring of many programs (KY_BLOB_SHARED) has no notes. Each program, and each child that it forks, writes its notes to
 * files of their own in the session's directory: "<pid>-<start>-<procname>.state-<number>", made under a hidden name and
 * renamed when they are complete. The recorder reads and removes them. Check: as for a ring file; at most
 * KY_STATE_NOTE_MAX bytes; note.bytes against the file's length.
 */
#define KY_STATE_NOTE_SUFFIX ".state-"
#define KY_STATE_NOTE_MAGIC  0x454541544f4d594bull /* "KYMOSTATE", cut */
#define KY_STATE_NOTE_MAX    (256u << 10)
#define KY_STATE_NOTE_JOINS  1u /* the first one of a process, or of a program that it executes */

struct ky_state_note {
	uint64_t magic;
	uint32_t pid; /* in the program's pid namespace */
	uint32_t flags;
	char procname[16];
	struct ky_note note; /* its bytes follow */
};

/* The clock of a recording, see os/clock.h. The recorder writes it, programs pass it on. */
struct ky_clock_record {
	uint32_t kind; /* 1: TSC, read by the instruction; 2: CLOCK_MONOTONIC in ns */
	uint32_t reserved;
	uint64_t frequency_hz;
	int64_t offset_s;
	int64_t offset_cycles;
	uint64_t precision_ns;
	uint8_t uuid[16]; /* the recorder's boot ID; zeros: unknown */
};
#define KY_CLOCK_RECORD_TSC	  1u
#define KY_CLOCK_RECORD_MONOTONIC 2u

/*
 * Records follow the struct. The first has kind KY_EVENT_CONTEXT (without fields when the recording
 * has no context fields). The others describe ids, one record per id, in the order in which the
 * program enabled the events. A program writes an id's record before the first event with that id,
 * so a reader must read `bytes` again after it has read packets.
 *
 * Packets: abi/packet.h's prolog with this trace_uuid, stream class 0, stream_id = cpu_id; then
 * events: LTTng's compact header (KY_HEADER_*), the context fields, the event's fields.
 */
struct ky_blob {
	uint64_t magic;
	uint32_t version;
	uint32_t head_bytes; /* sizeof(struct ky_blob) */
	/* All valid bytes, the head included (release). Check: <= KY_BLOB_BYTES. */
	uint64_t bytes;
	uint8_t session_uuid[16]; /* that of the session file */
	uint8_t trace_uuid[16];	  /* of this program's trace; in the header of its packets */
	struct ky_clock_record clock;
	uint32_t pid;		   /* in the program's pid namespace */
	uint32_t uid;		   /* the effective user at the time of joining */
	uint64_t start_ns;	   /* the same as in the control file */
	int64_t start_realtime_ns; /* Unix time at start_ns; for the trace's name */
	char procname[16];
	char hostname[64]; /* NUL-terminated */
	char exe[256];	   /* path of the executable, cut; "" when unknown */
	/* Losses outside of the ring: hits while another hit was joining, ... */
	uint64_t lost_joining;
	uint64_t lost_no_id; /* selected events without an id: the blob is full */
	uint64_t lost_large; /* records larger than a sub-buffer */
	/*
	 * The number of bytes of notes (release), which begin at KY_BLOB_BYTES of the client's
	 * region. Check: <= KY_NOTES_BYTES.
	 */
	uint32_t notes_bytes;
	uint32_t flags;	    /* KY_BLOB_* */
	uint64_t cut_texts; /* strings that were longer than KYMO_STRING_MAX */
	/*
	 * KY_BLOB_SHARED: the offset of the entry with the context fields of all events, from the
	 * start of the blob (release); 0: none yet.
	 */
	uint64_t layout;
	uint64_t reserved[2];
};

/*
 * Many programs write to the ring. Behind the head, the blob has a registry instead of records:
 * struct ky_shared_entry, one after another, up to the first one with claim 0. A program that adds
 * an entry allocates its memory, takes it with an atomic exchange of @claim from 0, writes the
 * record, and stores @ready. The id of an event is the index of its entry. An entry that is claimed
 * and not ready belongs to a program that is at it, or that has died: readers pass over it. @bytes
 * of the blob grows by the length of each record that becomes ready. pid, start_ns, procname and exe
 * are those of the program that made the ring, and no notes exist there (struct ky_state_note). Check: each length, against the rest
 * of KY_BLOB_BYTES; the copy of a record as in any blob.
 */
#define KY_BLOB_SHARED 1u

struct ky_shared_entry {
	uint64_t claim; /* record's bytes << 32 | a hash of the event's type */
	uint32_t ready; /* 1: the record is complete (release) */
	uint32_t reserved;
	/* struct ky_event_record */
};

/* The name of the ring file, in the session's directory. */
#define KY_SHARED_RING	      "0-0-user.ring"
#define KY_SHARED_CONTEXT_MAX 8192 /* bytes of the record of context fields */

/*
 * LTTng's compact header. Events with an id up to 30 that come less than 2^27 cycles after the
 * event before:
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
 * Contexts, in the order of their fields in the ring. Name and type of the field: vpid, vtid i32;
 * procname TEXT_ARRAY[17]; ip, pthread_id u64 in base 16; cpu_id i32; vuid, veuid, vsuid, vgid,
 * vegid, vsgid u32; *_ns u32 (inode numbers of namespaces); perf counters u64 "perf_thread_NAME";
 * callstack_user SEQUENCE of u64 in base 16; applications' "app_PROVIDER_NAME". The blob's CONTEXT
 * record has the fields that a program really records.
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
	/* config_type, config: see struct perf_event_attr; per thread. */
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
 * A rule, which selects events. It selects events whose "provider:name" matches `pattern` ('*' any
 * run of bytes, '\' removes the special meaning of the next character) and none of the exclusions,
 * and whose log level is in the range. A program records an event when a rule selects it and that
 * rule's filter (if any) is true.
 */
struct ky_session_rule {
	uint32_t pattern;    /* offset of a text */
	uint32_t exclusions; /* offset of n_exclusions uint32_t offsets of texts: patterns */
	uint32_t n_exclusions;
	uint8_t log_level_min,
		log_level_max; /* both included, 0 .. 14; 0 and 14 select all levels */
	uint16_t reserved;
	uint32_t code;	 /* filter: offset of n_code struct ky_filter_op */
	uint32_t n_code; /* 0: no filter; at most KY_FILTER_OPS_MAX */
};

/*
 * Filters are programs for a machine with a stack of KY_FILTER_STACK_MAX values. A value is an
 * integer (64 bits, signed or unsigned, compared by value), a real, a text, or nothing. A filter
 * names its fields; the traced program looks them up in each event when it enables the event: the
 * event's fields first, then contexts. docs/filter.md defines the expression language: a comparison
 * with nothing is false; arithmetic with nothing, or without meaning, gives nothing. A filter is
 * well-formed when every operator finds its operands and exactly one value is left; jumps go
 * forward only.
 */
enum ky_filter_code {
	KY_FILTER_INTEGER = 1, /* push arg as int64_t */
	KY_FILTER_UNSIGNED,    /* push arg as uint64_t */
	KY_FILTER_REAL,	       /* push arg's bits as a double */
	KY_FILTER_TEXT,	       /* push the text at offset arg */
	KY_FILTER_FIELD,       /* push the field whose name is the text at offset arg */
	KY_FILTER_CONTEXT,     /* push the context whose name is the text at offset arg */
	KY_FILTER_HAS, /* push 1 when the event has a field (or context) of that name, else 0 */
	/* Two operands: the left one was pushed first. */
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
	KY_FILTER_NOT, /* 1 when the operand is false: nothing, 0, 0.0, "" */
	KY_FILTER_NEGATE,
	KY_FILTER_INVERT,
	/*
	 * a && b:	a, AND to after b, b.	AND: top is false: make it 0 and jump; else drop it.
	 * a || b:	a, OR to after b, b.	OR: top is true: make it 1 and jump; else drop it.
	 */
	KY_FILTER_AND, /* arg: index of the next operation; larger than the operation's own index */
	KY_FILTER_OR,
};
#define KY_FILTER_OPS_MAX   1024
#define KY_FILTER_STACK_MAX 16

struct ky_filter_op {
	uint32_t code; /* enum ky_filter_code */
	uint32_t reserved;
	uint64_t arg;
};

#define KY_SESSION_OVERWRITE \
	1u /* new events overwrite the oldest sub-buffer; without it, new events are lost */
#define KY_SESSION_PREALLOCATE \
	2u /* programs allocate all CPUs' buffers when they join; without it, each at its first use */

#define KY_SESSION_SHARED \
	4u /* all programs of the user write to one ring; a program that cannot makes its own */

/*
 * The recorder writes the file once, completely, and renames it to KY_SESSION_FILE. It holds a
 * write lock over the whole file (F_OFD_SETLK) from before the rename until the session's end.
 * Programs do not join a session whose recorder is dead.
 *
 * With @wait_ns, programs map the file's first page for reading, and the recorder adds 1 to @beat
 * there every KY_BEAT_MS. A program whose buffer is full waits until the recorder has read a
 * sub-buffer: at most @wait_ns for an event (UINT64_MAX: without a limit), and only while @beat
 * changes at least every KY_BEATLESS_MS, the recorder reads the ring (struct kymo_ring_file:
 * attended), and the program's slot has a cookie. Then the event is lost, and counted.
 */
#define KY_BEAT_MS     250
#define KY_BEATLESS_MS 5000

struct ky_session_file {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes;	 /* of the file; at most KY_SESSION_BYTES_MAX */
	uint64_t cookie; /* not 0; random, so each session file has a cookie of its own */
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
	uint32_t reserved_32;
	uint64_t wait_ns; /* 0: a program whose buffer is full loses the event */
	uint64_t beat;	  /* changes while the recorder lives */
	uint32_t
		group; /* offset of a text: the group whose buffers these are, for recovery; 0: none */
	uint32_t reserved;
};

#endif
