/* SPDX-License-Identifier: MIT */
/* Do two trace models give numbers the same labels, and select by the same numbers? In time n log n. */
#ifndef KY_CTF_METADATA_SAME_LABELS_H
#define KY_CTF_METADATA_SAME_LABELS_H

#include "ctf/model/model.h"

/*
 * Does each label of @a stand in @b for the same numbers? Labels that are no UTF-8 may have been repaired. @b may
 * have more. Both are numbers; flags are no labels. False also without memory.
 */
bool ky_same_labels(const struct ky_field_class *a, const struct ky_field_class *b);

/* Are these the same ranges, in any order? False also without memory. */
bool ky_same_ranges(const struct ky_range *a, size_t n_a, const struct ky_range *b, size_t n_b);

#endif
