/* SPDX-License-Identifier: MIT */
/* Where chunks go. */
#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "ring/ring-reader.h"

int64_t kymo_ring_chunk_read(const struct kymo_ring_chunk *chunk, void *buffer, uint64_t size_bytes)
{
	uint64_t total = chunk->header_bytes + chunk->body_bytes;

	if (size_bytes < total)
		return KYMO_E_LIMIT;
	memcpy(buffer, chunk->header, chunk->header_bytes);
	memcpy((uint8_t *)buffer + chunk->header_bytes, chunk->body, chunk->body_bytes);
	return (int64_t)total;
}

/* The body, from @at on, by the kernel's way for this kind of file; or by writing. */
static ssize_t send_body(const struct kymo_ring_reader *reader, const struct kymo_ring_chunk *chunk,
			 int fd, mode_t mode, uint64_t at)
{
	const uint8_t *body = chunk->body;
	loff_t offset = (loff_t)(chunk->body_offset + at);
	uint64_t bytes = chunk->body_bytes - at;
	ssize_t sent = -1;

	errno = EINVAL;
	if (chunk->body_offset != UINT64_MAX && S_ISREG(mode))
		sent = sendfile(fd, reader->fd, &offset, bytes);
	else if (chunk->body_offset != UINT64_MAX && S_ISFIFO(mode))
		sent = splice(reader->fd, &offset, fd, NULL, bytes, 0);
	/* Not between these files: some do not know how, and none that appends. */
	if (sent < 0 && (errno == EINVAL || errno == ENOSYS))
		sent = write(fd, body + at, bytes);
	return sent;
}

int kymo_ring_chunk_send(struct kymo_ring_reader *reader, const struct kymo_ring_chunk *chunk,
			 int fd, uint64_t *sent_bytes, struct kymo_error *err)
{
	uint64_t total = chunk->header_bytes + chunk->body_bytes;
	struct stat status;

	if (fstat(fd, &status) < 0)
		return ky_error_errno(err, errno, "cannot send");
	while (*sent_bytes < total) {
		ssize_t sent;

		if (*sent_bytes < chunk->header_bytes)
			sent = write(fd, (uint8_t *)chunk->header + *sent_bytes,
				     chunk->header_bytes - *sent_bytes);
		else
			sent = send_body(reader, chunk, fd, status.st_mode,
					 *sent_bytes - chunk->header_bytes);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return ky_error_errno(err, errno, "cannot send");
		if (sent == 0)
			return ky_error_set(err, KYMO_E_IO, "the ring's file was cut short");
		*sent_bytes += (uint64_t)sent;
	}
	return KYMO_OK;
}
