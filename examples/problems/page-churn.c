/* SPDX-License-Identifier: MIT */
/* Problem: half of the CPU time is the kernel's. Each message gets 8 MiB of new memory, which is given back. */
#include <stddef.h>
#include <sys/mman.h>

#define N_MESSAGES 40
#define BYTES	   (8 << 20)

int main(void)
{
	for (int i = 0; i < N_MESSAGES; i++) {
		char *buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (buffer == MAP_FAILED)
			return 1;
		for (size_t at = 0; at < BYTES; at += 4096)
			buffer[at] = 1;
		munmap(buffer, BYTES);
	}
	return 0;
}
