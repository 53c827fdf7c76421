/* SPDX-License-Identifier: MIT */
/* Classes of durations for maps of latency: five for each power of ten, from 1 ns on. */
#ifndef KY_ANALYSIS_TABLES_DURATION_CLASS_H
#define KY_ANALYSIS_TABLES_DURATION_CLASS_H

#include <stddef.h>
#include <stdint.h>

#define KY_DURATION_CLASSES 64

/* The lower end of a class: 1, 1.6, 2.5, 4, 6.3, 10 ...; class KY_DURATION_CLASSES is the end of the last one. */
double ky_duration_class_ns(size_t index);
/* The class of @ns. */
size_t ky_duration_class(uint64_t ns);

#endif
