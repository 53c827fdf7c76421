/* SPDX-License-Identifier: MIT */
/* Field values as JSON, as sink.h describes them. */
#ifndef KY_FLOW_SINKS_JSON_VALUE_H
#define KY_FLOW_SINKS_JSON_VALUE_H

#include "base/strbuf.h"
#include "ctf/decode/decode.h"

/*
 * @data in quotes, with escapes, also of what a terminal would obey (base/foreign.h); what is no UTF-8 becomes
 * U+FFFD.
 */
void ky_json_text(struct ky_strbuf *out, const char *data, size_t len);

/* Write @value with all that it contains, and return the value behind it. */
const struct ky_value *ky_json_value(struct ky_strbuf *out, const struct ky_value *value);

#endif
