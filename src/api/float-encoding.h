/* SPDX-License-Identifier: MIT */
#ifndef KY_API_FLOAT_ENCODING_H
#define KY_API_FLOAT_ENCODING_H

#include <stdint.h>

/*
 * @value as a floating point number of @bits (16, 32, 64, 128; IEEE 754), rounded to the nearest one,
 * ties to even. words[0] has the least significant 64 bits, the other one the rest.
 */
void ky_float_encode(double value, unsigned int bits, uint64_t words[2]);

#endif
