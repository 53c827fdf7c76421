/* SPDX-License-Identifier: MIT */
#include "analysis/tables/duration-class.h"

double ky_duration_class_ns(size_t index)
{
	static const double steps[] = {1, 1.6, 2.5, 4, 6.3};
	double ns = steps[index % 5];

	for (size_t i = 0; i < index / 5; i++)
		ns *= 10;
	return ns;
}

size_t ky_duration_class(uint64_t ns)
{
	size_t index = 0;

	while (index + 1 < KY_DURATION_CLASSES && (double)ns >= ky_duration_class_ns(index + 1))
		index++;
	return index;
}
