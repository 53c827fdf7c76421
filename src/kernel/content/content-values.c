/* SPDX-License-Identifier: MIT */
/* The content of a system call as fields of its event: their values, byte for byte as content-fields.c has described them. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "kernel/content/content-internal.h"

static const uint8_t *find_part(const struct ky_content_record *record, unsigned int place,
				struct ky_content_part *part)
{
	const uint8_t *at = (const uint8_t *)(record + 1), *end;

	if (!record)
		return NULL;
	end = (const uint8_t *)record + record->bytes;
	while ((size_t)(end - at) >= sizeof(*part)) {
		memcpy(part, at, sizeof(*part));
		at += sizeof(*part);
		if (part->len > (size_t)(end - at))
			return NULL;
		if (part->place == place)
			return at;
		at += (part->len + 7) & ~7u;
	}
	return NULL;
}

const char *ky_content_text(const struct ky_content_record *record, unsigned int place,
			    uint32_t *len)
{
	struct ky_content_part part;
	const uint8_t *data = find_part(record, place, &part);

	if (!data || (part.status != KY_CONTENT_OK && part.status != KY_CONTENT_LATE))
		return NULL;
	*len = (uint32_t)strnlen((const char *)data, part.len);
	return (const char *)data;
}

const struct ky_thread_ids *ky_content_ids(const struct ky_content_record *record)
{
	struct ky_content_part part;
	const uint8_t *data = find_part(record, KY_CONTENT_OUT_IDS, &part);

	/* Parts are aligned to 8 bytes. */
	return data && part.status == KY_CONTENT_OK && part.len >= sizeof(struct ky_thread_ids)
		       ? (const void *)data
		       : NULL;
}

/* Counts what would be written where there is no place for it. */
struct writer {
	uint8_t *at;
	uint32_t bytes;
};

static void content_values_put(struct writer *w, const void *data, uint32_t len)
{
	if (w->at && len) {
		memcpy(w->at, data, len);
		w->at += len;
	}
	w->bytes += len;
}

static void content_values_put_sequence(struct writer *w, const void *data, uint32_t len)
{
	content_values_put(w, &len, 4);
	content_values_put(w, data, len);
}

static void content_values_put_text(struct writer *w, const uint8_t *data, uint32_t len)
{
	content_values_put(w, data, data ? (uint32_t)strnlen((const char *)data, len) : 0);
	content_values_put(w, "", 1);
}

/* An abstract name begins with NUL, and may have others: shown as '@', as in /proc/net/unix. Others need not be terminated. */
static void content_values_put_path(struct writer *w, const uint8_t *data, uint32_t len)
{
	const uint32_t from = offsetof(struct sockaddr_un, sun_path);

	data += from;
	len = len > from ? len - from : 0;
	if (len < 2 || data[0]) {
		content_values_put_text(w, len ? data : NULL, len);
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		content_values_put(w, data[i] ? (const char *)data + i : "@", 1);
	content_values_put(w, "", 1);
}

static void content_values_put_address(struct writer *w, uint16_t family, const uint8_t *data,
				       uint32_t len)
{
	char text[KY_CONTENT_ADDRESS_BYTES];
	uint32_t bytes = ky_content_say_address(family, data, len, text);

	content_values_put(w, text, bytes + 1);
}

static void put_sockaddr(struct writer *w, const uint8_t *data, uint32_t len)
{
	uint16_t family = 0, port = 0;
	const uint8_t *v4 = NULL, *v6 = NULL;

	if (len >= 2)
		memcpy(&family, data, 2);
	if ((family == AF_INET && len >= 8) || (family == AF_INET6 && len >= 24)) {
		memcpy(&port, data + 2, 2);
		port = ntohs(port);
		v4 = family == AF_INET ? data + offsetof(struct sockaddr_in, sin_addr) : NULL;
		v6 = family == AF_INET6 ? data + offsetof(struct sockaddr_in6, sin6_addr) : NULL;
	}
	content_values_put(w, &family, 2);
	content_values_put(w, &port, 2);
	content_values_put_sequence(w, v4, v4 ? 4 : 0);
	content_values_put_sequence(w, v6, v6 ? 16 : 0);
	content_values_put_path(w, data, family == AF_UNIX ? len : 0);
	content_values_put_address(w, family, data, len);
}

/* Those that could not be read are their addresses. */
static void put_texts(struct writer *w, const uint8_t *data, uint32_t len)
{
	struct writer counted = {NULL, 0}, *to = &counted;
	uint32_t n = 0;

	/* Twice: to know how many. */
	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			content_values_put(w, &n, 4);
		for (uint32_t at = 0; data && len - at >= 8;) {
			char address[24];
			int64_t bytes;

			memcpy(&bytes, data + at, 8);
			at += 8;
			if (bytes < 0) {
				snprintf(address, sizeof(address), "0x%" PRIx64, (uint64_t)~bytes);
				content_values_put(to, address, (uint32_t)strlen(address) + 1);
			} else {
				if (bytes > len - at)
					break;
				content_values_put_text(to, data + at, (uint32_t)bytes);
				at += ((uint32_t)bytes + 7) & ~7u;
				at = at > len ? len : at;
			}
			n += !pass;
		}
		to = w;
	}
}

