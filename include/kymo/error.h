/* SPDX-License-Identifier: MIT */
/*
 * Status codes and the error record that every fallible call of Kymo fills.
 *
 * A call returns 0 (or a count) on success and a negative enum kymo_status on
 * failure. Calls that parse or do I/O take a struct kymo_error as their last
 * argument; it may be NULL. The record holds no allocated memory: it can live
 * on the stack, be copied, and be dropped.
 */
#ifndef KYMO_ERROR_H
#define KYMO_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KYMO_API __attribute__((visibility("default")))

/* X(name, value, text) */
#define KYMO_STATUS_LIST(X)                      \
	X(OK, 0, "success")                      \
	X(E_AGAIN, -1, "no data yet")            \
	X(E_MEMORY, -2, "out of memory")         \
	X(E_IO, -3, "input/output error")        \
	X(E_FORMAT, -4, "malformed data")        \
	X(E_INVALID, -5, "invalid argument")     \
	X(E_NOT_FOUND, -6, "not found")          \
	X(E_UNSUPPORTED, -7, "not supported")    \
	X(E_PERMISSION, -8, "permission denied") \
	X(E_LIMIT, -9, "limit exceeded")         \
	X(E_STATE, -10, "wrong state")           \
	X(E_INTERRUPTED, -11, "interrupted")

enum kymo_status {
#define KYMO_STATUS_ENUM(name, value, text) KYMO_##name = value,
	KYMO_STATUS_LIST(KYMO_STATUS_ENUM)
#undef KYMO_STATUS_ENUM
};

#define KYMO_NO_OFFSET UINT64_MAX

/*
 * An error: what failed, and where.
 *
 * @code: the status that the call returned.
 * @line, @column: the place in a text, counted from 1; 0 when the error is not in a text.
 * @offset: the place in a binary file, in bytes from its start; KYMO_NO_OFFSET when unknown.
 * @packet, @event: the place of damage in a data stream: the packet of the stream, and the event of
 *	that packet, both counted from 0; KYMO_NO_OFFSET when unknown, or when the damage is not in
 *	an event.
 * @path: the file concerned; "" when no file is concerned.
 * @message: one line, without a final full stop and without the path.
 * @hint: a remedy that the user can try; "" when Kymo knows none.
 */
struct kymo_error {
	int code;
	uint32_t line;
	uint32_t column;
	uint64_t offset;
	uint64_t packet, event;
	char path[1024];
	char message[512];
	char hint[512];
};

/*
 * The text of a status, for example "out of memory".
 *
 * Returns static text, never NULL. Threads: any.
 */
KYMO_API const char *kymo_status_text(int status);

#ifdef __cplusplus
}
#endif

#endif
