/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "ctf/tsdl-parser.h"

#define PACKET_MAGIC	      0x75d11d57u
#define PACKET_HEADER_BYTES   37u
#define CTF2_RECORD_SEPARATOR 0x1e

struct unwrapper {
	const uint8_t *data;
	size_t size, at; /* bytes */
	bool big_endian;
	struct ky_strbuf text;
	struct kymo_error *err;
};

static int bad_packet(struct unwrapper *u, int code, const char *what)
{
	ky_error_set(u->err, code, "%s", what);
	ky_error_offset(u->err, u->at);
	return code;
}

static int is_ctf2(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_UNSUPPORTED, "this is CTF 2 metadata, which cannot be read yet");
	return KYMO_E_UNSUPPORTED;
}

/* ---- packets ----------------------------------------------------------------------------- */

static bool is_packetized(const uint8_t *data, size_t size, bool *big_endian)
{
	if (size < 4)
		return false;
	*big_endian = ky_load32(data, true) == PACKET_MAGIC;
	return *big_endian || ky_load32(data, false) == PACKET_MAGIC;
}

/* A file may end in a byte too many, or in zeros up to a page's end. */
static bool is_tail(const struct unwrapper *u)
{
	size_t left = u->size - u->at;

	if (left <= 1)
		return true;
	for (size_t i = u->at; i < u->size; i++) {
		if (u->data[i])
			return false;
	}
	return true;
}

static int check_schemes(struct unwrapper *u, const uint8_t *header)
{
	if (header[32])
		return bad_packet(u, KYMO_E_UNSUPPORTED, "the metadata is compressed");
	if (header[33])
		return bad_packet(u, KYMO_E_UNSUPPORTED, "the metadata is encrypted");
	if (header[34])
		return bad_packet(u, KYMO_E_UNSUPPORTED,
				  "the metadata has checksums, which cannot be verified");
	if (header[35] == 2)
		return is_ctf2(u->err);
	if (header[35] != 1 || header[36] != 8)
		return bad_packet(u, KYMO_E_FORMAT,
				  "this metadata packet is not of version 1.8 of CTF");
	return KYMO_OK;
}

static int check_header(struct unwrapper *u, const uint8_t *header)
{
	if (ky_load32(header, u->big_endian) != PACKET_MAGIC)
		return bad_packet(u, KYMO_E_FORMAT, "no metadata packet begins here");
	if (memcmp(header + 4, u->data + 4, 16) != 0)
		return bad_packet(u, KYMO_E_FORMAT,
				  "the UUID of this metadata packet differs from the first one's");
	return check_schemes(u, header);
}

static int unwrap_packet(struct unwrapper *u)
{
	const uint8_t *header = u->data + u->at;
	size_t left = u->size - u->at;
	uint32_t content, packet;
	int ret;

	if (left < PACKET_HEADER_BYTES)
		return bad_packet(u, KYMO_E_FORMAT, "the metadata ends within a packet's header");
	ret = check_header(u, header);
	if (ret < 0)
		return ret;
	content = ky_load32(header + 24, u->big_endian);
	packet = ky_load32(header + 28, u->big_endian);
	if (content % 8 || packet % 8 || content / 8 < PACKET_HEADER_BYTES || content > packet)
		return bad_packet(u, KYMO_E_FORMAT, "this metadata packet's sizes make no sense");
	if (content / 8 > left)
		return bad_packet(u, KYMO_E_FORMAT, "the metadata ends within a packet");
	ky_strbuf_add(&u->text, (const char *)header + PACKET_HEADER_BYTES,
		      content / 8 - PACKET_HEADER_BYTES);
	/* The padding of the last packet may be missing. */
	u->at += packet / 8 < left ? packet / 8 : left;
	return KYMO_OK;
}

