/* SPDX-License-Identifier: MIT */
/*
 * An event's payload: what the operations of its plan make of a record. Dynamic fields are measured first, so that
 * room is made for the whole event at once.
 */
#include "kernel/convert/convert-record.h"

#include "base/word.h"

/* Where a dynamic field lies; empty when it points outside of the record. */
static const uint8_t *locate(const struct ky_convert_record *record, const struct ky_convert_op *op,
			     uint32_t *len)
{
	uint32_t word, at;

	if (op->code == KY_OP_STRING && op->len) {
		*len = record->len > op->src ? record->len - op->src : 0;
		return record->data + (*len ? op->src : 0);
	}
	word = ky_record_word(record->data + op->src);
	at = word & 0xffff;
	*len = word >> 16;
	if (op->relative)
		at += op->src + 4u;
	if (at > record->len || *len > record->len - at) {
		*len = 0;
		return record->data;
	}
	return record->data + at;
}

static uint32_t string_len(const uint8_t *text, uint32_t len)
{
	return (uint32_t)strnlen((const char *)text, len);
}

uint32_t ky_convert_measure(const struct ky_convert_plan *plan,
			    const struct ky_convert_record *record, uint32_t *lens)
{
	uint32_t total = 0, n = 0, len;

	for (uint32_t i = 0; i < plan->n_ops; i++) {
		const struct ky_convert_op *op = &plan->ops[i];
		const uint8_t *data;

		if (op->code == KY_OP_STRING) {
			data = locate(record, op, &len);
			len = string_len(data, len);
			total += len + 1;
		} else if (op->code == KY_OP_SEQUENCE) {
			locate(record, op, &len);
			len -= len % op->len;
			total += len;
		} else if (op->code == KY_OP_ADDRESS) {
			len = ky_word_hex_digits(ky_record_long(record->data + op->src));
			total += len + 3;
		} else if (op->code == KY_OP_CONTENT) {
			if (ky_content_text(record->content, op->len, &len)) {
				total += len + 1;
			} else {
				len = ky_word_hex_digits(ky_record_long(record->data + op->src));
				total += len + 3;
			}
		} else if (op->code == KY_OP_CONTENT_TAIL) {
			len = ky_content_tail_bytes(plan->content, record->content);
			total += len;
		} else {
			continue;
		}
		lens[n++] = len;
	}
	return total;
}

static uint8_t *put_pid(const struct ky_convert_cpu *cpu, uint8_t *out, uint32_t tid)
{
	struct ky_threads *threads = cpu->convert->threads;
	struct ky_thread *thread = threads ? ky_threads_get(threads, (int32_t)tid) : NULL;
	int32_t pid = thread ? thread->pid : (int32_t)tid;

	return ky_put_bytes(out, &pid, 4);
}

static uint8_t *put_comm(const struct ky_convert_record *record, const struct ky_convert_op *op,
			 uint8_t *out)
{
	uint32_t len;
	const uint8_t *text = locate(record, op, &len);

	memset(out, 0, KY_EVENT_COMM_BYTES);
	memcpy(out, text, string_len(text, len < KY_EVENT_COMM_BYTES ? len : KY_EVENT_COMM_BYTES));
	return out + KY_EVENT_COMM_BYTES;
}

static uint8_t *convert_fields_put_address(uint8_t *out, uint64_t value, uint32_t digits)
{
	*out++ = '0';
	*out++ = 'x';
	out = (uint8_t *)ky_word_put_hex((char *)out, value, digits, false);
	*out++ = '\0';
	return out;
}

/* A text that could not be read, or was lost: its address stands there, as without content. */
static uint8_t *put_content(const struct ky_convert_record *record, const struct ky_convert_op *op,
			    uint8_t *out, uint32_t len)
{
	uint32_t ignored;
	const char *text = ky_content_text(record->content, op->len, &ignored);

	if (!text)
		return convert_fields_put_address(out, ky_record_long(record->data + op->src), len);
	out = ky_put_bytes(out, text, len);
	*out++ = '\0';
	return out;
}

static uint8_t *convert_fields_put_sequence(const struct ky_convert_record *record,
					    const struct ky_convert_op *op, uint8_t *out,
					    uint32_t len)
{
	uint32_t ignored, elements = len / op->len;
	const uint8_t *data = locate(record, op, &ignored);

	out = ky_put_bytes(out, &elements, 4);
	return ky_put_bytes(out, data, len);
}

uint8_t *ky_convert_put_fields(const struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			       const struct ky_convert_record *record, const uint32_t *lens,
			       uint8_t *out)
{
	const struct ky_convert_op *op = plan->ops;
	const uint8_t *from = record->data;
	uint32_t value, ignored;

	/* Counted, not compared with an end: a plan without operations has no array. */
	for (uint32_t left = plan->n_ops; left; left--, op++) {
		switch ((enum ky_op)op->code) {
		case KY_OP_COPY4:
			out = ky_put_bytes(out, from + op->src, 4);
			break;
		case KY_OP_COPY8:
			out = ky_put_bytes(out, from + op->src, 8);
			break;
		case KY_OP_COPY16:
			out = ky_put_bytes(out, from + op->src, 16);
			break;
		case KY_OP_COPY:
			out = ky_copy_bytes(out, from + op->src, op->len);
			break;
		case KY_OP_ADD:
			/* From the record: the copy in the output is still on its way to the cache. */
			value = ky_record_word(from + op->src) + (uint32_t)op->add;
			memcpy(out - op->len, &value, 4);
			break;
		case KY_OP_RWBS:
			value = ky_rwbs_mask((const char *)from + op->src, op->len);
			out = ky_put_bytes(out, &value, 4);
			break;
		case KY_OP_TID:
			out = ky_put_bytes(out, &record->tid, 4);
			break;
		case KY_OP_PID:
			out = put_pid(cpu, out, ky_record_word(from + op->src));
			break;
		case KY_OP_COMM:
			out = put_comm(record, op, out);
			break;
		case KY_OP_ADDRESS:
			out = convert_fields_put_address(out, ky_record_long(from + op->src),
							 *lens++);
			break;
		case KY_OP_CONTENT:
			out = put_content(record, op, out, *lens++);
			break;
		case KY_OP_CONTENT_TAIL:
			out = ky_content_put_tail(plan->content, record->content, out);
			lens++;
			break;
		case KY_OP_STRING:
			out = ky_put_bytes(out, locate(record, op, &ignored), *lens++);
			*out++ = '\0';
			break;
		case KY_OP_SEQUENCE:
			out = convert_fields_put_sequence(record, op, out, *lens++);
			break;
		}
	}
	return out;
}
