/* SPDX-License-Identifier: MIT */
#include "store/packets/block-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"

/* Blocks are cut from slabs of this size and alignment, a huge page each: the kernel then has few pages to pin. */
#define SLAB_BYTES (2u << 20)

/* So many are there from the beginning: to get one takes a millisecond or two, better not while events come. */
#define SLABS_READY 2

/* Blocks of so much wait: they are written without being asked... */
#define BATCH_BYTES (2u << 20)
/* ...with so many in one write... */
#define WRITE_BLOCKS 16
/* ...past the page cache up to this size; at the second size, the caller waits for a block. */
#define DIRECT_BYTES_MAX  (8u << 20)
#define WAITING_BYTES_MAX (32u << 20)

struct slab {
	struct slab *next;
	void *mapping;
	struct ky_block blocks[];
};

struct ky_block_file {
	struct ky_block_writer *writer;
	int fd;
	bool is_direct;	 /* the descriptor's state; the thread's alone */
	bool can_direct; /* the thread's alone */
	uint32_t n_waiting;
	uint64_t written_bytes;
	int error; /* -errno */
};

/* All of it under the lock. */
struct ky_block_writer {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	pthread_t thread;
	int32_t tid;
	bool stop, kicked, hurry;
	uint32_t block_bytes;
	struct slab *slabs;
	struct ky_block *free; /* the one that was used last comes first: it is in the caches */
	struct ky_block *first, *last; /* that wait, in the order of their coming */
	uint32_t n_waiting;	       /* with those that are being written */
	uint32_t n_waiters;	       /* who want a file to be written */
};

/* ---- blocks --------------------------------------------------------------------------- */

static bool add_slab(struct ky_block_writer *writer)
{
	uint32_t n_blocks = SLAB_BYTES / writer->block_bytes;
	struct slab *slab = calloc(1, sizeof(*slab) + n_blocks * sizeof(slab->blocks[0]));
	uint8_t *data;

	if (!slab)
		return false;
	slab->mapping = mmap(NULL, 2 * SLAB_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slab->mapping == MAP_FAILED) {
		free(slab);
		return false;
	}
	data = slab->mapping;
	data += -(uintptr_t)data & (SLAB_BYTES - 1);
	(void)madvise(data, SLAB_BYTES, MADV_HUGEPAGE);
	for (uint32_t i = n_blocks; i-- > 0;) {
		slab->blocks[i].data = data + (size_t)i * writer->block_bytes;
		slab->blocks[i].next = writer->free;
		writer->free = &slab->blocks[i];
	}
	slab->next = writer->slabs;
	writer->slabs = slab;
	return true; /* its first block is the first that is free */
}

struct ky_block *ky_block_take(struct ky_block_writer *writer)
{
	struct ky_block *block;

	pthread_mutex_lock(&writer->lock);
	while (writer->n_waiting >= WAITING_BYTES_MAX / writer->block_bytes)
		pthread_cond_wait(&writer->done, &writer->lock);
	while (!writer->free && !add_slab(writer) && writer->n_waiting) {
		writer->kicked = true;
		pthread_cond_signal(&writer->work);
		pthread_cond_wait(&writer->done, &writer->lock);
	}
	block = writer->free;
	if (block)
		writer->free = block->next;
	pthread_mutex_unlock(&writer->lock);
	return block;
}

static void put_back(struct ky_block_writer *writer, struct ky_block *block)
{
	block->next = writer->free;
	writer->free = block;
}

void ky_block_give_back(struct ky_block_writer *writer, struct ky_block *block)
{
	pthread_mutex_lock(&writer->lock);
	put_back(writer, block);
	pthread_mutex_unlock(&writer->lock);
}

/* ---- the thread ----------------------------------------------------------------------- */

static bool set_direct(struct ky_block_file *file, bool direct)
{
	int flags;

	if (file->is_direct == direct)
		return true;
	flags = fcntl(file->fd, F_GETFL);
	if (flags < 0 ||
	    fcntl(file->fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) < 0)
		return false;
	file->is_direct = direct;
	return true;
}

/* What is to be written next: blocks of one file, taken out of the queue. */
struct job {
	struct ky_block_file *file;
	struct ky_block *blocks[WRITE_BLOCKS];
	int n_blocks;
	bool direct;
	int error;
	uint64_t written_bytes;
};

static void choose_job(struct ky_block_writer *writer, struct job *job)
{
	struct ky_block **at = &writer->first, *block, *last = NULL;

	*job = (struct job){.file = writer->first->file, .error = writer->first->file->error};
	while ((block = *at)) {
		if (block->file == job->file && job->n_blocks < WRITE_BLOCKS) {
			*at = block->next;
			job->blocks[job->n_blocks++] = block;
			continue;
		}
		last = block;
		at = &block->next;
	}
	writer->last = last;
	job->direct = !writer->hurry && writer->n_waiting <= DIRECT_BYTES_MAX / writer->block_bytes;
	job->written_bytes = job->file->written_bytes;
}

