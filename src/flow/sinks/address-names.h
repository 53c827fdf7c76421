/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses in the output of sinks: which fields hold addresses of code, and the source of their names.
 *
 * Fields: the contexts ip, callstack_kernel and callstack_user of LTTng and Kymo, and fields with the kernel's functions (the
 * function of a timer, the caller of an allocation), and the functions of libkymo-cyg-profile.
 */
#ifndef KY_FLOW_SINKS_ADDRESS_NAMES_H
#define KY_FLOW_SINKS_ADDRESS_NAMES_H

#include "base/strbuf.h"
#include "ctf/decode/decode.h"

struct ky_address_names {
	/*
	 * Appends the name of @address, a field of @event: "main+0x1c shop.c:34"; nothing where none is known. @is_return: a
	 * return address. Threads: any.
	 */
	void (*put)(void *data, const struct ky_event *event, uint64_t address, bool is_return,
		    struct ky_strbuf *out);
	void *data;
};

/* Is member @name, with class @field, of @scope an address of code, or an array of such? */
bool ky_address_is_field(const struct ky_event_class *event, enum ky_scope scope, const char *name,
			 const struct ky_field_class *field);
/* Has @scope of @event such a member? */
bool ky_address_in_scope(const struct ky_event_class *event, enum ky_scope scope);

/* Appends the name of @value, element @i of an array (0: or a single field), after " (", with ")" behind it. */
void ky_address_put(const struct ky_address_names *names, const struct ky_event *event,
		    const struct ky_value *value, uint32_t i, struct ky_strbuf *out);

#endif
