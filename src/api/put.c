/* SPDX-License-Identifier: MIT */
/* Event definitions as programs: api/writer.h. */
#include "api/writer.h"
#include "base/error.h"

struct compiler {
	struct kymo_event_def *event;
	struct kymo_error *err;
};

static int push(struct compiler *c, const struct ky_put_step *step)
{
	return ky_vec_push(&c->event->steps, *step) < 0 ? ky_error_nomem(c->err) : KYMO_OK;
}

static int compile(struct compiler *c, const struct ky_field_class *cls, const char *name);

static int compile_array(struct compiler *c, const struct ky_field_class *cls, const char *name)
{
	struct ky_put_step step = {.put = KY_PUT_ARRAY, .name = name};
	uint32_t begin = (uint32_t)c->event->steps.len;
	int ret;

	if (!cls->array.element)
		return ky_error_set(c->err, KYMO_E_INVALID, "event '%s': array '%s' has no element",
				    c->event->cls->name, name);
	if (cls->array.length_ref)
		step.put = KY_PUT_SEQUENCE;
	else
		step.n = (uint32_t)cls->array.length;
	ret = push(c, &step);
	if (ret == KYMO_OK)
		ret = compile(c, cls->array.element, name);
	if (ret < 0)
		return ret;
	if (c->event->steps.len == begin + 1)
		return ky_error_set(c->err, KYMO_E_INVALID,
				    "event '%s': the elements of array '%s' are empty",
				    c->event->cls->name, name);
	c->event->steps.data[begin].end = (uint32_t)c->event->steps.len;
	step = (struct ky_put_step){.put = KY_PUT_END, .name = name};
	return push(c, &step);
}

/* The length of a sequence has no step of its own: KY_PUT_SEQUENCE writes it. */
static bool is_length(const struct ky_field_class *st, size_t i)
{
	const struct ky_field_class *next =
		i + 1 < st->st.n_members ? st->st.members[i + 1].cls : NULL;

	return next && next->kind == KY_FIELD_ARRAY && next->array.length_ref &&
	       next->array.length_ref->target == st->st.members[i].cls;
}

static int compile_struct(struct compiler *c, const struct ky_field_class *cls)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < cls->st.n_members && ret == KYMO_OK; i++) {
		if (!is_length(cls, i))
			ret = compile(c, cls->st.members[i].cls, cls->st.members[i].display);
	}
	return ret;
}

/* Depth is bounded by KY_DEFINE_MAX_DEPTH. */
static int compile(struct compiler *c, const struct ky_field_class *cls, const char *name)
{
	struct ky_put_step step = {.name = name};

	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		return compile_struct(c, cls);
	case KY_FIELD_ARRAY:
		return compile_array(c, cls, name);
	case KY_FIELD_STRING:
		step.put = KY_PUT_STRING;
		break;
	case KY_FIELD_TEXT:
		step.put = KY_PUT_CHARS;
		step.n = (uint32_t)cls->text.length_bytes;
		break;
	default:
		step.put = cls->kind == KY_FIELD_FLOAT ? KY_PUT_FLOAT : KY_PUT_INT;
		step.size_bytes = (uint8_t)(cls->num.length_bits / 8);
		step.is_signed = cls->kind == KY_FIELD_SINT;
	}
	return push(c, &step);
}

int ky_put_compile(struct kymo_writer *writer, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&writer->events, event) {
		struct compiler c = {.event = *event, .err = err};
		const struct ky_field_class *scopes[] = {(*event)->cls->stream->event_context,
							 (*event)->cls->context,
							 (*event)->cls->payload};

		for (size_t i = 0; i < 3 && ret == KYMO_OK; i++) {
			if (scopes[i])
				ret = compile(&c, scopes[i], "");
		}
	}
	return ret;
}
