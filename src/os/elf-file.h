/* SPDX-License-Identifier: MIT */
/*
 * What state dumps tell of an ELF file: its size in memory, build id, debug link. The files are
 * other users'; nothing in them is trusted. 64-bit and 32-bit files of this machine's byte order.
 *
 * Threads: any.
 */
#ifndef KY_OS_ELF_FILE_H
#define KY_OS_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define KY_ELF_BUILD_ID_MAX 64
#define KY_ELF_LINK_MAX	    256

struct ky_elf_info {
	uint64_t memory_bytes;	 /* from the first loaded page to the last */
	bool is_pic;		 /* may be loaded anywhere */
	uint32_t build_id_bytes; /* 0: none */
	uint8_t build_id[KY_ELF_BUILD_ID_MAX];
	char debug_link[KY_ELF_LINK_MAX]; /* "": none */
	uint32_t debug_crc;
};

/* Read @fd, a regular file. False: it is no ELF file that we understand. */
bool ky_elf_read(int fd, struct ky_elf_info *info);

#endif
