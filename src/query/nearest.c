/* SPDX-License-Identifier: MIT */
#include "query/nearest.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

void ky_nearest_offer(struct ky_nearest *nearest, const char *name)
{
	size_t distance = ky_edit_distance(nearest->name, name);

	for (int i = 0; i < 3; i++) {
		if (nearest->best[i] && strcmp(nearest->best[i], name) == 0)
			return;
		if (nearest->best[i] && nearest->distance[i] <= distance)
			continue;
		memmove(&nearest->best[i + 1], &nearest->best[i],
			(size_t)(2 - i) * sizeof(nearest->best[0]));
		memmove(&nearest->distance[i + 1], &nearest->distance[i],
			(size_t)(2 - i) * sizeof(nearest->distance[0]));
		nearest->best[i] = name;
		nearest->distance[i] = distance;
		return;
	}
}

void ky_nearest_hint(const struct ky_nearest *nearest, struct kymo_error *err)
{
	const char *const *best = nearest->best;

	if (best[0])
		ky_error_hint(err, "the nearest names are: %s%s%s%s%s", best[0],
			      best[1] ? ", " : "", best[1] ? best[1] : "", best[2] ? ", " : "",
			      best[2] ? best[2] : "");
}
