/* SPDX-License-Identifier: MIT */
/*
 * Reading of Kymo's debug information, FILE.kdi (docs/debug-info.md). A file is mapped; a look touches a few pages.
 *
 * Files are untrusted. A damaged file gives wrong names or none.
 * Threads: any.
 */
#ifndef KY_SYMBOLS_KDI_H
#define KY_SYMBOLS_KDI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "symbols/kdi/kdi-format.h"
#include "symbols/kdi/kdi-info.h"

#define KY_KDI_NAME_BYTES 512
#define KY_KDI_PLACE \
	"/usr/lib/debug/kymo" /* where BUILD-ID.kdi files are, beside what the user names */

struct ky_kdi;

struct ky_kdi_found {
	uint32_t number; /* of the function, by address */
	uint64_t address, bytes;
	char name[KY_KDI_NAME_BYTES]; /* longer ones are cut */
};

struct ky_kdi_frame {
	const char *name; /* NULL: the function itself */
	const char *file; /* NULL: not known */
	uint32_t line;
};

/* A type; members follow with ky_kdi_next_member(). */
struct ky_kdi_view {
	const struct ky_kdi *kdi;
	struct ky_kdi_cursor cursor;
	uint8_t kind, encoding;
	const char *name;
	uint32_t target;
	uint64_t bytes;
	uint32_t n_members, i;
	int64_t at;
	uint32_t next_type, next_text; /* numbers of what is used once */
};

/* BUILD-ID.kdi for the file with this build ID, in one of @dirs, else, if @is_standard, in KY_KDI_PLACE. NULL: no such file. */
struct ky_kdi *ky_kdi_open_id(const uint8_t *id, size_t id_bytes, const char *const *dirs,
			      size_t n_dirs, bool is_standard);
/* Maps @path. 0, KYMO_E_IO, KYMO_E_FORMAT, KYMO_E_MEMORY. */
int ky_kdi_open(const char *path, struct ky_kdi **kdi, struct kymo_error *err);
/* The same of bytes in memory, which are borrowed. */
int ky_kdi_open_bytes(const void *data, size_t bytes, struct ky_kdi **kdi, struct kymo_error *err);
void ky_kdi_close(struct ky_kdi *kdi);

/* The whole file. */
const void *ky_kdi_bytes(const struct ky_kdi *kdi);
size_t ky_kdi_size(const struct ky_kdi *kdi);
const uint8_t *ky_kdi_build_id(const struct ky_kdi *kdi, size_t *bytes);
/* Do addresses count from the kernel's _text, or a module's begin? */
bool ky_kdi_is_kernel(const struct ky_kdi *kdi);
uint32_t ky_kdi_functions(const struct ky_kdi *kdi);
uint32_t ky_kdi_types(const struct ky_kdi *kdi);
/* The first page of the mapped file; and of a part of it, from its offset in the file. */
uint64_t ky_kdi_first_page(const struct ky_kdi *kdi);
bool ky_kdi_address(const struct ky_kdi *kdi, uint64_t offset, uint64_t *address);

/* The function at an address; number @number; and those with a name, of which @skip are left out. */
bool ky_kdi_find(const struct ky_kdi *kdi, uint64_t address, struct ky_kdi_found *found);
bool ky_kdi_function(const struct ky_kdi *kdi, uint32_t number, struct ky_kdi_found *found);
bool ky_kdi_find_name(const struct ky_kdi *kdi, const char *name, uint32_t skip,
		      struct ky_kdi_found *found);
/* The frames of @address in @found, the innermost first; 0 without lines. Texts are the file's. */
size_t ky_kdi_frames(const struct ky_kdi *kdi, const struct ky_kdi_found *found, uint64_t address,
		     struct ky_kdi_frame *frames, size_t max);

/* The signature of a function; 0: not known. */
uint32_t ky_kdi_signature(const struct ky_kdi *kdi, uint32_t function);
/* Type @number; false: there is no such one. */
bool ky_kdi_type(const struct ky_kdi *kdi, uint32_t number, struct ky_kdi_view *view);
bool ky_kdi_next_member(struct ky_kdi_view *view, struct ky_kdi_member *member);
/* The type of that name: a struct, union, enumeration or typedef; the former three win. 0: none. */
uint32_t ky_kdi_find_type(const struct ky_kdi *kdi, const char *name);
/* Appends "const struct file *", and "int (struct file *file, char *buf)" of a signature. */
void ky_kdi_put_type(const struct ky_kdi *kdi, uint32_t number, struct ky_strbuf *out);

#endif
