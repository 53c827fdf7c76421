/* SPDX-License-Identifier: MIT */
/* Names: of fields, options, clocks and environment entries, as CTF 1.8 allows them. */
#include <string.h>

#include "base/error.h"
#include "ctf/resolve/resolve.h"
#include "ctf/metadata/downgrade-internal.h"
#include "ctf/tsdl/tsdl-lex.h"
#include "ctf/model/walk.h"

static const char *downgrade_names_role_name(enum ky_scope scope, enum ky_role role)
{
	switch (role) {
	case KY_ROLE_MAGIC:
		return "magic";
	case KY_ROLE_TRACE_UUID:
		return "uuid";
	case KY_ROLE_STREAM_CLASS_ID:
		return "stream_id";
	case KY_ROLE_STREAM_ID:
		return "stream_instance_id";
	case KY_ROLE_PACKET_SIZE:
		return "packet_size";
	case KY_ROLE_CONTENT_SIZE:
		return "content_size";
	case KY_ROLE_CLOCK_BEGIN:
		return scope == KY_SCOPE_EVENT_HEADER ? "timestamp" : "timestamp_begin";
	case KY_ROLE_CLOCK_END:
		return "timestamp_end";
	case KY_ROLE_DISCARDED:
		return "events_discarded";
	case KY_ROLE_SEQUENCE:
		return "packet_seq_num";
	case KY_ROLE_EVENT_ID:
		return "id";
	case KY_ROLE_CPU_ID:
		return "cpu_id";
	default:
		return NULL;
	}
}

/* A field called so has that role in CTF 1.8, wanted or not. */
static bool is_role_name(enum ky_scope scope, const char *name)
{
	static const char *const names[][9] = {
		[KY_SCOPE_PACKET_HEADER] = {"magic", "uuid", "stream_id", "stream_instance_id",
					    NULL},
		[KY_SCOPE_PACKET_CONTEXT] = {"packet_size", "content_size", "timestamp_begin",
					     "timestamp_end", "events_discarded", "packet_seq_num",
					     NULL},
		[KY_SCOPE_EVENT_HEADER] = {"id", "timestamp", NULL},
	};

	for (size_t i = 0; scope <= KY_SCOPE_EVENT_HEADER && names[scope][i]; i++) {
		if (strcmp(names[scope][i], name) == 0)
			return true;
	}
	return false;
}

/*
 * The name that is displayed as @name. In payloads and contexts a '_' stands before all of
 * them, as LTTng writes them; elsewhere only where it must.
 */
static const char *downgrade_names_plain_name(struct ky_downgrade *l, const char *name, bool always)
{
	if (!always && name[0] != '_' && ky_tsdl_is_name(name))
		return name;
	return ky_arena_printf(&l->trace->arena, "_%s", name);
}

/* ---- names that no other has ---------------------------------------------------------------- */

static int downgrade_names_give(struct ky_downgrade *l, struct ky_downgrade_names *names,
				const char *name)
{
	return ky_names_set(&names->given, name, names) < 0 ? ky_error_nomem(l->err) : KYMO_OK;
}

static int know_members(struct ky_downgrade *l, struct ky_downgrade_names *names,
			const struct ky_field_class *st)
{
	int ret = KYMO_OK;

	if (names->known)
		return KYMO_OK;
	names->known = true;
	for (size_t i = 0; i < st->st.n_members && ret == KYMO_OK; i++)
		ret = downgrade_names_give(l, names, st->st.members[i].display);
	return ret;
}

/* Letters, digits and '_' stay, the rest becomes '_'. */
static char *letters_of(struct ky_downgrade *l, const char *text)
{
	char *name = ky_arena_strdup(&l->trace->arena, text);

	for (char *c = name; c && *c; c++) {
		if (!(*c >= '0' && *c <= '9') && !((*c | 32) >= 'a' && (*c | 32) <= 'z'))
			*c = '_';
	}
	return name;
}

#define UNDERSCORES_MAX 3

/* @name, or with one more '_' until it is like no other, or with a number. NULL: no memory. */
static const char *unique_name(struct ky_downgrade *l, const struct ky_downgrade_names *names,
			       const char *name, bool no_role, size_t number)
{
	const char *one = name;

	for (size_t i = 0; one; i++) {
		if (*one && !(no_role && is_role_name(l->scope, one)) &&
		    !ky_names_get(&names->given, one))
			return one;
		if (i < UNDERSCORES_MAX)
			one = ky_arena_printf(&l->trace->arena, "%s_", one);
		else
			one = ky_arena_printf(&l->trace->arena, "%s_%zu", name, number++);
	}
	return NULL;
}

/* @text as a name that is not given yet; it is then. */
static int other_name(struct ky_downgrade *l, struct ky_downgrade_names *names, const char *text,
		      bool no_role, size_t number, const char **name)
{
	*name = letters_of(l, text);
	if (*name)
		*name = unique_name(l, names, *name, no_role, number);
	return *name ? downgrade_names_give(l, names, *name) : ky_error_nomem(l->err);
}

static void note_renamed(struct ky_downgrade *l, const char *path, const char *name)
{
	struct ky_strbuf *out = &l->notes->renamed;

	ky_strbuf_addf(out, "%s'%s' is called '%s'", out->len ? ", " : "", path, name);
}

/* ---- members -------------------------------------------------------------------------------- */

