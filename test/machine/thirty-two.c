/* SPDX-License-Identifier: MIT */
/*
 * A 32-bit program, which needs no 32-bit library: gcc -m32 -static -nostdlib. Its calls' numbers mean
 * something else in 64 bits: 4, 20 and 1 would be stat, writev and write.
 */
static long call(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return ret;
}

void _start(void);
void _start(void)
{
	static const char text[] = "thirty-two\n";

	for (int i = 0; i < 5; i++)
		call(4, 1, (long)text, sizeof(text) - 1);
	call(20, 0, 0, 0);
	call(1, 7, 0, 0);
}
