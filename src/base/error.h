/* SPDX-License-Identifier: MIT */
/* Filling a struct kymo_error; every function accepts err == NULL. */
#ifndef KY_BASE_ERROR_H
#define KY_BASE_ERROR_H

#include <kymo/error.h>

/* Reset @err to KYMO_OK with no place and no text. */
void ky_error_clear(struct kymo_error *err);

/*
 * Set status @code and a message; reset path, place and hint.
 *
 * Returns @code, so that a caller can write: return ky_error_set(err, KYMO_E_IO, ...);
 */
int ky_error_set(struct kymo_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Like ky_error_set(), but the function adds ": strerror(errnum)" and chooses the code from @errnum
 * (ENOENT -> E_NOT_FOUND, EACCES/EPERM -> E_PERMISSION, ENOMEM -> E_MEMORY, EINTR -> E_INTERRUPTED,
 * EAGAIN -> E_AGAIN, else E_IO). EMFILE and ENFILE also get a hint.
 */
int ky_error_errno(struct kymo_error *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Add a path, a place or a hint to an error that is already set. */
void ky_error_path(struct kymo_error *err, const char *path);
/*
 * The error is in an input that is not a file. @input, for example "filter", takes the place of the
 * path, as "<filter>". A program that knows where its user wrote the input shows that place
 * instead: kymo shows --filter.
 */
void ky_error_input(struct kymo_error *err, const char *input);
void ky_error_offset(struct kymo_error *err, uint64_t offset_bytes);
void ky_error_line(struct kymo_error *err, uint32_t line, uint32_t column);
void ky_error_hint(struct kymo_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Sets the usual error for memory that is out. Returns KYMO_E_MEMORY. */
int ky_error_nomem(struct kymo_error *err);

#endif
