/* SPDX-License-Identifier: MIT */
/*
 * Attributes (CTF 2): what a producer says of classes beyond what reading needs. They are kept as one
 * line of JSON, an object by namespace, in the form that they are written in.
 */
#ifndef KY_CTF_CTF2_ATTRIBUTES_H
#define KY_CTF_CTF2_ATTRIBUTES_H

#include "base/strbuf.h"
#include "ctf/json/json.h"
#include "ctf/model/model.h"

/* More than so many bytes of them a trace does not have, each alias counted where it is used. */
#define KY_ATTRIBUTE_BYTES_MAX (UINT64_C(64) << 20)

/* Attributes that LTTng defined: "log-level", "emf-uri". */
#define KY_CTF2_LTTNG_NAMESPACE "lttng.org,2009"

/*
 * Keep @object in @arena. NULL, what is no object, and an empty one give NULL in *text. LTTng's log level
 * and EMF URI of an event class become those of @event (NULL: not an event class), and are no attributes then.
 * @object is changed. 0 or KYMO_E_MEMORY.
 */
int ky_attributes_keep(struct ky_arena *arena, struct ky_json *object, struct ky_event_class *event,
		       const char **text);

/*
 * The same from a text that somebody gives. KYMO_E_FORMAT (it is no JSON object; line and column) or
 * KYMO_E_LIMIT (nested too deep).
 */
int ky_attributes_parse(struct ky_arena *arena, const char *given, struct ky_event_class *event,
			const char **text, struct kymo_error *err);

/*
 * Append the attributes of @event, log level and EMF URI among them, as the value of "attributes". It
 * has some.
 */
void ky_attributes_of_event(struct ky_strbuf *out, const struct ky_event_class *event);

#endif
