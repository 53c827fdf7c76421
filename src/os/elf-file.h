/* SPDX-License-Identifier: MIT */
/*
 * The data about an ELF file that state dumps record: its size in memory, build ID, debug link. The
 * files belong to other users, so this code trusts nothing in them. It reads 64-bit and 32-bit
 * files of this machine's byte order.
 *
 * Threads: any.
 */
#ifndef KY_OS_ELF_FILE_H
#define KY_OS_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
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

/* Reads @fd, a regular file. Returns false when it is not an ELF file of a known form. */
bool ky_elf_read(int fd, struct ky_elf_info *info);

/* Sets @info's build ID to the one among the notes of a segment, if they have one; /sys/kernel/notes has such. */
void ky_elf_note_build_id(const uint8_t *notes, size_t bytes, struct ky_elf_info *info);

#endif
