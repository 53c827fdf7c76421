/* SPDX-License-Identifier: MIT */
/*
 * The container of perf.data: attributes of events, features, and records one after the other; files and what
 * `perf record -o -` writes (pipe mode), in either byte order, with compressed records. Nothing in it is trusted.
 *
 * Threads: one at a time per file.
 */
#ifndef KY_IMPORT_PERF_FILE_H
#define KY_IMPORT_PERF_FILE_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"
#include "import/common/foreign-file.h"
#include "import/ftrace/tracing-data.h"

enum ky_perf_record {
	KY_PERF_MMAP = 1,
	KY_PERF_LOST = 2,
	KY_PERF_COMM = 3,
	KY_PERF_EXIT = 4,
	KY_PERF_THROTTLE = 5,
	KY_PERF_UNTHROTTLE = 6,
	KY_PERF_FORK = 7,
	KY_PERF_SAMPLE = 9,
	KY_PERF_MMAP2 = 10,
	KY_PERF_AUX = 11,
	KY_PERF_LOST_SAMPLES = 13,
	KY_PERF_SWITCH = 14,
	KY_PERF_SWITCH_CPU_WIDE = 15,
	KY_PERF_USER = 64, /* those from here on are perf's own */
	KY_PERF_HEADER_ATTR = 64,
	KY_PERF_TRACING_DATA = 66,
	KY_PERF_FINISHED_ROUND = 68,
	KY_PERF_AUXTRACE_INFO = 70,
	KY_PERF_AUXTRACE = 71,
	KY_PERF_EVENT_UPDATE = 78,
	KY_PERF_FEATURE = 80,
	KY_PERF_COMPRESSED = 81,
	KY_PERF_COMPRESSED2 = 83,
	/* Of Android's simpleperf, whose own records have 32 bits for their size. */
	KY_PERF_SIMPLEPERF = 0x8000,
	KY_PERF_SIMPLEPERF_TRACING_DATA = 0x8009,
};

#define KY_PERF_HEAD_BYTES	8u
#define KY_PERF_KNOWN_IDS	512u
#define KY_PERF_TYPE_TRACEPOINT 2u
/* perf_event_attr.config of an event that counts nothing: of PERF_TYPE_SOFTWARE. */
#define KY_PERF_TYPE_SOFTWARE 1u
#define KY_PERF_CONFIG_DUMMY  9u

/* An event that perf recorded: what this project needs of struct perf_event_attr. */
struct ky_perf_attr {
	uint32_t type;
	uint64_t config, period, sample_type, read_format;
	uint64_t branch_type, user_registers;
	bool sample_id_all, build_id;
	char *name; /* "cpu-clock"; in the file's arena; NULL: the file has none */
	int event;  /* for the owner; -1 at first */
	/* Where the counter's id, the time and the CPU stand in a sample, in bytes; 0: it has none. */
	uint16_t at_id, at_time, at_cpu;
	/* Where the length of a tracepoint's record stands; 0: it has none, or not always at the same place. */
	uint16_t at_raw;
};

/* What a CPU's tracing hardware has written, as perf has copied it. */
struct ky_perf_aux {
	uint64_t at, bytes; /* in the file */
	uint64_t offset, reference;
	uint32_t index, tid, cpu;
};

struct ky_perf_build_id {
	uint8_t n, bytes[20];
};

struct ky_perf_file {
	struct ky_foreign_file file;
	const char *path; /* that the user gave: the file's, or that of the directory with it */
	struct ky_arena arena;
	KY_VEC(struct ky_perf_attr) attrs;
	uint64_t n_ids;	   /* that the file names */
	struct ky_map ids; /* id of a counter -> number of its attribute plus 1, as a pointer */
	/* Some of these, by the id's last bits; number 0: none. */
	struct {
		uint64_t id;
		uintptr_t number;
	} known[KY_PERF_KNOWN_IDS];
	bool is_pipe, big_endian;
	bool is_cut; /* or was never finished: without features, which come last */
	struct kymo_error
		broken; /* of the first feature that is cut or makes no sense; code 0: none */
	bool has_tracing;
	struct ky_tracing_data tracing;
	const char *hostname, *release, *arch; /* NULL: the file does not say */
	/* Of the kernel: its build ID, a symbol of it and that one's address; 0: the file does not say. */
	uint8_t kernel_id[20];
	char kernel_symbol[32];
	uint64_t kernel_at;
	/* The clock's value and wall time at one moment, ns; wall_ns 0: the file does not say. */
	uint64_t clock_ns, wall_ns;
	bool has_user_stacks;	/* samples have copies of stacks */
	bool has_samples;	/* of other things than tracepoints */
	bool has_map_build_ids; /* mappings have build IDs */
	bool is_in_part;	/* a file of a directory is read: perf-parts.h */
	uint32_t aux_kind;	/* of the hardware, as perf numbers it; 0: the file does not say */
	KY_VEC(struct ky_perf_aux) aux;
	uint64_t n_aux_left_out; /* in parts */
	/* Records. */
	uint64_t at, end;
	uint64_t
		record_at; /* of the record that was handed out last, or of the compressed one that has it */
	struct ky_perf_unpack *unpack; /* NULL: nothing is compressed yet */
	struct ky_names build_ids;     /* of files, by path: struct ky_perf_build_id */
};

