/* SPDX-License-Identifier: MIT */
/*
 * socketcall: a call of 32-bit programs that stands for others, whose arguments are in memory. Where such another one is
 * recorded, a program takes them from there and goes on with it: so it has its name, arguments and content.
 */
#include "kernel/content/content-writer.h"

#if defined(__x86_64__)

#define SOCKETCALL 102

/* Of x86's struct pt_regs. */
#define EBX_AT 40
#define ECX_AT 88

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

/* S_@slot = the register at @at. */
static void read_register(struct ky_content_writer *w, int32_t at, int16_t slot)
{
	ky_bpf_store_imm(&w->a, BPF_DW, FP, slot, 0);
	ky_bpf_load(&w->a, BPF_DW, R3, FP, S_REGS);
	ky_bpf_alu_imm(&w->a, BPF_ADD, R3, at);
	read_to_stack(w, slot, 4, BPF_FUNC_probe_read_kernel);
}

void ky_content_write_unpack(struct ky_content_writer *w)
{
	struct ky_bpf_asm *a = &w->a;
	int back = ky_bpf_label(a), done = ky_bpf_label(a);

	ky_bpf_store_imm(a, BPF_DW, FP, S_UNPACKED, 0);
	for (int16_t i = 0; i < 4; i++)
		ky_bpf_store_imm(a, BPF_DW, FP, (int16_t)(S_BLOCK + 8 * i), 0);
	ky_bpf_load(a, BPF_W, R1, FP, S_KEY);
	ky_bpf_jump(a, BPF_JNE, R1, KY_CONTENT_MAX_CALLS + SOCKETCALL, done);
	read_register(w, EBX_AT, S_LEN);
	ky_bpf_load(a, BPF_DW, R1, FP, S_LEN);
	ky_bpf_jump(a, BPF_JGE, R1, KY_CONTENT_MULTIPLEXED, done);
	ky_bpf_alu_imm(a, BPF_ADD, R1, KY_CONTENT_MULTIPLEXED_AT);
	ky_bpf_store(a, BPF_W, FP, S_KEY, R1);
	lookup(w, w->p->calls_map);
	ky_bpf_move(a, R9, R0);
	/* Is that one recorded? */
	ky_bpf_load(a, BPF_B, R1, R9, offsetof(struct ky_content_descriptor, whole));
	ky_bpf_alu_imm(a, BPF_AND, R1, w->is_exit ? KY_CONTENT_WHOLE_EXIT : KY_CONTENT_WHOLE_ENTRY);
	ky_bpf_jump(a, BPF_JEQ, R1, 0, back);
	read_register(w, ECX_AT, S_POINTER);
	ky_bpf_move(a, R1, FP);
	ky_bpf_alu_imm(a, BPF_ADD, R1, S_BLOCK);
	ky_bpf_load(a, BPF_B, R2, R9, offsetof(struct ky_content_descriptor, block_bytes));
	ky_bpf_alu_imm(a, BPF_AND, R2, 31);
	ky_bpf_load(a, BPF_DW, R3, FP, S_POINTER);
	ky_bpf_call(a, BPF_FUNC_probe_read_user);
	ky_bpf_jump(a, BPF_JNE, R0, 0, back);
	ky_bpf_load(a, BPF_H, R1, R9, offsetof(struct ky_content_descriptor, stands_for));
	ky_bpf_store(a, BPF_DW, FP, S_NUMBER, R1);
	ky_bpf_store_imm(a, BPF_DW, FP, S_UNPACKED, 1);
	ky_bpf_go(a, done);
	ky_bpf_place(a, back);
	ky_bpf_store_imm(a, BPF_W, FP, S_KEY, KY_CONTENT_MAX_CALLS + SOCKETCALL);
	ky_bpf_place(a, done);
}

#else

uint32_t ky_content_multiplexed(uint32_t i, struct ky_content_descriptor *to)
{
	(void)i;
	(void)to;
	return 0;
}

void ky_content_write_unpack(struct ky_content_writer *w)
{
	ky_bpf_store_imm(&w->a, BPF_DW, FP, S_UNPACKED, 0);
}

#endif
