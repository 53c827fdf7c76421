/* SPDX-License-Identifier: MIT */
/*
 * Files that grow block by block. A thread of their own writes them past the page cache (O_DIRECT).
 *
 * Copying a megabyte into the page cache costs ten times the CPU time of giving it to the disk, and
 * displaces other pages. But writing to a disk takes time: so a thread waits for it, while the
 * caller fills further blocks.
 *
 * The blocks of a file are written in the order of their puts, so a crash loses only its end. These
 * blocks go through the page cache, in the same order: blocks in the queue when the disk is too
 * slow; blocks for a file system without O_DIRECT; blocks after ky_block_writer_hurry(); and a
 * block whose length is not a multiple of KY_BLOCK_ALIGN, with all later blocks of its file.
 *
 * Threads: any, but one at a time per file.
 */
#ifndef KY_STORE_BLOCK_WRITER_H
#define KY_STORE_BLOCK_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

/* Enough for a packet. */
#define KY_BLOCK_BYTES (256u * 1024)
#define KY_BLOCK_ALIGN 4096u

struct ky_block_writer;
struct ky_block_file;

struct ky_block {
	uint8_t *data; /* of the block size in ky_block_writer_open() */
	/* For the writer: */
	struct ky_block *next;
	struct ky_block_file *file;
	uint32_t len_bytes;
};

/*
 * Starts the thread. @block_bytes: size of a block, a power of 2, 4 KiB to 2 MiB. Returns 0,
 * KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_block_writer_open(struct ky_block_writer **writer, uint32_t block_bytes,
			 struct kymo_error *err);
/* Ends the thread and frees all blocks. The caller must have closed the files. NULL is allowed. */
void ky_block_writer_close(struct ky_block_writer *writer);
/* The thread's id. */
int32_t ky_block_writer_tid(struct ky_block_writer *writer);

/*
 * Returns an empty block. Waits while the queue is too long. NULL: memory is out, which cannot
 * happen to a caller that has put a block and takes another in its place.
 */
struct ky_block *ky_block_take(struct ky_block_writer *writer);
void ky_block_give_back(struct ky_block_writer *writer, struct ky_block *block);

/*
 * Writes the blocks in the queue. Without this call, a few blocks wait for more, since few large
 * writes cost less than many small ones.
 */
void ky_block_writer_kick(struct ky_block_writer *writer);
/* Whether blocks are in the queue. */
bool ky_block_writer_waits(struct ky_block_writer *writer);
/* From now on, no caller waits for the disk, and no block waits for others: the recording ends. */
void ky_block_writer_hurry(struct ky_block_writer *writer);

/* @fd: an empty file that nothing else writes; borrowed. Returns NULL when memory is out. */
struct ky_block_file *ky_block_file_open(struct ky_block_writer *writer, int fd);
/*
 * Append the first @len_bytes of @block. The writer takes the block over, on failure too. Returns
 * 0, or the -errno of an earlier failed block; the file ends before that block.
 */
int ky_block_file_put(struct ky_block_file *file, struct ky_block *block, uint32_t len_bytes);
/* Whether no block of the file is in the queue, and none has failed. */
bool ky_block_file_is_idle(struct ky_block_file *file);
/*
 * Reserve the next @len_bytes, which the caller writes itself, as whole blocks, at the returned
 * offset. The file must be idle. Blocks of later puts follow them. When the caller's write fails,
 * it truncates the file there, and later puts return @error.
 */
uint64_t ky_block_file_reserve(struct ky_block_file *file, uint32_t len_bytes);
void ky_block_file_cut(struct ky_block_file *file, uint64_t at_bytes, int error);
/* The number of bytes that are in the file; whole blocks. */
uint64_t ky_block_file_written(struct ky_block_file *file);
/* Waits until all blocks are written. Returns 0 or -errno, as above. */
int ky_block_file_wait(struct ky_block_file *file);
/* The same, and frees the file. NULL is allowed. *written_bytes may be NULL. */
int ky_block_file_close(struct ky_block_file *file, uint64_t *written_bytes);

#endif
