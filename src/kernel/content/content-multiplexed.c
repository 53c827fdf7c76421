/* SPDX-License-Identifier: MIT */
/*
 * socketcall: a call of 32-bit programs that stands for others, whose arguments are in memory. Where such another one is
 * recorded, a program takes them from there and goes on with it: so it has its name, arguments and content.
 */
#include "kernel/content/content-internal.h"

#if defined(__x86_64__)

/* By the first argument. The kernel, too, takes accept, send and recv as accept4, sendto and recvfrom with zeros behind. */
static const struct {
	uint16_t number;
	uint8_t n_args;
} calls[KY_CONTENT_MULTIPLEXED] = {
	[1] = {359, 3},	 /* socket */
	[2] = {361, 3},	 /* bind */
	[3] = {362, 3},	 /* connect */
	[4] = {363, 2},	 /* listen */
	[5] = {364, 3},	 /* accept */
	[6] = {367, 3},	 /* getsockname */
	[7] = {368, 3},	 /* getpeername */
	[8] = {360, 4},	 /* socketpair */
	[9] = {369, 4},	 /* send */
	[10] = {371, 4}, /* recv */
	[11] = {369, 6}, /* sendto */
	[12] = {371, 6}, /* recvfrom */
	[13] = {373, 2}, /* shutdown */
	[14] = {366, 5}, /* setsockopt */
	[15] = {365, 5}, /* getsockopt */
	[16] = {370, 3}, /* sendmsg */
	[17] = {372, 3}, /* recvmsg */
	[18] = {364, 4}, /* accept4 */
	[19] = {337, 5}, /* recvmmsg */
	[20] = {345, 4}, /* sendmmsg */
};

uint32_t ky_content_multiplexed(uint32_t i, struct ky_content_descriptor *to)
{
	to->stands_for = calls[i].number;
	to->block_bytes = (uint8_t)(4 * calls[i].n_args);
	return calls[i].number;
}

#else

uint32_t ky_content_multiplexed(uint32_t i, struct ky_content_descriptor *to)
{
	(void)i;
	(void)to;
	return 0;
}

#endif
