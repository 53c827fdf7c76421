/* SPDX-License-Identifier: MIT */
/* What every unit test includes first: cmocka wants these headers before its own. */
#ifndef KY_TEST_UNIT_H
#define KY_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
