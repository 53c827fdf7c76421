/* SPDX-License-Identifier: MIT */
/* 32-bit calls, and 64-bit ones that tracefs does not know, described as it would. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "kernel/events/compat-calls.h"

static void compat_format_begin(struct ky_strbuf *text, const char *event, unsigned int id)
{
	ky_strbuf_clear(text);
	ky_strbuf_addf(
		text,
		"name: %s\nID: %u\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
		event, id);
}

static void compat_format_add_number(struct ky_strbuf *text, const char *name)
{
	ky_strbuf_addf(text, "\tfield:int %s;\toffset:8;\tsize:4;\tsigned:1;\n", name);
}

static void compat_format_add_result(struct ky_strbuf *text)
{
	ky_strbuf_addf(text, "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n");
}

static void add_params(struct ky_strbuf *text, const char *params)
{
	int offset = 16;

	while (*params) {
		int len = (int)strcspn(params, ",");

		ky_strbuf_addf(text, "\tfield:%.*s;\toffset:%d;\tsize:8;\tsigned:0;\n", len, params,
			       offset);
		offset += 8;
		params += len;
		params += strspn(params, ", ");
	}
}

/* What the kernel says of the arguments of @like, less what it says of their contents (Linux 6.19). */
static int add_fields_of(const struct ky_tracefs *fs, const char *like, struct ky_strbuf *text,
			 struct kymo_error *err)
{
	struct ky_strbuf theirs = KY_STRBUF_INIT;
	char name[200];
	const char *at;
	int ret;

	snprintf(name, sizeof(name), "events/syscalls/sys_enter_%s/format", like);
	ret = ky_tracefs_read(fs->fd, fs->path, name, &theirs, err);
	for (at = ky_strbuf_text(&theirs); !ret && at && *at;) {
		size_t len = strcspn(at, "\n");

		if (strncmp(at, "\tfield:", 7) == 0 && !memmem(at, len, " common_", 8) &&
		    !memmem(at, len, "__data_loc", 10) && !memmem(at, len, "offset:8;", 9)) {
			ky_strbuf_add(text, at, len);
			ky_strbuf_add(text, "\n", 1);
		}
		at += len + (at[len] == '\n');
	}
	ky_strbuf_fini(&theirs);
	return ret;
}

/* As LTTng has them. */
static void add_unknown(struct ky_strbuf *text, bool is_exit)
{
	compat_format_add_number(text, "id");
	if (is_exit)
		compat_format_add_result(text);
	ky_strbuf_addf(text, "\tfield:unsigned long args[6];\toffset:%d;\tsize:48;\tsigned:0;\n",
		       is_exit ? 24 : 16);
}

static unsigned int compat_format_id_of(const char *system, uint16_t number, bool is_exit)
{
	if (ky_unknown_is_system(system))
		return is_exit ? KY_UNKNOWN_EXIT_ID : KY_UNKNOWN_ENTRY_ID;
	return (is_exit ? KY_COMPAT_EXIT_ID : KY_COMPAT_ENTRY_ID) + number;
}

int ky_compat_format(const struct ky_tracefs *fs, const char *system, const char *event,
		     struct ky_strbuf *text, struct kymo_error *err)
{
	bool is_exit;
	const struct ky_compat_call *call = ky_compat_call_find(event, &is_exit);
	int ret = KYMO_OK;

	if (!call)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no 32-bit call %s", event);
	compat_format_begin(text, event, compat_format_id_of(system, call->number, is_exit));
	/* Which call it is is known by the event, but of one without a name. */
	if (call->number == KY_COMPAT_UNKNOWN)
		add_unknown(text, is_exit);
	else
		compat_format_add_number(text, "__syscall_nr");
	if (call->number == KY_COMPAT_UNKNOWN)
		;
	else if (is_exit)
		compat_format_add_result(text);
	else if (call->params)
		add_params(text, call->params);
	else
		ret = add_fields_of(fs, call->like, text, err);
	return !ret && ky_strbuf_failed(text) ? ky_error_nomem(err) : ret;
}
