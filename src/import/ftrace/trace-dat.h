/* SPDX-License-Identifier: MIT */
/*
 * The container trace.dat of trace-cmd, versions 6 and 7: descriptions of events, options, and for each buffer the pages of
 * each CPU's ring, which version 7 may compress in chunks. Nothing in it is trusted.
 *
 * Threads: one at a time per file.
 */
#ifndef KY_IMPORT_TRACE_DAT_H
#define KY_IMPORT_TRACE_DAT_H

#include "base/vec.h"
#include "import/ftrace/dat-shift.h"
#include "import/ftrace/tracing-data.h"
#include "import/common/unpack.h"

struct ky_dat_cpu {
	uint32_t number;
	uint64_t at, size_bytes; /* in the file */
};

struct ky_dat_buffer {
	const char *name;  /* of the instance; "": the top one */
	const char *clock; /* "local", "mono", "x86-tsc"; "": unknown */
	uint32_t page_bytes;
	bool is_compressed;
	KY_VEC(struct ky_dat_cpu) cpus;
};

struct ky_dat {
	struct ky_foreign_file file;
	struct ky_tracing_data tracing;
	unsigned int version; /* 6, 7 */
	enum ky_unpack_kind packing;
	KY_VEC(struct ky_dat_buffer) buffers;
	const char *uname; /* "Linux host 6.1.0 ... x86_64"; NULL: unknown */
	uint32_t n_cpus;
	uint64_t n_places, places_bytes; /* of the CPUs' pages, of all buffers */
	uint64_t section_bytes;		 /* of all sections, unpacked */
	int64_t offset_ns;		 /* to add to times */
	struct ky_dat_shift shift;	 /* of a guest: to the clock of its host */
	uint32_t tsc_mult,
		tsc_shift; /* times are TSC: ns = value * mult >> shift; mult 0: they are ns */
	bool has_text;	   /* a buffer of ftrace's latency tracers, as text, which is left out */
};

/* Whether @path is such a file, by its content. */
bool ky_dat_is(const char *path);
/* Open @path (or @fd: ky_foreign_open()), which must outlive @dat. The caller must close it after failure too. */
int ky_dat_open(struct ky_dat *dat, const char *path, int fd, struct kymo_error *err);
void ky_dat_close(struct ky_dat *dat);

/*
 * Calls @page for each page of @cpu, in order: @bytes of them, valid during the call. @page returns 0, or what ends it. A cut
 * page at the end is KYMO_E_FORMAT.
 */
int ky_dat_pages(struct ky_dat *dat, const struct ky_dat_buffer *buffer,
		 const struct ky_dat_cpu *cpu,
		 int (*page)(void *data, const uint8_t *bytes, uint32_t len,
			     struct kymo_error *err),
		 void *data, struct kymo_error *err);

#endif