/* The message at @at of a part of @len bytes, with its address and content. False: there is no further one. */
static bool next_message(const uint8_t *data, uint32_t len, uint32_t *at,
			 struct ky_content_message *message, const uint8_t **name,
			 const uint8_t **content)
{
	uint64_t end;

	if (!data || len - *at < sizeof(*message))
		return false;
	memcpy(message, data + *at, sizeof(*message));
	*name = data + *at + sizeof(*message);
	end = *at + sizeof(*message) + (((uint64_t)message->name_len + 7) & ~7ull);
	*content = data + end;
	end += ((uint64_t)message->data_len + 7) & ~7ull;
	if (end > len)
		return false;
	*at = (uint32_t)end;
	return true;
}

static void put_messages(struct writer *w, const struct ky_content_plan *plan, bool is_output,
			 const uint8_t *data, uint32_t len)
{
	struct ky_content_message message;
	const uint8_t *name, *content;
	uint32_t n = 0;

	for (uint32_t at = 0; next_message(data, len, &at, &message, &name, &content);)
		n++;
	content_values_put(w, &n, 4);
	for (uint32_t at = 0; next_message(data, len, &at, &message, &name, &content);) {
		put_sockaddr(w, name, message.name_len);
		content_values_put(w, &message.bytes, 8);
		if (is_output)
			content_values_put(w, &message.len, 4);
		if (plan->buffers)
			content_values_put_sequence(w, content, message.data_len);
	}
}

/* Is there more than was recorded, of one message or of all? */
static bool messages_are_cut(const struct ky_content_plan *plan, bool is_output,
			     const struct ky_content_part *part, const uint8_t *data)
{
	struct ky_content_message message;
	const uint8_t *name, *content;
	uint64_t n = 0;

	for (uint32_t at = 0; next_message(data, part->len, &at, &message, &name, &content); n++) {
		uint64_t wanted =
			is_output && message.len < message.bytes ? message.len : message.bytes;

		if ((message.flags & KY_CONTENT_MESSAGE_LONGER) ||
		    (plan->buffers && message.data_len < wanted))
			return true;
	}
	return n < part->value;
}

static void put_item(struct writer *w, const struct ky_content_plan *plan,
		     const struct ky_content_item *item, const struct ky_content_part *part,
		     const uint8_t *data)
{
	uint32_t len = data ? part->len : 0;
	uint64_t total = data && (part->status == KY_CONTENT_OK || part->status == KY_CONTENT_LATE)
				 ? part->value
				 : 0;

	switch ((enum ky_content_kind)item->kind) {
	case KY_CONTENT_NONE:
	case KY_CONTENT_IDS:
		break;
	case KY_CONTENT_TEXT:
	case KY_CONTENT_OUT_TEXT:
		content_values_put_text(w, data, len);
		break;
	case KY_CONTENT_SOCKADDR:
	case KY_CONTENT_MSG_NAME:
		put_sockaddr(w, data, len);
		break;
	case KY_CONTENT_TEXTS:
	case KY_CONTENT_ENVIRON:
		put_texts(w, data, len);
		break;
	case KY_CONTENT_MESSAGES:
		put_messages(w, plan, part->place >= KY_CONTENT_IN_PLACES, data, len);
		break;
	case KY_CONTENT_BUFFER:
	case KY_CONTENT_VALUE:
		content_values_put_sequence(w, data, len);
		break;
	case KY_CONTENT_IOVEC:
	case KY_CONTENT_MSG_IOVEC:
		content_values_put(w, &total, 8);
		if (plan->buffers)
			content_values_put_sequence(w, data, len);
		break;
	}
}

