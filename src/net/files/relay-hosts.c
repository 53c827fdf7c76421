/* SPDX-License-Identifier: MIT */
#include "net/files/relay-hosts.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"
#include "net/files/relay-files.h"

/* A relay may know that many hosts: clients choose their names. */
#define HOSTS_MAX 100000

static uint64_t relay_hosts_count_bytes(char *path)
{
	char *const paths[] = {path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	uint64_t bytes = 0;
	FTSENT *entry;

	while (tree && (entry = fts_read(tree)))
		if (entry->fts_info == FTS_F)
			bytes += ky_relay_counted(entry->fts_name, entry->fts_statp);
		else if (entry->fts_info == FTS_D)
			bytes += KY_RELAY_ENTRY_BYTES;
	if (tree)
		fts_close(tree);
	return bytes;
}

static struct ky_relay_host *host_new(const char *dir, const char *name)
{
	struct ky_relay_host *host = calloc(1, sizeof(*host));
	char *path = NULL;

	if (host)
		host->name = strdup(name);
	if (!host || !host->name || asprintf(&path, "%s/%s", dir, name) < 0) {
		if (host)
			free(host->name);
		free(host);
		return NULL;
	}
	host->bytes = relay_hosts_count_bytes(path);
	free(path);
	return host;
}

int ky_relay_hosts_find(struct ky_relay_hosts *hosts, const char *dir, const char *name,
			struct ky_relay_host **out, struct kymo_error *err)
{
	struct ky_relay_host *host;

	ky_vec_foreach(&hosts->list, it) {
		*out = *it;
		if (strcmp((*it)->name, name) == 0)
			return KYMO_OK;
	}
	*out = NULL;
	if (hosts->list.len >= HOSTS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "the relay knows too many hosts");
	host = host_new(dir, name);
	if (!host || ky_vec_push(&hosts->list, host) < 0) {
		if (host)
			free(host->name);
		free(host);
		return ky_error_nomem(err);
	}
	*out = host;
	return KYMO_OK;
}

void ky_relay_host_subtract(struct ky_relay_host *host, uint64_t bytes)
{
	host->bytes -= bytes < host->bytes ? bytes : host->bytes;
}

int ky_relay_host_check(const struct ky_relay_host *host, uint64_t quota_bytes,
			struct kymo_error *err)
{
	char size[32];

	if (!quota_bytes || host->bytes <= quota_bytes)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_LIMIT, "the quota of %s is used up (%s)", host->name,
			    ky_format_bytes(size, quota_bytes));
}

void ky_relay_hosts_fini(struct ky_relay_hosts *hosts)
{
	ky_vec_foreach(&hosts->list, host) {
		free((*host)->name);
		free(*host);
	}
	ky_vec_fini(&hosts->list);
}
