/* SPDX-License-Identifier: MIT */
#include "flow/sinks/address-names.h"

#include <string.h>

/* Fields with functions, of the kernel mostly: the beginning of the events' names, and the field. */
static const struct {
	const char *event, *field;
} function_fields[] = {
	{"timer_", "function"},
	{"hrtimer_", "function"},
	{"workqueue_", "function"},
	{"kmem_", "call_site"},
	{"kmalloc", "call_site"},
	{"kfree", "call_site"},
	{"skb_", "location"},
	{"kfree_skb", "location"},
	{"consume_skb", "location"},
	{"kmem_cache_", "caller"},
	{"x86_exceptions_", "ip"},
	{"page_fault_", "ip"},
	{"power_suspend", "callback"},
	{"rpm_", "callback"},
	{"lttng_ust_cyg_profile", "addr"},
	{"lttng_ust_cyg_profile", "call_site"},
};

static const char *plain(const char *name)
{
	return *name == '_' ? name + 1 : name;
}

static bool is_word(const struct ky_field_class *field)
{
	return (field->kind == KY_FIELD_UINT || field->kind == KY_FIELD_SINT) &&
	       field->num.length_bits >= 32 && field->num.length_bits <= 64;
}

static bool is_function_field(const char *event, const char *name)
{
	for (size_t i = 0; i < sizeof(function_fields) / sizeof(function_fields[0]); i++)
		if (strcmp(name, function_fields[i].field) == 0 &&
		    strncmp(event, function_fields[i].event, strlen(function_fields[i].event)) == 0)
			return true;
	return false;
}

bool ky_address_is_field(const struct ky_event_class *event, enum ky_scope scope, const char *name,
			 const struct ky_field_class *field)
{
	name = name ? plain(name) : "";
	if (field->kind == KY_FIELD_ARRAY)
		return is_word(field->array.element) && (strcmp(name, "callstack_kernel") == 0 ||
							 strcmp(name, "callstack_user") == 0);
	if (!is_word(field))
		return false;
	if (scope != KY_SCOPE_PAYLOAD)
		return strcmp(name, "ip") == 0;
	return is_function_field(event->name ? event->name : "", name);
}

bool ky_address_in_scope(const struct ky_event_class *event, enum ky_scope scope)
{
	const struct ky_field_class *root = ky_scope_root(event, scope);

	for (size_t i = 0; root && i < root->st.n_members; i++)
		if (ky_address_is_field(event, scope, root->st.members[i].display,
					root->st.members[i].cls))
			return true;
	return false;
}

void ky_address_put(const struct ky_address_names *names, const struct ky_event *event,
		    const struct ky_value *value, uint32_t i, struct ky_strbuf *out)
{
	size_t before = out->len;
	uint64_t address = value->u;

	if (value->cls->num.length_bits == 32)
		address = (uint32_t)address;
	ky_strbuf_adds(out, " (");
	names->put(names->data, event, address, i > 0, out);
	if (out->len == before + 2)
		out->len = before;
	else
		ky_strbuf_addc(out, ')');
}