/* Where the file stands after its first @skip bytes of the job. Returns how many parts are left. */
static int list_parts(const struct job *job, uint64_t skip, struct iovec *parts)
{
	int n = 0;

	for (int i = 0; i < job->n_blocks; i++) {
		uint32_t len = job->blocks[i]->len_bytes;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		parts[n++] = (struct iovec){job->blocks[i]->data + skip, len - skip};
		skip = 0;
	}
	return n;
}

/* The file goes on at a multiple of what the disk can take, to the end of this job. */
static bool is_aligned(const struct job *job)
{
	for (int i = 0; i < job->n_blocks; i++)
		if (job->blocks[i]->len_bytes % KY_BLOCK_ALIGN)
			return false;
	return true;
}

/* All the job's bytes, or as many as there is room for. Returns how many; job->error says why no more. */
static uint64_t block_writer_write_bytes(struct job *job)
{
	struct ky_block_file *file = job->file;
	struct iovec parts[WRITE_BLOCKS];
	uint64_t total = 0;
	ssize_t n;
	int n_parts;

	while ((n_parts = list_parts(job, total, parts))) {
		bool direct = job->direct && file->can_direct && !(total % KY_BLOCK_ALIGN);

		if (!set_direct(file, direct)) {
			file->can_direct = false;
			(void)set_direct(file, false);
		}
		n = pwritev(file->fd, parts, n_parts, (off_t)(job->written_bytes + total));
		if (n < 0 && errno == EINVAL && file->is_direct && file->can_direct) {
			file->can_direct = false;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			job->error = n < 0 ? -errno : -EIO;
			break;
		}
		total += (uint64_t)n;
	}
	return total;
}

static void write_job(struct job *job)
{
	uint64_t bytes;

	if (job->error)
		return;
	if (!is_aligned(job))
		job->file->can_direct = false;
	bytes = block_writer_write_bytes(job);
	for (int i = 0; i < job->n_blocks && bytes >= job->blocks[i]->len_bytes; i++) {
		bytes -= job->blocks[i]->len_bytes;
		job->written_bytes += job->blocks[i]->len_bytes;
	}
	/* Half a block would make readers report damage. */
	if (job->error && bytes)
		(void)!ftruncate(job->file->fd, (off_t)job->written_bytes);
}

static void finish_job(struct ky_block_writer *writer, const struct job *job)
{
	struct ky_block_file *file = job->file;

	if (!file->error) {
		file->error = job->error;
		file->written_bytes = job->written_bytes;
	} else if (!job->error || job->written_bytes != file->written_bytes) {
		/* It was cut while this was being written behind the cut. */
		(void)!ftruncate(file->fd, (off_t)file->written_bytes);
	}
	file->n_waiting -= (uint32_t)job->n_blocks;
	writer->n_waiting -= (uint32_t)job->n_blocks;
	for (int i = job->n_blocks; i-- > 0;)
		put_back(writer, job->blocks[i]);
	pthread_cond_broadcast(&writer->done);
}

static bool has_work(const struct ky_block_writer *writer)
{
	return writer->first && (writer->kicked || writer->hurry || writer->n_waiters ||
				 writer->n_waiting >= BATCH_BYTES / writer->block_bytes);
}

