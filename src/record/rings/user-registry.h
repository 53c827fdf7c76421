/* SPDX-License-Identifier: MIT */
/*
 * The registry of events in a ring that all programs of a user share (abi/control.h, KY_BLOB_SHARED).
 * Its content is untrusted.
 */
#ifndef KY_RECORD_RINGS_USER_REGISTRY_H
#define KY_RECORD_RINGS_USER_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "abi/control.h"

/*
 * Copies the blob at @shared, in a mapping of @room bytes that programs may change meanwhile, into
 * the form of a blob of one program: the record of the context fields, then the complete records,
 * with their ids. The function checks lengths; the caller must check the records.
 *
 * @copy: aligned to 8 bytes; the caller frees it with free(). Returns 0, KYMO_E_FORMAT (no context
 * fields yet, or a malformed length), KYMO_E_MEMORY.
 */
int ky_user_registry_copy(const struct ky_blob *shared, uint64_t room, uint64_t **copy,
			  size_t *bytes, struct kymo_error *err);

#endif