int ky_downgrade_member_name(struct ky_downgrade *l, const struct ky_field_class *parent,
			     size_t index, struct ky_downgrade_names *names)
{
	struct ky_member *member = &parent->st.members[index];
	const char *role = downgrade_names_role_name(l->scope, member->cls->role);
	bool always = l->scope > KY_SCOPE_EVENT_HEADER;
	int ret;

	if (role && !always) {
		member->name = role;
		return KYMO_OK;
	}
	member->name = downgrade_names_plain_name(l, member->display, always);
	if (!member->name)
		return ky_error_nomem(l->err);
	if (ky_tsdl_is_name(member->name) &&
	    !(is_role_name(l->scope, member->display) && ky_field_is_num(member->cls)))
		return KYMO_OK;
	ret = know_members(l, names, parent);
	if (ret == KYMO_OK)
		ret = other_name(l, names, member->display, true, index, &member->display);
	if (ret < 0)
		return ret;
	note_renamed(l, ky_strbuf_text(&l->path), member->display);
	member->name = downgrade_names_plain_name(l, member->display, always);
	return member->name ? KYMO_OK : ky_error_nomem(l->err);
}

static int copy_name(struct ky_downgrade *l, struct ky_member *member, size_t index, const char *of,
		     const char *what, struct ky_downgrade_names *names)
{
	struct ky_strbuf *out = &l->notes->added;
	const char *name = ky_arena_printf(&l->trace->arena, "%s_%s", of, what);
	int ret = name ? other_name(l, names, name, true, index, &member->display)
		       : ky_error_nomem(l->err);

	if (ret < 0)
		return ret;
	member->name =
		downgrade_names_plain_name(l, member->display, l->scope > KY_SCOPE_EVENT_HEADER);
	if (!member->name)
		return ky_error_nomem(l->err);
	ky_strbuf_addf(out, "%s'%s.%s'", out->len ? ", " : "", ky_strbuf_text(&l->path),
		       member->display);
	return KYMO_OK;
}

int ky_downgrade_copy_names(struct ky_downgrade *l, const struct ky_field_class *parent,
			    const char *of, struct ky_member *members, size_t first,
			    const struct ky_downgrade_copy *copies, size_t n,
			    struct ky_downgrade_names *names)
{
	int ret = know_members(l, names, parent);

	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		ret = copy_name(l, &members[i], first + i, of, copies[i].what, names);
	return ret;
}

/* ---- options -------------------------------------------------------------------------------- */

static int option_name(struct ky_downgrade *l, struct ky_option *option, size_t index,
		       struct ky_downgrade_names *names)
{
	int ret;

	/* CTF 2 need not name options, and does not show their names: any do. */
	if (!option->display)
		option->display = ky_arena_printf(&l->trace->arena, "option_%zu", index);
	if (!option->display)
		return ky_error_nomem(l->err);
	option->name = downgrade_names_plain_name(l, option->display, false);
	if (!option->name)
		return ky_error_nomem(l->err);
	if (ky_tsdl_is_name(option->name) && !ky_names_get(&names->given, option->display))
		return downgrade_names_give(l, names, option->display);
	ret = other_name(l, names, option->display, false, index, &option->display);
	if (ret < 0)
		return ret;
	option->name = downgrade_names_plain_name(l, option->display, false);
	return option->name ? KYMO_OK : ky_error_nomem(l->err);
}

int ky_downgrade_option_names(struct ky_downgrade *l, struct ky_field_class *variant)
{
	struct ky_downgrade_names names = {.known = true};
	int ret = KYMO_OK;

	ky_names_init(&names.given);
	for (size_t i = 0; i < variant->var.n_options && ret == KYMO_OK; i++)
		ret = option_name(l, &variant->var.options[i], i, &names);
	ky_names_fini(&names.given);
	return ret;
}

/* ---- clocks, environment -------------------------------------------------------------------- */

int ky_downgrade_clock_names(struct ky_downgrade *l)
{
	for (size_t i = 0; i < l->trace->clocks.len; i++) {
		struct ky_clock_class *clock = l->trace->clocks.data[i];

		/* LTTng's "monotonic" counts from the Unix epoch, whatever else is said. */
		if (ky_tsdl_is_name(clock->name) &&
		    (clock->is_unix_epoch || !ky_clock_is_lttng_monotonic(l->trace, clock)))
			continue;
		clock->name = ky_arena_printf(&l->trace->arena, "clock_%zu", i);
		if (!clock->name)
			return ky_error_nomem(l->err);
	}
	return KYMO_OK;
}

static int env_name(struct ky_downgrade *l, struct ky_env *env, size_t index,
		    struct ky_downgrade_names *names)
{
	const char *name = env->name, *text;

	text = letters_of(l, name);
	/* No '_' is left out of these names: it stands only before what would be no name. */
	if (text && !ky_tsdl_is_name(text))
		text = ky_arena_printf(&l->trace->arena, "_%s", text);
	env->name = text ? unique_name(l, names, text, false, index) : NULL;
	if (!env->name)
		return ky_error_nomem(l->err);
	text = ky_arena_printf(&l->trace->arena, "env.%s", name);
	if (!text)
		return ky_error_nomem(l->err);
	note_renamed(l, text, env->name);
	return downgrade_names_give(l, names, env->name);
}

int ky_downgrade_env_names(struct ky_downgrade *l)
{
	struct ky_downgrade_names names = {.known = true};
	int ret = KYMO_OK;

	ky_names_init(&names.given);
	ky_vec_foreach(&l->trace->env, env) {
		if (ret == KYMO_OK)
			ret = downgrade_names_give(l, &names, env->name);
	}
	for (size_t i = 0; i < l->trace->env.len && ret == KYMO_OK; i++) {
		if (!ky_tsdl_is_name(l->trace->env.data[i].name))
			ret = env_name(l, &l->trace->env.data[i], i, &names);
	}
	ky_names_fini(&names.given);
	return ret;
}