static void *block_writer_run(void *data)
{
	struct ky_block_writer *writer = data;
	struct job job;

	pthread_mutex_lock(&writer->lock);
	writer->tid = gettid();
	pthread_cond_broadcast(&writer->done);
	for (;;) {
		while (!has_work(writer) && !writer->stop)
			pthread_cond_wait(&writer->work, &writer->lock);
		if (!writer->first)
			break;
		choose_job(writer, &job);
		pthread_mutex_unlock(&writer->lock);
		write_job(&job);
		pthread_mutex_lock(&writer->lock);
		finish_job(writer, &job);
		if (!writer->first)
			writer->kicked = false;
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

static void free_writer(struct ky_block_writer *writer)
{
	struct slab *slab;

	while ((slab = writer->slabs)) {
		writer->slabs = slab->next;
		(void)munmap(slab->mapping, 2 * SLAB_BYTES);
		free(slab);
	}
	pthread_cond_destroy(&writer->work);
	pthread_cond_destroy(&writer->done);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

int ky_block_writer_open(struct ky_block_writer **out, uint32_t block_bytes, struct kymo_error *err)
{
	struct ky_block_writer *writer = calloc(1, sizeof(*writer));
	int ret;

	*out = NULL;
	if (!writer)
		return ky_error_nomem(err);
	writer->block_bytes = block_bytes;
	for (int i = 0; i < SLABS_READY && add_slab(writer); i++)
		(void)madvise(writer->free->data, SLAB_BYTES, MADV_POPULATE_WRITE); /* Linux 5.14 */
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->work, NULL);
	pthread_cond_init(&writer->done, NULL);
	ret = pthread_create(&writer->thread, NULL, block_writer_run, writer);
	if (ret) {
		free_writer(writer);
		return ky_error_errno(err, ret, "cannot start the thread that writes");
	}
	*out = writer;
	return KYMO_OK;
}

void ky_block_writer_close(struct ky_block_writer *writer)
{
	if (!writer)
		return;
	pthread_mutex_lock(&writer->lock);
	writer->stop = true;
	pthread_cond_signal(&writer->work);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	free_writer(writer);
}

int32_t ky_block_writer_tid(struct ky_block_writer *writer)
{
	int32_t tid;

	pthread_mutex_lock(&writer->lock);
	while (!writer->tid)
		pthread_cond_wait(&writer->done, &writer->lock);
	tid = writer->tid;
	pthread_mutex_unlock(&writer->lock);
	return tid;
}

void ky_block_writer_kick(struct ky_block_writer *writer)
{
	pthread_mutex_lock(&writer->lock);
	if (writer->first && !writer->kicked) {
		writer->kicked = true;
		pthread_cond_signal(&writer->work);
	}
	pthread_mutex_unlock(&writer->lock);
}

bool ky_block_writer_waits(struct ky_block_writer *writer)
{
	bool waits;

	pthread_mutex_lock(&writer->lock);
	waits = writer->first != NULL;
	pthread_mutex_unlock(&writer->lock);
	return waits;
}

void ky_block_writer_hurry(struct ky_block_writer *writer)
{
	pthread_mutex_lock(&writer->lock);
	writer->hurry = true;
	pthread_cond_signal(&writer->work);
	pthread_mutex_unlock(&writer->lock);
}

/* ---- files ---------------------------------------------------------------------------- */

struct ky_block_file *ky_block_file_open(struct ky_block_writer *writer, int fd)
{
	struct ky_block_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->writer = writer;
	file->fd = fd;
	file->can_direct = true;
	return file;
}

int ky_block_file_put(struct ky_block_file *file, struct ky_block *block, uint32_t len_bytes)
{
	struct ky_block_writer *writer = file->writer;
	int error;

	pthread_mutex_lock(&writer->lock);
	error = file->error;
	if (error) {
		put_back(writer, block);
	} else {
		block->file = file;
		block->len_bytes = len_bytes;
		block->next = NULL;
		if (writer->first)
			writer->last->next = block;
		else
			writer->first = block;
		writer->last = block;
		file->n_waiting++;
		if (++writer->n_waiting >= BATCH_BYTES / writer->block_bytes || writer->hurry)
			pthread_cond_signal(&writer->work);
	}
	pthread_mutex_unlock(&writer->lock);
	return error;
}

bool ky_block_file_is_idle(struct ky_block_file *file)
{
	bool is_idle;

	pthread_mutex_lock(&file->writer->lock);
	is_idle = !file->n_waiting && !file->error;
	pthread_mutex_unlock(&file->writer->lock);
	return is_idle;
}

uint64_t ky_block_file_reserve(struct ky_block_file *file, uint32_t len_bytes)
{
	uint64_t at;

	pthread_mutex_lock(&file->writer->lock);
	at = file->written_bytes;
	file->written_bytes += len_bytes;
	pthread_mutex_unlock(&file->writer->lock);
	return at;
}

void ky_block_file_cut(struct ky_block_file *file, uint64_t at_bytes, int error)
{
	pthread_mutex_lock(&file->writer->lock);
	file->error = error;
	file->written_bytes = at_bytes;
	pthread_mutex_unlock(&file->writer->lock);
	(void)!ftruncate(file->fd, (off_t)at_bytes);
}

uint64_t ky_block_file_written(struct ky_block_file *file)
{
	uint64_t bytes;

	pthread_mutex_lock(&file->writer->lock);
	bytes = file->written_bytes;
	pthread_mutex_unlock(&file->writer->lock);
	return bytes;
}

int ky_block_file_wait(struct ky_block_file *file)
{
	struct ky_block_writer *writer = file->writer;
	int error;

	pthread_mutex_lock(&writer->lock);
	writer->n_waiters++;
	while (file->n_waiting) {
		pthread_cond_signal(&writer->work);
		pthread_cond_wait(&writer->done, &writer->lock);
	}
	writer->n_waiters--;
	error = file->error;
	pthread_mutex_unlock(&writer->lock);
	return error;
}

int ky_block_file_close(struct ky_block_file *file, uint64_t *written_bytes)
{
	int error;

	if (!file)
		return 0;
	error = ky_block_file_wait(file);
	/* The descriptor is the caller's again, as it was. */
	(void)set_direct(file, false);
	if (written_bytes)
		*written_bytes = file->written_bytes;
	free(file);
	return error;
}