static int unwrap(struct unwrapper *u)
{
	int ret = KYMO_OK;

	do {
		ret = unwrap_packet(u);
	} while (ret == KYMO_OK && !is_tail(u));
	if (ret == KYMO_OK && u->text.len && (uint8_t)u->text.data[0] == CTF2_RECORD_SEPARATOR)
		return is_ctf2(u->err);
	if (ret == KYMO_OK && ky_strbuf_failed(&u->text))
		return ky_error_nomem(u->err);
	return ret;
}

/* ---- plain text -------------------------------------------------------------------------- */

/* A comment that begins with "CTF 1.8", after optional white space. */
static int check_signature(const char *text, size_t size, struct kymo_error *err)
{
	static const char begin[] = "/* CTF ", version[] = "1.8";
	size_t at = 0;

	while (at < size && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	if (size - at < strlen(begin) || memcmp(text + at, begin, strlen(begin)) != 0) {
		ky_error_set(err, KYMO_E_FORMAT,
			     "this is no CTF metadata: it does not begin with \"/* CTF 1.8\"");
		ky_error_line(err, 1, 1);
		return KYMO_E_FORMAT;
	}
	at += strlen(begin);
	if (size - at < strlen(version) || memcmp(text + at, version, strlen(version)) != 0 ||
	    (size - at > strlen(version) && text[at + 3] >= '0' && text[at + 3] <= '9')) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "this is not version 1.8 of CTF");
		ky_error_line(err, 1, 1);
		return KYMO_E_UNSUPPORTED;
	}
	return KYMO_OK;
}

static int plain_text(const void *data, size_t size, struct ky_strbuf *text, struct kymo_error *err)
{
	const char *bytes = data;
	int ret;

	if (!size)
		return ky_error_set(err, KYMO_E_FORMAT, "the metadata is empty");
	if ((uint8_t)bytes[0] == CTF2_RECORD_SEPARATOR)
		return is_ctf2(err);
	ret = check_signature(bytes, size, err);
	if (ret < 0)
		return ret;
	while (size && !bytes[size - 1])
		size--;
	ky_strbuf_add(text, bytes, size);
	return ky_strbuf_failed(text) ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- both -------------------------------------------------------------------------------- */

/* *packetized and *big_endian tell how the text was wrapped. */
static int get_text(const void *data, size_t size_bytes, struct ky_strbuf *text, bool *packetized,
		    bool *big_endian, struct kymo_error *err)
{
	struct unwrapper u = {.data = data, .size = size_bytes, .err = err};
	int ret;

	*packetized = is_packetized(data, size_bytes, big_endian);
	if (!*packetized)
		return plain_text(data, size_bytes, text, err);
	u.big_endian = *big_endian;
	ky_strbuf_init(&u.text);
	ret = unwrap(&u);
	*text = u.text;
	return ret;
}

int ky_metadata_text(const void *data, size_t size_bytes, char **text, size_t *len_bytes,
		     struct kymo_error *err)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;
	bool packetized, big_endian;
	int ret = get_text(data, size_bytes, &buf, &packetized, &big_endian, err);

	if (ret < 0) {
		ky_strbuf_fini(&buf);
		return ret;
	}
	*len_bytes = buf.len;
	*text = buf.data ? ky_strbuf_take(&buf) : calloc(1, 1);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

int ky_metadata_read(const void *data, size_t size_bytes, struct ky_trace_class **trace,
		     struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	bool packetized, big_endian;
	int ret = get_text(data, size_bytes, &text, &packetized, &big_endian, err);

	if (ret == KYMO_OK)
		ret = ky_tsdl_parse(ky_strbuf_text(&text), text.len, trace, err);
	ky_strbuf_fini(&text);
	if (ret == KYMO_OK && packetized && (*trace)->big_endian != big_endian) {
		ky_trace_class_free(*trace);
		*trace = NULL;
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the metadata packets are %s-endian, but the trace they "
				    "describe is %s-endian",
				    big_endian ? "big" : "little", big_endian ? "little" : "big");
	}
	return ret;
}
