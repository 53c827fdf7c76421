/* SPDX-License-Identifier: MIT */
/*
 * Addresses to functions, files and lines.
 *
 * The caller tells what each process has mapped, and when; resolve() then gives the frames of an address: one per
 * function, inlined functions first. The kernel needs no mappings.
 *
 *	ky_symbols_open(&options, &symbols, err);
 *	object = ky_symbols_object(symbols, "/usr/lib/libc.so.6", build_id, 20, pid);
 *	ky_symbols_map(symbols, pid, &(struct ky_symbols_mapping){.begin = 0x7f..., .object = object, ...});
 *	n = ky_symbols_resolve(symbols, &(struct ky_symbols_query){.pid = pid, .address = ...}, &frames);
 *
 * Sources, in this order: directories of the caller (Kymo's debug information, separate debug files by build ID); the
 * file itself, if its build ID is that of the mapping; separate debug files of the machine. elfutils finds debug links, alternate
 * debug files and MiniDebugInfo, and asks debuginfod servers if the user has set DEBUGINFOD_URLS.
 *
 * Everything is loaded when the first address needs it. Memory: tables of symbols have limits; lines of at most
 * KY_SYMBOLS_OPEN_FILES files are held; the cache of frames is dropped when it is full.
 * Files and names are untrusted: a damaged file has no symbols. Names are foreign text.
 * Threads: one at a time per object.
 */
#ifndef KY_SYMBOLS_SYMBOLS_H
#define KY_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#define KY_SYMBOLS_OPEN_FILES 32
#define KY_SYMBOLS_FRAMES_MAX 64
#define KY_SYMBOLS_NO_OBJECT  UINT32_MAX

struct ky_symbols;

struct ky_symbols_options {
	/* Directories with BUILD-ID.kdi files, and with debug files as /usr/lib/debug has them. Borrowed until close. */
	const char *const *dirs;
	size_t n_dirs;
	/* The addresses are of this machine since it booted: /proc tells of the kernel and of running processes. */
	bool is_here;
	/* A file in the format of /proc/kallsyms; NULL: /proc/kallsyms, if is_here. Borrowed until close. */
	const char *kallsyms;
	/* Files that paths name are not opened: only what is found by build ID in @dirs. */
	bool only_dirs;
	/* Lines and inlined functions, from DWARF; costs memory and time for each file. */
	bool want_lines;
	/* For ky_symbols_store(): files stay open. */
	bool want_store;
};

/* A function, at one place. Texts are valid until the next call with the same object. */
struct ky_symbols_frame {
	const char *function; /* in the language's form; NULL: not known */
	uint64_t
		offset; /* from the function's begin; an inlined function's is that of its caller */
	const char *object; /* the file's path, a module's name, "[kernel]", "[vdso]", "[jit]" */
	uint64_t object_offset; /* the address as the file has it; 0 for the kernel */
	const char *file;	/* of the source; NULL: not known */
	uint32_t line;		/* 0: not known */
	bool is_inlined;	/* into the function of the next frame */
	uint32_t number;	/* of the object; KY_SYMBOLS_NO_OBJECT for the kernel and [jit] */
};

struct ky_symbols_mapping {
	uint64_t begin, end; /* addresses in the process */
	/* The offset of @begin in the file; or, with is_image, in memory from the file's first loaded page. */
	uint64_t offset;
	uint32_t object; /* of ky_symbols_object() */
	bool is_image;
	uint64_t time_ns; /* since when; 0: since ever */
	/* At time_ns it was already there: since ever, where nothing else was before. */
	bool is_old;
};

struct ky_symbols_query {
	int64_t pid; /* < 0: the kernel */
	uint64_t address;
	uint64_t time_ns; /* UINT64_MAX: now */
	/* A return address: of the call before it. */
	bool is_return;
};

/* 0 or KYMO_E_MEMORY. Reads nothing yet. */
int ky_symbols_open(const struct ky_symbols_options *options, struct ky_symbols **symbols,
		    struct kymo_error *err);
void ky_symbols_close(struct ky_symbols *symbols);

