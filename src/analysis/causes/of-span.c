/* SPDX-License-Identifier: MIT */
#include "analysis/causes/of-span.h"

/* A span of a thread is the period between two events with its name. */
void ky_of_define_span(struct ky_strbuf *text, const char *name)
{
	static const char *const ends[][4] = {{"begin", "entry", "start", "enter"},
					      {"end", "exit", "done", "leave"}};

	ky_strbuf_adds(text, "span");
	for (size_t i = 0; i < 2; i++) {
		ky_strbuf_adds(text, " : ");
		for (size_t j = 0; j < 4; j++) {
			ky_strbuf_adds(text, j ? " || $event == \"" : "$event == \"");
			for (const char *c = name; *c; c++) {
				if (*c == '"' || *c == '\\')
					ky_strbuf_addc(text, '\\');
				ky_strbuf_addc(text, *c);
			}
			ky_strbuf_addf(text, "_%s\"", ends[i][j]);
		}
	}
	ky_strbuf_adds(text, " : by $thread");
}
