/* SPDX-License-Identifier: MIT */
/* Field values as JSON; see sink.h. */
#ifndef KY_FLOW_SINKS_JSON_VALUE_H
#define KY_FLOW_SINKS_JSON_VALUE_H

#include "base/strbuf.h"
#include "ctf/decode/decode.h"

/*
 * Writes @data in quotes, with escapes, also for characters that a terminal would obey
 * (base/foreign.h). U+FFFD replaces bytes that are not UTF-8.
 */
void ky_json_text(struct ky_strbuf *out, const char *data, size_t len);

/* Writes @value with all its children. Returns the value after it. */
const struct ky_value *ky_json_value(struct ky_strbuf *out, const struct ky_value *value);

#endif
