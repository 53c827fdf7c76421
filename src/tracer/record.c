/* SPDX-License-Identifier: MIT */
/* Values become the bytes of a record, and that is written: all that is not the straight path. */
#include <string.h>

#include "tracer/ring-config.h"
#include "tracer/tracer.h"

/* Payloads that most events fit into, and the largest: 10 strings, contexts. */
#define SMALL_BYTES  1536
#define LARGE_BYTES  (10 * (KYMO_STRING_MAX + 1) + KY_CONTEXTS_MAX * KY_CONTEXT_BYTES_MAX)
#define PARTS_MAX    15	 /* of the ring's, without a header */
#define DIRECT_BYTES 128 /* from here, data is copied to the ring from where it is */

#define INLINE static inline __attribute__((always_inline))

/* ---- writing: one specialised copy per clock ---- */

INLINE void write_bytes(const struct kymo_ring_config *config, struct kymo_ring_writer *ring,
			uint32_t id, const void *payload, uint64_t bytes)
{
	struct kymo_ring_part part = {payload, bytes};

	if (__builtin_expect(id <= KY_HEADER_ID_MAX, 1)) {
		switch (bytes) {
		case 4:
			kymo_ring_write(config, ring, &id, payload, 4);
			return;
		case 8:
			kymo_ring_write(config, ring, &id, payload, 8);
			return;
		case 12:
			kymo_ring_write(config, ring, &id, payload, 12);
			return;
		case 16:
			kymo_ring_write(config, ring, &id, payload, 16);
			return;
		case 24:
			kymo_ring_write(config, ring, &id, payload, 24);
			return;
		default:
			break;
		}
	}
	kymo_ring_write_parts(config, ring, &id, &part, 1);
}

static void write_tsc(struct ky_reservation *reservation, const void *payload, uint64_t bytes)
{
	write_bytes(&ky_ring_tsc, &reservation->ring, reservation->id, payload, bytes);
}

static void write_monotonic(struct ky_reservation *reservation, const void *payload, uint64_t bytes)
{
	write_bytes(&ky_ring_monotonic, &reservation->ring, reservation->id, payload, bytes);
}

void ky_record_payload(struct ky_reservation *reservation, const void *payload, uint64_t bytes)
{
	if (__builtin_expect(reservation->clock == KY_CLOCK_RECORD_TSC, 1))
		write_tsc(reservation, payload, bytes);
	else
		write_monotonic(reservation, payload, bytes);
}

static void write_parts(struct ky_reservation *reservation, const struct kymo_ring_part *parts,
			uint32_t n_parts)
{
	if (reservation->clock == KY_CLOCK_RECORD_TSC)
		kymo_ring_write_parts(&ky_ring_tsc, &reservation->ring, &reservation->id, parts,
				      n_parts);
	else
		kymo_ring_write_parts(&ky_ring_monotonic, &reservation->ring, &reservation->id,
				      parts, n_parts);
}

/* ---- packing: values become the bytes of the record ---- */

struct pack {
	uint8_t *at, *end; /* of the buffer; behind it are 8 bytes more */
	uint8_t *from;	   /* since the last part */
	uint32_t n_parts;
	uint32_t n_cut; /* strings that were too long */
	bool has_rseq;
	struct kymo_ring_part parts[PARTS_MAX];
};

/* Words tell where the NUL is, where the first byte is the lowest. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(__SANITIZE_ADDRESS__)
#define HAS_WORDS 1
#else
#define HAS_WORDS 0
#endif

/* The bit 7 of the first byte that is 0 (and maybe of later ones); 0: none is. */
INLINE uint64_t zero_byte(uint64_t word)
{
	return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

/*
 * Copies words of @from to @to, as long as none has a NUL and less than @most bytes are copied,
 * which may be 8 less than there is room for. Only aligned words are read: they lie in one page with
 * the byte that is wanted. Returns how many were copied; *is_end: with the NUL.
 */
INLINE uint64_t copy_words(uint8_t *to, const char *from, uint64_t most, bool *is_end)
{
	uint64_t skip = (uintptr_t)from & 7, n = 8 - skip;
	const uint64_t *at = (const uint64_t *)(from - skip);
	uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED) >> 8 * skip;
	/* What was shifted in is not the end. */
	uint64_t zero = zero_byte(word | ~(UINT64_MAX >> 8 * skip));

	memcpy(to, &word, sizeof(word));
	while (!zero && n < most) {
		word = __atomic_load_n(++at, __ATOMIC_RELAXED);
		zero = zero_byte(word);
		memcpy(to + n, &word, sizeof(word));
		n += 8;
	}
	*is_end = zero != 0;
	/* The last word was counted as a whole. */
	if (zero)
		n = n - (at == (const uint64_t *)(from - skip) ? 8 - skip : 8) +
		    (uint64_t)__builtin_ctzll(zero) / 8 + 1;
	return n;
}

/* What a string that was cut ends with, in KYMO_STRING_MAX bytes and before a NUL. */
#define CUT_MARK "..."

/*
 * The @n bytes at @at, of which the last is to be a NUL, are the beginning of a string: mark that, without half a character
 * of UTF-8 before the mark. Returns how many bytes there are then.
 */
static __attribute__((noinline)) uint64_t mark_cut(uint8_t *at, uint64_t n)
{
	uint64_t end = n - sizeof(CUT_MARK);

	for (int i = 0; i < 3 && (at[end] & 0xc0) == 0x80; i++)
		end--;
	memcpy(at + end, CUT_MARK, sizeof(CUT_MARK));
	return end + sizeof(CUT_MARK);
}

