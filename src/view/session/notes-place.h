/* SPDX-License-Identifier: MIT */
/* Where notes are kept (notes.h). Threads: any. */
#ifndef KY_VIEW_NOTES_PLACE_H
#define KY_VIEW_NOTES_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

struct ky_notes_place {
	char *directory; /* NULL: there is no such place; the caller frees it */
	char name[NAME_MAX + 1];
	bool can_write;
};

/* The place beside the trace, and the user's own. */
void ky_notes_places(const char *const *paths, size_t n_paths, struct ky_notes_place places[2]);
/* Open the directory of @place; @make: it is made if it does not exist. A descriptor or a negative status. */
int ky_notes_directory(const struct ky_notes_place *place, bool make, struct kymo_error *err);

#endif
