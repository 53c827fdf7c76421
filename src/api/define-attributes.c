/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: attributes of definitions. */
#include <string.h>

#include "api/writer.h"
#include "ctf/ctf2/attributes.h"

/* Set *@attributes of @what; @event: the event that has them, or NULL. */
static void set(struct kymo_writer *writer, const char *what, const char *json,
		struct ky_event_class *event, const char **attributes)
{
	struct kymo_error err;
	int ret;

	if (ky_define_is_closed(writer, what))
		return;
	if (writer->options.format != KYMO_FORMAT_CTF_2) {
		ky_define_mistake(writer, KYMO_E_UNSUPPORTED,
				  "%s: CTF 1.8 has no attributes; KYMO_FORMAT_CTF_2 has", what);
		return;
	}
	if (!json) {
		ky_define_mistake(writer, KYMO_E_INVALID, "%s: the attributes are NULL", what);
		return;
	}
	ret = ky_attributes_parse(&writer->trace->arena, json, event, attributes, &err);
	if (ret == KYMO_E_MEMORY)
		ky_define_no_memory(writer);
	else if (ret < 0)
		ky_define_mistake(writer, KYMO_E_INVALID, "%s: attributes:%u:%u: %s", what,
				  err.line, err.column, err.message);
}

void kymo_writer_set_attributes(struct kymo_writer *writer, const char *json)
{
	if (writer)
		set(writer, "trace", json, NULL, &writer->trace->attributes);
}

void kymo_clock_def_set_attributes(struct kymo_clock_def *clock, const char *json)
{
	if (clock)
		set(clock->writer, "clock", json, NULL, &clock->cls->attributes);
}

void kymo_stream_def_set_attributes(struct kymo_stream_def *stream, const char *json)
{
	if (stream)
		set(stream->writer, "stream", json, NULL, &stream->cls->attributes);
}

void kymo_event_def_set_attributes(struct kymo_event_def *event, const char *json)
{
	if (event)
		set(event->stream->writer, event->cls->name, json, event->cls,
		    &event->cls->attributes);
}

/* What @fields and @name mean, or NULL. */
static struct ky_field_class *define_attributes_find(const struct kymo_fields *fields,
						     const char *name)
{
	struct ky_field_class *cls = fields->cls;

	if (cls->kind == KY_FIELD_ARRAY)
		return cls->array.element;
	if (cls->kind != KY_FIELD_STRUCT)
		return cls->var.options[fields->option].cls;
	for (size_t i = 0; name && i < cls->st.n_members; i++) {
		if (!strcmp(cls->st.members[i].display, name))
			return cls->st.members[i].cls;
	}
	return name ? NULL : cls;
}

void kymo_fields_set_attributes(struct kymo_fields *fields, const char *name, const char *json)
{
	struct ky_field_class *cls = fields ? define_attributes_find(fields, name) : NULL;

	if (!fields)
		return;
	if (!name)
		name = fields->name;
	if (cls)
		set(fields->writer, name, json, NULL, &cls->attributes);
	else
		ky_define_mistake(fields->writer, KYMO_E_INVALID,
				  "there is no field '%s' to have attributes", name);
}