/*
 * The number of a file. Files with the same build ID, or without one with the same path, are one. @path is as process @pid sees it
 * (-1: as this process does). KY_SYMBOLS_NO_OBJECT: memory is out, or there are too many.
 */
uint32_t ky_symbols_object(struct ky_symbols *symbols, const char *path, const uint8_t *build_id,
			   size_t build_id_bytes, int64_t pid);

/* The build ID of @object; 0 bytes: it has none, or there is no such object. Valid until close. */
size_t ky_symbols_build_id(const struct ky_symbols *symbols, uint32_t object,
			   const uint8_t **build_id);

/* A later mapping replaces what it covers. 0, KYMO_E_LIMIT, KYMO_E_INVALID (no such object, empty) or KYMO_E_MEMORY. */
int ky_symbols_map(struct ky_symbols *symbols, int64_t pid,
		   const struct ky_symbols_mapping *mapping);
/* What lies there is gone since @time_ns. */
void ky_symbols_unmap(struct ky_symbols *symbols, int64_t pid, uint64_t begin, uint64_t end,
		      uint64_t time_ns);
/* @child has the mappings of @parent. 0 or KYMO_E_MEMORY. */
int ky_symbols_fork(struct ky_symbols *symbols, int64_t parent, int64_t child, uint64_t time_ns);
/* All mappings are gone: the process executes another program, or has ended. */
void ky_symbols_exec(struct ky_symbols *symbols, int64_t pid, uint64_t time_ns);
/* Maps what /proc/PID/maps shows now. 0, KYMO_E_NOT_FOUND or KYMO_E_MEMORY. Also done by resolve() where nothing was mapped, if is_here. */
int ky_symbols_map_running(struct ky_symbols *symbols, int64_t pid, uint64_t time_ns);
/* The user whose /tmp/perf-PID.map is believed, of a process that has ended; a running process tells itself. 0 or KYMO_E_MEMORY. */
int ky_symbols_set_user(struct ky_symbols *symbols, int64_t pid, uint32_t uid);

/*
 * A function of process @pid has this name, as the trace says. It counts where the mapped file is missing or has no symbol, and at @begin
 * if the file's symbol begins elsewhere. Copies @name. 0, KYMO_E_LIMIT or KYMO_E_MEMORY.
 */
int ky_symbols_name(struct ky_symbols *symbols, int64_t pid, uint64_t begin, uint64_t bytes,
		    const char *name);

/*
 * The frames of an address, the innermost first. 0: it lies nowhere. A file without symbols gives one frame without a
 * function. *frames is valid until the next call.
 */
size_t ky_symbols_resolve(struct ky_symbols *symbols, const struct ky_symbols_query *query,
			  const struct ky_symbols_frame **frames);

/* The same of an address as file @object has it: without a process and its mappings. */
size_t ky_symbols_resolve_in(struct ky_symbols *symbols, uint32_t object, uint64_t address,
			     const struct ky_symbols_frame **frames);

/* A place in a file that a process had mapped: as struct ky_symbols_mapping tells it. */
struct ky_symbols_place {
	uint64_t offset;
	uint32_t object;
	bool is_image;
};

/* Where an address of a process lies; the file is not opened. False: in no file. */
bool ky_symbols_place(struct ky_symbols *symbols, const struct ky_symbols_query *query,
		      struct ky_symbols_place *place);

/*
 * Writes what the @n @places in @object need to BUILD-ID.kdi in directory @dir: their functions, with lines and inlined functions.
 * Reads of the file only what these need; no other addresses of @object may be asked for later. *known: how many places have a function.
 * Returns 1; 0: the object has no build ID, or no symbols; KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_symbols_store(struct ky_symbols *symbols, uint32_t object,
		     const struct ky_symbols_place *places, size_t n, int dir, size_t *known,
		     struct kymo_error *err);

/* Why the kernel's functions are not known, for a message: "kernel.kptr_restrict hides ..."; NULL: they are, or nobody asked. */
const char *ky_symbols_kernel_problem(const struct ky_symbols *symbols);

#endif
