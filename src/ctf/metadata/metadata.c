/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "ctf/ctf2/ctf2-read.h"
#include "ctf/tsdl/tsdl-parser.h"

#define PACKET_MAGIC	    0x75d11d57u
#define PACKET_HEADER_BYTES 37u
/* CTF 2's own form; LTTng keeps to the shorter header and only changes the version in it. */
#define CTF2_HEADER_BYTES     44u
#define CTF2_RECORD_SEPARATOR 0x1e

/* What a metadata file holds, without its packets. */
struct content {
	struct ky_strbuf text;
	bool packetized, big_endian; /* how it was wrapped */
	bool is_ctf2;
};

struct unwrapper {
	const uint8_t *data;
	size_t size, at; /* bytes */
	uint32_t header_bytes;
	struct content *content;
	struct kymo_error *err;
};

static int bad_packet(struct unwrapper *u, int code, const char *what)
{
	ky_error_set(u->err, code, "%s", what);
	ky_error_offset(u->err, u->at);
	return code;
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

/*
 * The version decides what the packets wrap. A packet of CTF 2 says how long its own header is;
 * in LTTng's shorter one, the first fragment begins there instead.
 */
static int first_header(struct unwrapper *u, const uint8_t *header)
{
	uint8_t major = header[35], minor = header[36];
	uint32_t content = ky_load32(header + 24, u->content->big_endian);
	bool is_short = u->size == PACKET_HEADER_BYTES || content == PACKET_HEADER_BYTES * 8 ||
			(u->size > PACKET_HEADER_BYTES &&
			 header[PACKET_HEADER_BYTES] == CTF2_RECORD_SEPARATOR);

	if (!(major == 1 && minor == 8) && !(major == 2 && minor == 0))
		return bad_packet(u, KYMO_E_FORMAT,
				  "this metadata packet is of neither version 1.8 nor 2.0 of CTF");
	u->content->is_ctf2 = major == 2;
	u->header_bytes = major == 2 && !is_short ? CTF2_HEADER_BYTES : PACKET_HEADER_BYTES;
	return KYMO_OK;
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
	return KYMO_OK;
}

static int check_header(struct unwrapper *u, const uint8_t *header)
{
	if (ky_load32(header, u->content->big_endian) != PACKET_MAGIC)
		return bad_packet(u, KYMO_E_FORMAT, "no metadata packet begins here");
	if (memcmp(header + 4, u->data + 4, 16) != 0)
		return bad_packet(u, KYMO_E_FORMAT,
				  "the UUID of this metadata packet differs from the first one's");
	if (header[35] != u->data[35] || header[36] != u->data[36])
		return bad_packet(u, KYMO_E_FORMAT,
				  "the version of this metadata packet differs from the first "
				  "one's");
	if (u->header_bytes == CTF2_HEADER_BYTES &&
	    ky_load32(header + 40, u->content->big_endian) != CTF2_HEADER_BYTES * 8)
		return bad_packet(u, KYMO_E_FORMAT,
				  "this metadata packet's header has a wrong size");
	return check_schemes(u, header);
}

static int unwrap_packet(struct unwrapper *u)
{
	const uint8_t *header = u->data + u->at;
	size_t left = u->size - u->at;
	bool big = u->content->big_endian;
	uint32_t content, packet;
	int ret = KYMO_OK;

	if (!u->at && left >= PACKET_HEADER_BYTES)
		ret = first_header(u, header);
	if (ret == KYMO_OK && left < u->header_bytes)
		ret = bad_packet(u, KYMO_E_FORMAT, "the metadata ends within a packet's header");
	if (ret == KYMO_OK)
		ret = check_header(u, header);
	if (ret < 0)
		return ret;
	content = ky_load32(header + 24, big);
	packet = ky_load32(header + 28, big);
	if (content % 8 || packet % 8 || content / 8 < u->header_bytes || content > packet)
		return bad_packet(u, KYMO_E_FORMAT, "this metadata packet's sizes are invalid");
	if (content / 8 > left)
		return bad_packet(u, KYMO_E_FORMAT, "the metadata ends within a packet");
	ky_strbuf_add(&u->content->text, (const char *)header + u->header_bytes,
		      content / 8 - u->header_bytes);
	/* The padding of the last packet may be missing. */
	u->at += packet / 8 < left ? packet / 8 : left;
	return KYMO_OK;
}

static int metadata_unwrap(struct unwrapper *u)
{
	int ret;

	do {
		ret = unwrap_packet(u);
	} while (ret == KYMO_OK && !is_tail(u));
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

static int metadata_plain_text(const char *data, size_t size, struct content *content,
			       struct kymo_error *err)
{
	int ret;

	if (!size)
		return ky_error_set(err, KYMO_E_FORMAT, "the metadata is empty");
	/* Some writers leave the first separator out. */
	if (data[0] == '{')
		ky_strbuf_addc(&content->text, CTF2_RECORD_SEPARATOR);
	content->is_ctf2 = (uint8_t)data[0] == CTF2_RECORD_SEPARATOR || data[0] == '{';
	if (!content->is_ctf2) {
		ret = check_signature(data, size, err);
		if (ret < 0)
			return ret;
	}
	while (size && !data[size - 1])
		size--;
	ky_strbuf_add(&content->text, data, size);
	return KYMO_OK;
}

/* ---- both -------------------------------------------------------------------------------- */

/* content->text is the caller's to free, after a failure too. */
static int get_content(const void *data, size_t size_bytes, struct content *content,
		       struct kymo_error *err)
{
	struct unwrapper u = {.data = data, .size = size_bytes, .content = content, .err = err};
	int ret;

	u.header_bytes = PACKET_HEADER_BYTES;
	memset(content, 0, sizeof(*content));
	ky_strbuf_init(&content->text);
	content->packetized = is_packetized(data, size_bytes, &content->big_endian);
	ret = content->packetized ? metadata_unwrap(&u)
				  : metadata_plain_text(data, size_bytes, content, err);
	if (ret == KYMO_OK && ky_strbuf_failed(&content->text))
		return ky_error_nomem(err);
	return ret;
}

int ky_metadata_text(const void *data, size_t size_bytes, char **text, size_t *len_bytes,
		     struct kymo_error *err)
{
	struct content content;
	int ret = get_content(data, size_bytes, &content, err);

	if (ret < 0) {
		ky_strbuf_fini(&content.text);
		return ret;
	}
	*len_bytes = content.text.len;
	*text = content.text.data ? ky_strbuf_take(&content.text) : calloc(1, 1);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

static int read_tsdl(const struct content *content, struct ky_trace_class **trace,
		     struct kymo_error *err)
{
	struct ky_trace_class *read;
	int ret = ky_tsdl_parse(ky_strbuf_text(&content->text), content->text.len, &read, err);

	if (ret < 0)
		return ret;
	if (content->packetized && read->big_endian != content->big_endian) {
		ky_trace_class_free(read);
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the metadata packets are %s-endian, but the trace they "
				    "describe is %s-endian",
				    content->big_endian ? "big" : "little",
				    content->big_endian ? "little" : "big");
	}
	/* A tracer wrote packets for the streams beside them; a text may have been edited since. */
	read->lax_uuid = !content->packetized;
	*trace = read;
	return KYMO_OK;
}

int ky_metadata_read(const void *data, size_t size_bytes, struct ky_trace_class **trace,
		     struct kymo_error *err)
{
	struct content content;
	int ret = get_content(data, size_bytes, &content, err);

	if (ret == KYMO_OK && content.is_ctf2)
		ret = ky_ctf2_read(ky_strbuf_text(&content.text), content.text.len, trace, err);
	else if (ret == KYMO_OK)
		ret = read_tsdl(&content, trace, err);
	ky_strbuf_fini(&content.text);
	return ret;
}