/*
 * Copies up to and with the NUL, or the beginning of KYMO_STRING_MAX bytes with a mark and a NUL, reading each byte once: another
 * thread may change the string meanwhile, and what is recorded must end where it says it does. The C
 * library's functions would read it twice, and lose more than they gain on short strings.
 */
static bool pack_string(struct pack *pack, const char *string)
{
	uint64_t room = (uint64_t)(pack->end - pack->at), n = 0;
	uint64_t most = room < KYMO_STRING_MAX + 1 ? room : KYMO_STRING_MAX + 1;
	const char *from = string ? string : "";
	uint8_t *at = pack->at;
	bool is_end;

	/* Where there is no rseq there may be valgrind, which minds bytes behind the end. */
	if (HAS_WORDS && pack->has_rseq && most > 8) {
		n = copy_words(at, from, most - 8, &is_end);
		if (is_end) {
			pack->at += n;
			return true;
		}
	}
	for (; n < most; n++) {
		at[n] = (uint8_t)__atomic_load_n(&from[n], __ATOMIC_RELAXED);
		if (!at[n]) {
			pack->at += n + 1;
			return true;
		}
	}
	if (n == room)
		return false;
	pack->n_cut++;
	pack->at += mark_cut(at, n);
	return true;
}

static void end_part(struct pack *pack)
{
	if (pack->at == pack->from)
		return;
	pack->parts[pack->n_parts].data = pack->from;
	pack->parts[pack->n_parts++].bytes = (uint64_t)(pack->at - pack->from);
	pack->from = pack->at;
}

static bool pack_data(struct pack *pack, const void *data, uint64_t bytes)
{
	/* The last part is kept for what remains. */
	if (bytes >= DIRECT_BYTES && data && pack->n_parts + 3 <= PARTS_MAX) {
		end_part(pack);
		pack->parts[pack->n_parts].data = data;
		pack->parts[pack->n_parts++].bytes = bytes;
		return true;
	}
	if (bytes > (uint64_t)(pack->end - pack->at))
		return false;
	if (data)
		memcpy(pack->at, data, bytes);
	else
		memset(pack->at, 0, bytes);
	pack->at += bytes;
	return true;
}

static bool pack_counted(struct pack *pack, const void *data, uint64_t n, uint32_t item_bytes)
{
	if (!data)
		n = 0;
	if (n > UINT32_MAX || pack->end - pack->at < 4)
		return false;
	ky_put_number(pack->at, n, 4);
	pack->at += 4;
	return pack_data(pack, data, n * item_bytes);
}

static bool pack_field(struct pack *pack, const struct ky_field *field, const uint64_t *values)
{
	uint64_t bits = values[field->value];
	const void *data = (const void *)(uintptr_t)bits; // NOLINT(performance-no-int-to-ptr)

	if (__builtin_expect(field->flags & KY_FIELD_FILTER_ONLY, 0))
		return true;
	switch (field->kind) {
	case KY_KIND_STRING:
		return pack_string(pack, data);
	case KY_KIND_ARRAY:
		return pack_data(pack, data, (uint64_t)field->length * field->bytes);
	case KY_KIND_SEQUENCE:
	case KY_KIND_TEXT:
	case KY_KIND_BLOB:
		return pack_counted(pack, data, values[field->value + 1], field->bytes);
	default:
		if (pack->end - pack->at < field->bytes)
			return false;
		ky_put_number(pack->at, bits, field->bytes);
		pack->at += field->bytes;
		return true;
	}
}

/* False: the buffer is too small, or the event is too large for any. */
INLINE bool pack_all(struct pack *pack, uint8_t *buffer, uint64_t room, struct ky_slot *slot,
		     const struct ky_event *event, const uint64_t *values, struct ky_place place)
{
	pack->at = pack->from = buffer;
	pack->end = buffer + room;
	pack->n_parts = 0;
	pack->n_cut = 0;
	pack->has_rseq = slot->ring.rseq_buffers != 0;
	if (slot->n_contexts) {
		if (slot->context_bytes > room)
			return false;
		pack->at += ky_contexts_put(slot, buffer, place);
	}
	for (uint32_t i = 0; i < event->n_fields; i++) {
		if (!pack_field(pack, &event->fields[i], values))
			return false;
	}
	return true;
}

INLINE void send_packed(struct pack *pack, struct ky_reservation *reservation)
{
	if (__builtin_expect(pack->n_cut != 0, 0))
		__atomic_fetch_add(&reservation->slot->blob->cut_texts, pack->n_cut,
				   __ATOMIC_RELAXED);
	if (!pack->n_parts) {
		ky_record_payload(reservation, pack->from, (uint64_t)(pack->at - pack->from));
		return;
	}
	end_part(pack);
	write_parts(reservation, pack->parts, pack->n_parts);
}

static __attribute__((noinline)) void record_large(struct ky_reservation *reservation,
						   const struct ky_event *event,
						   const uint64_t *values, struct ky_place place)
{
	uint8_t buffer[LARGE_BYTES + 8];
	struct pack pack;

	if (pack_all(&pack, buffer, LARGE_BYTES, reservation->slot, event, values, place)) {
		send_packed(&pack, reservation);
		return;
	}
	__atomic_fetch_add(&reservation->slot->blob->lost_large, 1, __ATOMIC_RELAXED);
}

void ky_record_any(struct ky_reservation *reservation, const struct ky_event *event,
		   const uint64_t *values, struct ky_place place)
{
	_Alignas(8) uint8_t buffer[SMALL_BYTES + 8];
	struct pack pack;

	if (__builtin_expect(
		    pack_all(&pack, buffer, SMALL_BYTES, reservation->slot, event, values, place),
		    1))
		send_packed(&pack, reservation);
	else
		record_large(reservation, event, values, place);
}
