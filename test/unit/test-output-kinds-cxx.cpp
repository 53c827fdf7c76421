/* SPDX-License-Identifier: MIT */
/* The same program in C++. */
#include "test-output-kinds.c"