/* A record: its head, and all bytes with the head. */
struct ky_perf_head {
	uint32_t type;
	uint16_t misc, size;
	const uint8_t *bytes; /* in the file's byte order; valid until the next record */
};

/* Whether @path is such a file, by its content. */
bool ky_perf_is(const char *path);

/* Open @path (or @fd: ky_foreign_open()), which must outlive @perf, and read attributes and features. The caller must close it after failure too. */
int ky_perf_open(struct ky_perf_file *perf, const char *path, int fd, struct kymo_error *err);
void ky_perf_close(struct ky_perf_file *perf);

/*
 * The next record of the kernel (also those within compressed ones), or KY_PERF_FINISHED_ROUND. The file itself handles
 * the other records of perf. Returns 1, 0 at the end, KYMO_E_FORMAT with the offset, KYMO_E_LIMIT, ...
 */
int ky_perf_next(struct ky_perf_file *perf, struct ky_perf_head *head, struct kymo_error *err);

/* perf-kernel.c: what a feature with build IDs says, 0 or KYMO_E_MEMORY; what a record of kind MMAP says. */
int ky_perf_take_build_ids(struct ky_perf_file *perf, uint64_t at, uint64_t size);
void ky_perf_take_map(struct ky_perf_file *perf, const struct ky_perf_head *head);
/* Does the kernel of the file run here, at the same addresses? */
bool ky_perf_kernel_is_here(const struct ky_perf_file *perf);

/* The number of the attribute of the counter with @id, plus 1; 0: it is not in the cache. */
static inline uintptr_t ky_perf_known_id(const struct ky_perf_file *perf, uint64_t id)
{
	size_t at = id % KY_PERF_KNOWN_IDS;

	return perf->known[at].id == id ? perf->known[at].number : 0;
}

/* perf-kernel.c: the bytes of the build ID in a record of kind MMAP2, which begin at byte 44; 0: it has none. */
uint8_t ky_perf_map_build_id(const struct ky_perf_file *perf, const struct ky_perf_head *head);

/* Was the file recorded on this machine, since it was started? Its build ID may be missing: perf writes it only if a sample was in the kernel. */
bool ky_perf_boot_is_here(const struct ky_perf_file *perf);

/* The attribute of the counter with @id; without one (@id 0), the first. NULL: unknown. */
struct ky_perf_attr *ky_perf_attr(struct ky_perf_file *perf, uint64_t id);

/* Whether its samples have call chains. */
static inline bool ky_perf_has_chain(const struct ky_perf_attr *attr)
{
	return attr->sample_type & (1u << 5);
}

/* Its records only tell of processes and mappings. */
static inline bool ky_perf_is_dummy(const struct ky_perf_attr *attr)
{
	return attr->type == KY_PERF_TYPE_SOFTWARE && attr->config == KY_PERF_CONFIG_DUMMY;
}

/* Whether its samples have copies of registers and of the stack. */
static inline bool ky_perf_has_user_stack(const struct ky_perf_attr *attr)
{
	return (attr->sample_type & (3u << 12)) == 3u << 12;
}

/* perf-feature.c: parse the struct perf_event_attr at @bytes, of @size. False: it makes no sense. */
bool ky_perf_attr_parse(const struct ky_perf_file *perf, const uint8_t *bytes, size_t size,
			struct ky_perf_attr *attr);
/*
 * perf-feature.c: feature @number, @size bytes at @at of the file. Unknown ones are skipped. Of one that is cut, the descriptions of events
 * that are whole are kept.
 */
int ky_perf_feature(struct ky_perf_file *perf, unsigned int number, uint64_t at, uint64_t size,
		    struct kymo_error *err);

/* perf-unpack.c: the records of a compressed record. */
struct ky_perf_unpack;
/* Adds the @len bytes at @data, which are zstd. @at: for errors. */
int ky_perf_unpack_add(struct ky_perf_file *perf, const uint8_t *data, size_t len, uint64_t at,
		       struct kymo_error *err);
/* The next whole record of those. False: no whole record is left. KYMO_E_FORMAT in *ret: it makes no sense. */
bool ky_perf_unpack_next(struct ky_perf_file *perf, struct ky_perf_head *head, int *ret,
			 struct kymo_error *err);
/* The file or part has no more records. KYMO_E_FORMAT: but one was begun. */
int ky_perf_unpack_end(const struct ky_perf_file *perf, struct kymo_error *err);
void ky_perf_unpack_free(struct ky_perf_unpack *unpack);

#endif
