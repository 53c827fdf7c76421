/* SPDX-License-Identifier: MIT */
/*
 * Traces that are dropped on the page: copies in a directory of this user alone, which ends with the viewer.
 *
 * A drop begins, gets its files, and is opened; then it has a view as the traces of the command line have. The page names the files: paths
 * below the drop's own directory, which are checked. All drops together have a limit of bytes and of files.
 *
 * Threads: open and close in one thread, without any other call in progress; the others in any.
 */
#ifndef KY_VIEW_DROPS_H
#define KY_VIEW_DROPS_H

#include "view/session/notes.h"
#include "view/traces/view.h"

struct ky_view_drops;

struct ky_view_drop_source {
	/* Open what is at @paths. Any number of calls at the same time. */
	int (*open)(void *data, const char *const *paths, size_t n_paths, struct ky_trace_set *set,
		    struct kymo_error *err);
	void *data;
	uint64_t space_bytes; /* 0: nothing can be dropped */
};

/* The directory comes with the first drop. 0 or KYMO_E_MEMORY. */
int ky_view_drops_open(const struct ky_view_drop_source *source, struct ky_view_drops **drops,
		       struct kymo_error *err);
/* Removes all copies from the disk; views that are in use keep what they have open. */
void ky_view_drops_forget(struct ky_view_drops *drops);
/* The same, and ends them. No view may be in use. NULL is allowed. */
void ky_view_drops_close(struct ky_view_drops *drops);

/*
 * A new drop: its number, never used before, and how many bytes it can have. KYMO_E_UNSUPPORTED: the viewer takes none; KYMO_E_LIMIT: so many are open;
 * KYMO_E_IO.
 */
int ky_view_drops_begin(struct ky_view_drops *drops, uint64_t *number, uint64_t *space_bytes,
			struct kymo_error *err);
/*
 * A new file of drop @number: a descriptor, which the caller closes, or a negative status. @path: "a/b". KYMO_E_INVALID: no such path is
 * possible, or it exists; KYMO_E_NOT_FOUND: no such drop is being filled; KYMO_E_LIMIT; KYMO_E_IO.
 */
int ky_view_drops_file(struct ky_view_drops *drops, uint64_t number, const char *path,
		       struct kymo_error *err);
/* The next bytes of such a file. 0, KYMO_E_NOT_FOUND, KYMO_E_LIMIT, KYMO_E_IO. */
int ky_view_drops_write(struct ky_view_drops *drops, uint64_t number, int fd, const void *data,
			size_t len, struct kymo_error *err);
/* All files are there: open them. After an error, which is that of opening, the drop has been removed. */
int ky_view_drops_finish(struct ky_view_drops *drops, uint64_t number, struct kymo_error *err);
/* Give up a drop that is being filled. KYMO_E_NOT_FOUND: no such drop exists. */
int ky_view_drops_remove(struct ky_view_drops *drops, uint64_t number, struct kymo_error *err);

/* The view of a drop that has been opened, until the close; *@notes: its notes. NULL: no such drop exists. */
struct ky_view *ky_view_drops_view(struct ky_view_drops *drops, uint64_t number,
				   struct ky_view_notes **notes);

#endif
