/* SPDX-License-Identifier: MIT */
/*
 * Files that grow block by block, written past the page cache (O_DIRECT) by a thread of its own.
 *
 * To copy a megabyte into the page cache costs ten times the CPU time of handing it to the disk, and pushes
 * out what others have there. But a disk makes one wait: so a thread does, and whoever fills blocks goes on.
 *
 * A file's blocks are written in the order in which they were put: what a crash cuts is its end. Through the page
 * cache go, one after the other as well: what waits when the disk falls behind; what a file system does not take
 * otherwise; what is put after ky_block_writer_hurry(); and a block whose length is no multiple
 * of KY_BLOCK_ALIGN, with all that follows it in its file.
 *
 * Threads: any, but one at a time per file.
 */
#ifndef KY_STORE_BLOCK_WRITER_H
#define KY_STORE_BLOCK_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

/* What a packet needs. */
#define KY_BLOCK_BYTES (256u * 1024)
#define KY_BLOCK_ALIGN 4096u

struct ky_block_writer;
struct ky_block_file;

struct ky_block {
	uint8_t *data; /* as much as ky_block_writer_open() was told */
	/* The writer's: */
	struct ky_block *next;
	struct ky_block_file *file;
	uint32_t len_bytes;
};

/* Start the thread. @block_bytes: of each block, a power of 2, 4 KiB to 2 MiB. 0, KYMO_E_MEMORY, KYMO_E_IO. */
int ky_block_writer_open(struct ky_block_writer **writer, uint32_t block_bytes,
			 struct kymo_error *err);
/* End the thread and free all blocks; its files are closed before. NULL is fine. */
void ky_block_writer_close(struct ky_block_writer *writer);
/* The thread's id. */
int32_t ky_block_writer_tid(struct ky_block_writer *writer);

/*
 * A block to be filled. Waits while too much waits to be written. NULL: out of memory; never for who has put one
 * and takes another in its place.
 */
struct ky_block *ky_block_take(struct ky_block_writer *writer);
void ky_block_give_back(struct ky_block_writer *writer, struct ky_block *block);

/*
 * Write what was put until now. Without this, a few blocks wait for company, since few large writes cost less than many
 * small ones.
 */
void ky_block_writer_kick(struct ky_block_writer *writer);
/* Are there any that wait to be written? */
bool ky_block_writer_waits(struct ky_block_writer *writer);
/* From now on, nobody shall wait, neither for the disk nor for more blocks: recording ends. */
void ky_block_writer_hurry(struct ky_block_writer *writer);

/* @fd: of an empty file, written by nobody else; borrowed. NULL: out of memory. */
struct ky_block_file *ky_block_file_open(struct ky_block_writer *writer, int fd);
/*
 * Append the first @len_bytes of @block, which is the writer's from now on, on failure too.
 * 0, or the -errno with which an earlier block could not be written; the file ends with the one before that.
 */
int ky_block_file_put(struct ky_block_file *file, struct ky_block *block, uint32_t len_bytes);
/* Does nothing wait to be written to it, and has nothing failed? */
bool ky_block_file_is_idle(struct ky_block_file *file);
/*
 * The next @len_bytes are for the caller to write, at the offset that is returned, as whole blocks; the file is idle. What
 * is put meanwhile follows them. If they could not be written, the file is to be cut there; later puts return @error.
 */
uint64_t ky_block_file_reserve(struct ky_block_file *file, uint32_t len_bytes);
void ky_block_file_cut(struct ky_block_file *file, uint64_t at_bytes, int error);
/* Bytes that are in the file by now; whole blocks. */
uint64_t ky_block_file_written(struct ky_block_file *file);
/* Wait until all is written. 0 or -errno, as above. */
int ky_block_file_wait(struct ky_block_file *file);
/* The same, and free it. NULL is fine. *written_bytes may be NULL. */
int ky_block_file_close(struct ky_block_file *file, uint64_t *written_bytes);

#endif
