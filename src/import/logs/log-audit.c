/* SPDX-License-Identifier: MIT */
/* The log of auditd: lines type=TYPE msg=audit(TIME:SERIAL): and fields, also behind node=NAME. */
#include <stdio.h>

#include "import/logs/log-format.h"

#define TYPE_MAX_BYTES 64u

struct audit_line {
	int64_t ns, serial;
	const char *node, *type, *text; /* node: NULL: none */
	size_t node_len, type_len;
};

/* auditd parts the fields that it has put into words from the others with this. */
static bool audit_is_blank(char c)
{
	return c == ' ' || c == '\x1d';
}

static bool audit_skip(const char **at, const char *end, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(end - *at) < len || memcmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

/* The word behind @name, which is there, and a blank. */
static bool audit_word(const char **at, const char *end, const char *name, const char **word,
		       size_t *len)
{
	if (!audit_skip(at, end, name))
		return false;
	*word = *at;
	while (*at < end && **at != ' ')
		++*at;
	*len = (size_t)(*at - *word);
	return *len && audit_skip(at, end, " ");
}

static bool audit_number(const char **at, const char *end, int64_t *number)
{
	const char *from = *at;

	while (*at < end && **at >= '0' && **at <= '9')
		++*at;
	return ky_log_is_number(from, (size_t)(*at - from), number);
}

static bool audit_take(const char *line, size_t len, struct audit_line *audit)
{
	const char *at = line, *end = line + len;

	audit->node = NULL;
	if (len > 5 && *line == 'n' &&
	    !audit_word(&at, end, "node=", &audit->node, &audit->node_len))
		return false;
	if (!audit_word(&at, end, "type=", &audit->type, &audit->type_len) ||
	    !audit_skip(&at, end, "msg=audit(") || !ky_log_time_seconds(&at, end, &audit->ns) ||
	    !audit_skip(&at, end, ":") || !audit_number(&at, end, &audit->serial) ||
	    !audit_skip(&at, end, "):"))
		return false;
	audit->text = at;
	return true;
}

static bool audit_probe(const char *line, size_t len)
{
	struct audit_line audit;

	return audit_take(line, len, &audit);
}

/* Other values may be hexadecimal, without a mark: a0=10 is 16. */
static bool audit_is_decimal(const char *name, size_t len)
{
	static const char *const names[] = {
		"argc", "auid",	    "egid",    "euid",	"exit",	    "fsgid",   "fsuid",
		"gid",	"inode",    "item",    "items", "new-auid", "new-ses", "oauid",
		"ogid", "old-auid", "old-ses", "opid",	"oses",	    "ouid",    "pid",
		"ppid", "ses",	    "sgid",    "sig",	"suid",	    "syscall", "uid",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return true;
	return false;
}

/*
 * The second quote. The text of msg='...' may have others in it, and a value in double quotes has none: auditd writes such values in
 * hexadecimal. Without a second quote, the text ends with the line.
 */
static const char *audit_quoted(const char *at, const char *end)
{
	const char quote = at[-1];

	while (at < end &&
	       !(*at == quote && (quote == '"' || at + 1 == end || audit_is_blank(at[1]))))
		at++;
	return at;
}

/* KEY=VALUE, KEY="VALUE", KEY='VALUE' at *@text, which goes behind it. A word alone is the number 1. */
static bool audit_pair(const char **text, const char *end, struct ky_log_value *value)
{
	const char *at = *text, *name, *from;

	while (at < end && (audit_is_blank(*at) || *at == '='))
		at++;
	name = at;
	while (at < end && *at != '=' && !audit_is_blank(*at))
		at++;
	*text = at;
	if (at == name)
		return false;
	*value = (struct ky_log_value){
		.name = name, .name_len = (size_t)(at - name), .kind = KY_MAKER_S64, .number = 1};
	if (at == end || *at != '=')
		return true;
	from = ++at;
	value->kind = KY_MAKER_TEXT;
	if (at < end && (*at == '"' || *at == '\'')) {
		from = ++at;
		at = audit_quoted(at, end);
		*text = at + (at < end);
	} else {
		while (at < end && !audit_is_blank(*at))
			at++;
		*text = at;
	}
	value->text = from;
	value->len = (size_t)(at - from);
	if (from == name + value->name_len + 1 && audit_is_decimal(name, value->name_len) &&
	    ky_log_is_number(from, value->len, &value->number))
		value->kind = KY_MAKER_S64;
	return true;
}

/* The words before the first pair, as of SELinux: "avc:  denied  { read } for  pid=1". */
static const char *audit_message(const char *text, const char *end, struct ky_log_value *value)
{
	const char *at = text, *pair = text;

	while (at < end && *at != '=') {
		if (audit_is_blank(*at))
			pair = at + 1;
		at++;
	}
	if (at == end)
		pair = end;
	at = pair;
	while (at > text && audit_is_blank(at[-1]))
		at--;
	*value = ky_log_text("message", text, (size_t)(at - text));
	return pair;
}

static int audit_line(struct ky_log_file *log, const char *line, size_t len)
{
	struct ky_log_value values[KY_LOG_FIELDS_MAX], more;
	const char *at, *end = line + len;
	char name[TYPE_MAX_BYTES + 16];
	struct audit_line audit;
	size_t n = 0;
	int ret;

	if (!audit_take(line, len, &audit))
		return 0;
	if (audit.node)
		values[n++] = ky_log_text("node", audit.node, audit.node_len);
	values[n++] = ky_log_text("type", audit.type, audit.type_len);
	values[n++] = ky_log_number("serial", audit.serial);
	at = audit.text;
	while (at < end && audit_is_blank(*at))
		at++;
	at = audit_message(at, end, &values[n]);
	n += values[n].len > 0;
	while (n < KY_LOG_FIELDS_MAX && audit_pair(&at, end, &values[n]))
		n++;
	log->n_shortened += n == KY_LOG_FIELDS_MAX && audit_pair(&at, end, &more);
	snprintf(name, sizeof(name), "audit:%.*s",
		 (int)(audit.type_len < TYPE_MAX_BYTES ? audit.type_len : TYPE_MAX_BYTES),
		 audit.type);
	ret = ky_log_event(log, name, audit.ns, values, n);
	return ret < 0 ? ret : 1;
}

const struct ky_log_format ky_log_audit = {
	.name = "audit",
	.description = "the log of auditd",
	.probe = audit_probe,
	.line = audit_line,
};
