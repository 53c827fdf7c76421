/* SPDX-License-Identifier: MIT */
/* The page of a saved range: its own files as they are, and the data, compressed and in base64. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "os/file.h"
#include "view/page/page.h"
#include "view/save/save-internal.h"

#define CHUNK_BYTES 49152u    /* a multiple of 3 */
#define GZIP	    (15 + 16) /* the window, in the format of gzip */

/* Bytes on their way to the file. */
struct writer {
	int fd;
	size_t n; /* in ->chunk */
	uint8_t chunk[CHUNK_BYTES];
	char text[CHUNK_BYTES / 3 * 4];
};

static int save_page_write_all(int fd, const void *data, size_t len, struct kymo_error *err)
{
	int status = ky_write_all(fd, data, len);

	return status < 0 ? ky_error_errno(err, -status, "cannot write the page") : KYMO_OK;
}

/* The next part of the page's own files. */
static int write_asset(int fd, const char *name, struct kymo_error *err)
{
	const struct ky_view_asset *asset = ky_view_assets;
	uint8_t out[16384];
	z_stream stream = {0};
	int ret = KYMO_OK, status;

	while (asset->name && strcmp(asset->name, name) != 0)
		asset++;
	if (!asset->name)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "cannot save a page: this build has no page for the browser");
	if (inflateInit2(&stream, GZIP) != Z_OK)
		return ky_error_nomem(err);
	stream.next_in = (uint8_t *)(uintptr_t)asset->data;
	stream.avail_in = (unsigned int)asset->size_bytes;
	do {
		stream.next_out = out;
		stream.avail_out = sizeof(out);
		status = inflate(&stream, Z_NO_FLUSH);
		ret = save_page_write_all(fd, out, sizeof(out) - stream.avail_out, err);
	} while (status == Z_OK && ret == KYMO_OK);
	inflateEnd(&stream);
	if (ret == KYMO_OK && status != Z_STREAM_END)
		ret = ky_error_set(err, KYMO_E_FORMAT, "the page in this program is damaged");
	return ret;
}

/* ---- base64 -------------------------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int write_chunk(struct writer *writer, struct kymo_error *err)
{
	const uint8_t *in = writer->chunk;
	size_t n = 0;

	for (size_t i = 0; i < writer->n; i += 3) {
		size_t left = writer->n - i;
		uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
				(left > 2 ? (uint32_t)in[i + 2] : 0);

		writer->text[n++] = digits[bits >> 18];
		writer->text[n++] = digits[bits >> 12 & 63];
		writer->text[n++] = left > 1 ? digits[bits >> 6 & 63] : '=';
		writer->text[n++] = left > 2 ? digits[bits & 63] : '=';
	}
	writer->n = 0;
	return save_page_write_all(writer->fd, writer->text, n, err);
}

/* Compress @len bytes; @flush is Z_FINISH for the last ones. */
static int save_page_put(struct writer *writer, z_stream *stream, const void *data, size_t len,
			 int flush, struct kymo_error *err)
{
	int ret = KYMO_OK, status = Z_OK;

	stream->next_in = (uint8_t *)(uintptr_t)data;
	stream->avail_in = (unsigned int)len; /* at most KY_SAVED_MAX_BYTES, more or less */
	while (ret == KYMO_OK &&
	       (stream->avail_in || (flush == Z_FINISH && status != Z_STREAM_END))) {
		stream->next_out = writer->chunk + writer->n;
		stream->avail_out = (unsigned int)(CHUNK_BYTES - writer->n);
		status = deflate(stream, flush);
		writer->n = CHUNK_BYTES - stream->avail_out;
		if (writer->n == CHUNK_BYTES || status == Z_STREAM_END)
			ret = write_chunk(writer, err);
	}
	return ret;
}

static int write_data(struct writer *writer, const struct ky_strbuf *head,
		      const struct ky_strbuf *data, struct kymo_error *err)
{
	uint8_t length[4];
	z_stream stream = {0};
	int ret;

	if (deflateInit2(&stream, 6, Z_DEFLATED, GZIP, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return ky_error_nomem(err);
	for (int i = 0; i < 4; i++)
		length[i] = (uint8_t)(head->len >> 8 * i);
	ret = save_page_put(writer, &stream, length, sizeof(length), Z_NO_FLUSH, err);
	if (ret == KYMO_OK)
		ret = save_page_put(writer, &stream, ky_strbuf_text(head), head->len, Z_NO_FLUSH,
				    err);
	if (ret == KYMO_OK)
		ret = save_page_put(writer, &stream, ky_strbuf_text(data), data->len, Z_FINISH,
				    err);
	deflateEnd(&stream);
	return ret;
}

int ky_saved_page(const struct ky_strbuf *head, const struct ky_strbuf *data, int fd,
		  struct kymo_error *err)
{
	struct writer writer = {.fd = fd};
	int ret = write_asset(fd, "saved-head.html", err);

	if (ret == KYMO_OK)
		ret = write_data(&writer, head, data, err);
	return ret == KYMO_OK ? write_asset(fd, "saved-tail.html", err) : ret;
}