static bool content_values_is_cut(const struct ky_content_plan *plan,
				  const struct ky_content_item *item,
				  const struct ky_content_record *record,
				  const struct ky_content_part *part, const uint8_t *data)
{
	uint64_t wanted = part->value;

	switch ((enum ky_content_kind)item->kind) {
	case KY_CONTENT_TEXT:
		return wanted >= KY_CONTENT_TEXT_BYTES;
	case KY_CONTENT_TEXTS:
	case KY_CONTENT_ENVIRON:
		return wanted != 0;
	case KY_CONTENT_MESSAGES:
		return messages_are_cut(plan, part->place >= KY_CONTENT_IN_PLACES, part, data);
	case KY_CONTENT_IOVEC:
	case KY_CONTENT_MSG_IOVEC:
		if (plan->is_exit && (uint64_t)record->ret < wanted)
			wanted = (uint64_t)record->ret;
		return plan->buffers && part->len < wanted;
	default:
		return part->len < wanted;
	}
}

static uint8_t content_values_status_of(const struct ky_content_plan *plan,
					const struct ky_content_record *record)
{
	uint8_t status = KY_CONTENT_STATE_READ;

	if (!record)
		return plan->is_exit && !(plan->places >> KY_CONTENT_IN_PLACES)
			       ? KY_CONTENT_STATE_READ
			       : KY_CONTENT_STATE_LOST;
	for (unsigned int place = 0; place < KY_CONTENT_PLACES; place++) {
		struct ky_content_part part;
		uint8_t worse = KY_CONTENT_STATE_READ;
		const uint8_t *data = find_part(record, place, &part);

		if (place == KY_CONTENT_OUT_IDS || !data || part.status == KY_CONTENT_ABSENT)
			continue;
		if (part.status == KY_CONTENT_UNREADABLE)
			worse = KY_CONTENT_STATE_UNREADABLE;
		else if (content_values_is_cut(plan, &plan->call->items[place], record, &part,
					       data))
			worse = KY_CONTENT_STATE_TRUNCATED;
		else if (part.status == KY_CONTENT_LATE)
			worse = KY_CONTENT_STATE_LATE;
		status = worse > status ? worse : status;
	}
	return status;
}

static void content_values_put_place(struct writer *w, const struct ky_content_plan *plan,
				     const struct ky_content_record *record, unsigned int place)
{
	struct ky_content_part part = {0};

	if (plan->places & (1u << place)) {
		const uint8_t *data = find_part(record, place, &part);

		put_item(w, plan, &plan->call->items[place], &part, data);
	}
}

static void put_tail(struct writer *w, const struct ky_content_plan *plan,
		     const struct ky_content_record *record)
{
	uint8_t status = content_values_status_of(plan, record);

	for (unsigned int place = 0; place < KY_CONTENT_PLACES; place++)
		content_values_put_place(w, plan, record, place);
	content_values_put(w, &status, 1);
}

uint32_t ky_content_tail_bytes(const struct ky_content_plan *plan,
			       const struct ky_content_record *record)
{
	struct writer w = {NULL, 0};

	put_tail(&w, plan, record);
	return w.bytes;
}

uint8_t *ky_content_put_tail(const struct ky_content_plan *plan,
			     const struct ky_content_record *record, uint8_t *out)
{
	struct writer w = {out, 0};

	put_tail(&w, plan, record);
	return w.at;
}
