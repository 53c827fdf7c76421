/* SPDX-License-Identifier: MIT */
/*
 * Hooks at the begins and ends of functions. They preserve what a call has: all registers of arguments, %al with the number of
 * vector registers, %r10 and %r11; and what a return has: %rax, %rdx, the first two vector registers. C code preserves the others.
 *
 * Vector registers: C code may clear the upper halves (vzeroupper). Saving them makes them "in use", which makes later SSE code
 * slow; so they are saved only while they are in use, as xgetbv tells.
 */
	.text

/* Saves %zmm0 and so on, as far as in use, at %rsp, which is a multiple of 64. The mask stays at -16(%rbp). Clobbers %rax, %rcx, %rdx. */
	.macro SAVE_VECTORS count
	movl	ky_mcount_vectors(%rip), %eax
	cmpl	$1, %eax
	jne	1f
	movl	$1, %ecx
	xgetbv
1:	movl	%eax, -16(%rbp)
	/* KY_MCOUNT_SSE is 0. In the mask: 2 is SSE, 4 the upper halves of AVX, 0x40 those of AVX-512. KY_MCOUNT_AVX becomes 4. */
	cmpl	$2, ky_mcount_vectors(%rip)
	jne	2f
	movl	$4, %eax
	movl	%eax, -16(%rbp)
2:	testl	$0x40, %eax
	jnz	5f
	testl	$4, %eax
	jnz	4f
	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\i < \count
	movaps	%xmm\i, 64*\i(%rsp)
	.endif
	.endr
	jmp	6f
4:	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\i < \count
	vmovaps	%ymm\i, 64*\i(%rsp)
	.endif
	.endr
	jmp	6f
5:	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\i < \count
	vmovaps	%zmm\i, 64*\i(%rsp)
	.endif
	.endr
6:
	.endm

	.macro RESTORE_VECTORS count
	movl	-16(%rbp), %ecx
	testl	$0x40, %ecx
	jnz	5f
	testl	$4, %ecx
	jnz	4f
	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\i < \count
	movaps	64*\i(%rsp), %xmm\i
	.endif
	.endr
	jmp	6f
4:	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\i < \count
	vmovaps	64*\i(%rsp), %ymm\i
	.endif
	.endr
	jmp	6f
5:	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\i < \count
	vmovaps	64*\i(%rsp), %zmm\i
	.endif
	.endr
6:
	.endm

/*
 * The frame: %rbp, 8 bytes, the mask, 9 registers, then vectors. At the begin, 0(%rsp) is the address in the function.
 * @place: an instruction that puts the place of the function's return address into %rdi.
 */
	.macro ENTRY_HOOK place:vararg
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	/* %rdi is saved before it is used. */
	pushq	%rdi
	\place
	movq	%rsp, %rbp
	addq	$8, %rbp
	.cfi_def_cfa %rbp, 16
	subq	$8, %rsp
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	subq	$512, %rsp
	andq	$-64, %rsp
	SAVE_VECTORS 8
	movq	8(%rbp), %rsi
	cld
	call	ky_mcount_enter
	RESTORE_VECTORS 8
	movq	-8(%rbp), %rdi
	movq	-24(%rbp), %rax
	movq	-32(%rbp), %rcx
	movq	-40(%rbp), %rdx
	movq	-48(%rbp), %rsi
	movq	-56(%rbp), %r8
	movq	-64(%rbp), %r9
	movq	-72(%rbp), %r10
	movq	-80(%rbp), %r11
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.endm

/* The function has set up its frame: %rbp points to it. */
	.globl	mcount, _mcount
	.type	mcount, @function
	.type	_mcount, @function
	.p2align 4
mcount:
_mcount:
	.cfi_startproc
	ENTRY_HOOK leaq 8(%rbp), %rdi
	.cfi_endproc
	.size	mcount, . - mcount
	.size	_mcount, . - _mcount

/* The function has done nothing: below are the old %rbp, %rdi, and the address in it. */
	.globl	__fentry__, ky_mcount_patched
	.hidden	ky_mcount_patched
	.type	__fentry__, @function
	.type	ky_mcount_patched, @function
	.p2align 4
__fentry__:
ky_mcount_patched:
	.cfi_startproc
	ENTRY_HOOK leaq 24(%rsp), %rdi
	.cfi_endproc
	.size	__fentry__, . - __fentry__

/* In place of the return of a function; its place is below %rsp. */
	.globl	ky_mcount_return
	.hidden	ky_mcount_return
	.type	ky_mcount_return, @function
	.p2align 4
	.cfi_startproc
	.cfi_undefined %rip
	/* Who looks for the function of a return address takes the byte before it. */
	nop
ky_mcount_return:
	subq	$8, %rsp
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rax
	subq	$8, %rsp
	pushq	%rdx
	subq	$128, %rsp
	andq	$-64, %rsp
	SAVE_VECTORS 2
	leaq	8(%rbp), %rdi
	cld
	call	ky_mcount_leave
	movq	%rax, 8(%rbp)
	RESTORE_VECTORS 2
	movq	-8(%rbp), %rax
	movq	-24(%rbp), %rdx
	movq	%rbp, %rsp
	popq	%rbp
	ret
	.cfi_endproc
	.size	ky_mcount_return, . - ky_mcount_return

	.section .note.GNU-stack, "", @progbits
