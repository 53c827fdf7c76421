/* SPDX-License-Identifier: MIT */
/* Event definitions as programs: api/writer.h. */
#include "api/writer.h"
#include "base/error.h"
#include "ctf/model/walk.h"

struct compiler {
	struct kymo_event_def *event;
	struct kymo_error *err;
};

static int event_program_compile(struct compiler *c, const struct ky_field_class *cls,
				 const char *name);

static int event_program_push(struct compiler *c, enum ky_put put, const struct ky_field_class *cls,
			      const char *name)
{
	const struct ky_field_ref *ref = cls ? ky_field_ref_of(cls) : NULL;
	struct ky_put_step step = {
		.put = put, .cls = cls, .name = name, .before = ref ? ref->target : NULL};

	return ky_vec_push(&c->event->steps, step) < 0 ? ky_error_nomem(c->err) : KYMO_OK;
}

static struct ky_put_step *step_at(struct compiler *c, size_t i)
{
	return &c->event->steps.data[i];
}

static int event_program_wrong(struct compiler *c, const char *what, const char *name,
			       const char *problem)
{
	return ky_error_set(c->err, KYMO_E_INVALID, "event '%s': %s '%s' %s", c->event->cls->name,
			    what, name, problem);
}

/* Can a field of @cls take no bit at all? An array of such elements could be endless. */
static bool event_program_is_empty(const struct ky_field_class *cls)
{
	if (cls->kind == KY_FIELD_ARRAY)
		return !cls->array.length_ref && !cls->array.length;
	if (cls->kind != KY_FIELD_STRUCT)
		return false;
	for (size_t i = 0; i < cls->st.n_members; i++) {
		if (!event_program_is_empty(cls->st.members[i].cls))
			return false;
	}
	return true;
}

/* The steps of @cls and their end, inside of step @at. */
static int compile_inner(struct compiler *c, const struct ky_field_class *cls, size_t at,
			 const char *name)
{
	int ret = event_program_compile(c, cls, name);

	if (ret == KYMO_OK)
		ret = event_program_push(c, KY_PUT_END, NULL, name);
	step_at(c, at)->end = (uint32_t)c->event->steps.len;
	return ret;
}

static int compile_array(struct compiler *c, const struct ky_field_class *cls, const char *name)
{
	size_t at = c->event->steps.len;
	int ret;

	if (!cls->array.element)
		return event_program_wrong(c, "array", name, "has no element");
	if (event_program_is_empty(cls->array.element))
		return ky_error_set(c->err, KYMO_E_INVALID,
				    "event '%s': the elements of array '%s' are empty",
				    c->event->cls->name, name);
	ret = event_program_push(c, cls->array.length_ref ? KY_PUT_SEQUENCE : KY_PUT_ARRAY, cls,
				 name);
	if (ret < 0)
		return ret;
	step_at(c, at)->n = (uint32_t)cls->array.length;
	return compile_inner(c, cls->array.element, at, name);
}

static int compile_variant(struct compiler *c, const struct ky_field_class *cls, const char *name)
{
	size_t at = c->event->steps.len;
	uint32_t *options;
	int ret = KYMO_OK;

	if (!cls->var.n_options)
		return event_program_wrong(c, "variant", name, "has no options");
	options = ky_arena_array(&c->event->stream->writer->trace->arena, cls->var.n_options,
				 sizeof(*options));
	if (!options)
		return ky_error_nomem(c->err);
	ret = event_program_push(
		c, cls->kind == KY_FIELD_VARIANT ? KY_PUT_VARIANT : KY_PUT_OPTIONAL, cls, name);
	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++) {
		options[i] = (uint32_t)c->event->steps.len;
		if (cls->var.options[i].cls)
			ret = compile_inner(c, cls->var.options[i].cls, at, name);
		else
			ret = event_program_wrong(c, "variant or optional field", name,
						  "has an option without a field");
	}
	if (ret < 0)
		return ret;
	step_at(c, at)->options = options;
	step_at(c, at)->n = (uint32_t)cls->var.n_options;
	return KYMO_OK;
}

/* A field before it contains its length or selector: that field has no step of its own. */
static bool is_companion(const struct ky_field_class *st, size_t i)
{
	const struct ky_field_class *next =
		i + 1 < st->st.n_members ? st->st.members[i + 1].cls : NULL;
	const struct ky_field_ref *ref = next ? ky_field_ref_of(next) : NULL;

	return ref && ref->target == st->st.members[i].cls;
}

static int compile_struct(struct compiler *c, const struct ky_field_class *cls, const char *name)
{
	size_t at = c->event->steps.len;
	int ret = event_program_push(c, KY_PUT_STRUCT, cls, name);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < cls->st.n_members && ret == KYMO_OK; i++) {
		if (!is_companion(cls, i))
			ret = event_program_compile(c, cls->st.members[i].cls,
						    cls->st.members[i].display);
	}
	if (ret == KYMO_OK)
		ret = event_program_push(c, KY_PUT_END, NULL, name);
	step_at(c, at)->end = (uint32_t)c->event->steps.len;
	return ret;
}

/* Depth is bounded by KY_DEFINE_MAX_DEPTH. */
static int event_program_compile(struct compiler *c, const struct ky_field_class *cls,
				 const char *name)
{
	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		return compile_struct(c, cls, name);
	case KY_FIELD_ARRAY:
		return compile_array(c, cls, name);
	case KY_FIELD_VARIANT:
	case KY_FIELD_OPTIONAL:
		return compile_variant(c, cls, name);
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		return event_program_push(c, KY_PUT_TEXT, cls, name);
	case KY_FIELD_BLOB:
		return event_program_push(c, KY_PUT_BYTES, cls, name);
	case KY_FIELD_FLOAT:
		return event_program_push(c, KY_PUT_REAL, cls, name);
	default:
		return event_program_push(c, KY_PUT_NUMBER, cls, name);
	}
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
				ret = event_program_compile(&c, scopes[i], "");
		}
	}
	return ret;
}
