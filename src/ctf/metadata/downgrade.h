/* SPDX-License-Identifier: MIT */
/*
 * Describing a CTF 2 trace in CTF 1.8, as far as that goes: the bytes stay what they are where it
 * has a word for them, and the values where it has none.
 */
#ifndef KY_CTF_METADATA_DOWNGRADE_H
#define KY_CTF_METADATA_DOWNGRADE_H

#include "base/strbuf.h"
#include "ctf/model/model.h"

/* What is otherwise than it was, each in a row; to be shown. All zeros at the begin. */
struct ky_downgrade_notes {
	struct ky_strbuf renamed; /* "'event.fields.a-b' is called 'a_b'" */
	struct ky_strbuf added;	  /* "'event.fields.data_length'": a copy of the length */
	struct ky_strbuf unused;  /* "event 'e'": no header can tell its id */
};

void ky_downgrade_notes_fini(struct ky_downgrade_notes *notes);

/*
 * Write a finished model of CTF 2 as TSDL; docs/convert.md has the table of what becomes what.
 * What has a role gets the name that says so in CTF 1.8; other names are displayed as before
 * (behind a '_' that is not shown) where they can be; options of a variant whose selector is a
 * plain integer give it labels.
 *
 * *text is malloc()ed, NUL-terminated, the caller's.
 * When CTF 1.8 cannot refer to a length or selector, or several variants use it, a copy of it
 * precedes the field that needs it.
 * KYMO_E_UNSUPPORTED names what CTF 1.8 has no word for.
 */
int ky_downgrade_to_ctf1(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
			 struct ky_downgrade_notes *notes, struct kymo_error *err);

/*
 * Do two trace models describe the same bytes, and find the same values in them? Names may differ, and
 * @b may call a number, bytes or an optional field of @a what CTF 1.8 has instead.
 * *anew: the values can be the same, but must be written anew in the words of @b (transcode.h); only
 * from CTF 2 to 1.8.
 * 0, or KYMO_E_UNSUPPORTED and what differs, or KYMO_E_MEMORY.
 */
int ky_same_layout(const struct ky_trace_class *a, const struct ky_trace_class *b, bool *anew,
		   struct kymo_error *err);

#endif
