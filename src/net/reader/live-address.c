/* SPDX-License-Identifier: MIT */
#include "net/reader/live-address.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/protocol/viewer-protocol.h"

#define NET  "net://"
#define KYMO "kymo://"

bool ky_live_address_is(const char *text)
{
	return strncmp(text, NET, strlen(NET)) == 0 || ky_net_address_is(text);
}

static int bad_address(const char *text, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_INVALID,
			    strncmp(text, NET, strlen(NET)) == 0
				    ? "'%s' is not " NET "HOST[:PORT]/host/MACHINE/SESSION"
				    : "'%s' is not " KYMO "HOST[:PORT]/[MACHINE/]NAME",
			    text);
}

/* "A/B" or "B"; false: it is neither. */
static bool split_name(const char *text, struct ky_live_address *address)
{
	const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;
	size_t machine_len = slash ? (size_t)(slash - text) : 0, name_len = strlen(name);

	/* LTTng's names have blanks and more. */
	if (strchr(name, '/') || name_len >= sizeof(address->name) ||
	    machine_len >= sizeof(address->machine) || (slash && !machine_len))
		return false;
	memcpy(address->machine, text, machine_len);
	memcpy(address->name, name, name_len);
	return name_len > 0;
}

int ky_live_address_parse(const char *text, struct ky_live_address *address, struct kymo_error *err)
{
	bool is_kymo = ky_net_address_is(text);
	const char *host = text + strlen(is_kymo ? KYMO : NET), *slash = strchr(host, '/');
	size_t host_len = slash ? (size_t)(slash - host) : strlen(host);
	char name[300];
	const char *close;
	int ret;

	*address = (struct ky_live_address){.is_kymo = is_kymo};
	if (!host_len || host_len >= sizeof(name))
		return bad_address(text, err);
	snprintf(name, sizeof(name), "%.*s", (int)host_len, host);
	ret = ky_net_address_parse_host(name, &address->relay, err);
	if (ret < 0)
		return ret;
	close = strrchr(name, ']');
	if (!is_kymo && !strchr(close ? close : name, ':'))
		snprintf(address->relay.port, sizeof(address->relay.port), "%d", KY_VIEWER_PORT);
	if (!slash || !slash[1])
		return KYMO_OK;
	slash++;
	if (!is_kymo && strncmp(slash, "host/", 5) != 0)
		return bad_address(text, err);
	if (!split_name(is_kymo ? slash : slash + 5, address) || (!is_kymo && !address->machine[0]))
		return bad_address(text, err);
	return KYMO_OK;
}
