/* SPDX-License-Identifier: MIT */
/* What every unit test includes first: cmocka wants these headers before its own. */
#ifndef KY_TEST_UNIT_H
#define KY_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* It declares some functions outside of its own extern "C". */
#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#endif
