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

static void host_free(struct ky_relay_host *host)
{
	if (host)
		free(host->name);
	free(host);
}

static struct ky_relay_host *host_new(const char *dir, const char *name)
{
	struct ky_relay_host *host = calloc(1, sizeof(*host));
	char *path = NULL;

	if (host)
		host->name = strdup(name);
	if (!host || !host->name || asprintf(&path, "%s/%s", dir, name) < 0) {
		host_free(host);
		return NULL;
	}
	host->bytes = relay_hosts_count_bytes(path);
	free(path);
	return host;
}

/* Its files are counted again when it comes back: the one with the fewest goes. */
static void relay_hosts_forget_one(struct ky_relay_hosts *hosts)
{
	struct ky_relay_host **least = NULL;

	ky_vec_foreach(&hosts->list, it)
		if (!(*it)->users && (!least || (*it)->bytes < (*least)->bytes))
			least = it;
	if (!least)
		return;
	host_free(*least);
	*least = hosts->list.data[--hosts->list.len];
}

int ky_relay_hosts_find(struct ky_relay_hosts *hosts, const char *dir, const char *name,
			struct ky_relay_host **out, struct kymo_error *err)
{
	struct ky_relay_host *host;

	ky_vec_foreach(&hosts->list, it) {
		if (strcmp((*it)->name, name) != 0)
			continue;
		*out = *it;
		ky_relay_host_keep(*out);
		return KYMO_OK;
	}
	*out = NULL;
	if (hosts->list.len >= KY_RELAY_HOSTS_MAX)
		relay_hosts_forget_one(hosts);
	host = host_new(dir, name);
	if (!host || ky_vec_push(&hosts->list, host) < 0) {
		host_free(host);
		return ky_error_nomem(err);
	}
	ky_relay_host_keep(host);
	*out = host;
	return KYMO_OK;
}

void ky_relay_host_keep(struct ky_relay_host *host)
{
	host->users++;
}

void ky_relay_host_leave(struct ky_relay_host *host)
{
	if (host)
		host->users--;
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
	ky_vec_foreach(&hosts->list, host)
		host_free(*host);
	ky_vec_fini(&hosts->list);
}
