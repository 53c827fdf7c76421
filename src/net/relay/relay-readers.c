/* SPDX-License-Identifier: MIT */
#include "net/relay/relay-readers.h"

#include <stdint.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS_BYTES 4096

/* Events were lost: a reader may have come anywhere. */
static void look_everywhere(struct ky_relay_readers *readers)
{
	uint64_t watch;
	void *who;

	for (size_t at = 0; ky_map_next(&readers->watched, &at, &watch, &who);)
		readers->look(who);
}

static void relay_readers_take_event(struct ky_relay_readers *readers,
				     const struct inotify_event *event)
{
	void *who = ky_map_get(&readers->watched, (uint64_t)(uint32_t)event->wd);

	if (event->mask & IN_Q_OVERFLOW)
		look_everywhere(readers);
	else if (who && !(event->mask & IN_IGNORED))
		readers->look(who);
}

static int relay_readers_take(void *data, struct kymo_error *err)
{
	_Alignas(struct inotify_event) char buffer[EVENTS_BYTES];
	struct ky_relay_readers *readers = data;
	ssize_t got = read(readers->fd, buffer, sizeof(buffer));

	(void)err;
	for (ssize_t at = 0; at < got;) {
		const struct inotify_event *event = (const void *)(buffer + at);

		relay_readers_take_event(readers, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return KYMO_OK;
}

int ky_relay_readers_open(struct ky_relay_readers *readers, struct ky_loop *loop,
			  void (*look)(void *who), struct kymo_error *err)
{
	*readers = (struct ky_relay_readers){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
					     .look = look};
	ky_map_init(&readers->watched);
	return readers->fd < 0 ? KYMO_OK
			       : ky_loop_add(loop, readers->fd, relay_readers_take, readers,
					     &readers->source, err);
}

void ky_relay_readers_close(struct ky_relay_readers *readers)
{
	ky_loop_remove(readers->source);
	ky_map_fini(&readers->watched);
	if (readers->fd >= 0)
		close(readers->fd);
}

int ky_relay_readers_watch(struct ky_relay_readers *readers, const char *path, void *who)
{
	int watch =
		readers->fd < 0 ? -1 : inotify_add_watch(readers->fd, path, IN_OPEN | IN_ONLYDIR);

	if (watch < 0)
		return -1;
	if (ky_map_set(&readers->watched, (uint64_t)(uint32_t)watch, who) == 0)
		return watch;
	(void)inotify_rm_watch(readers->fd, watch);
	return -1;
}

void ky_relay_readers_forget(struct ky_relay_readers *readers, int watch)
{
	if (watch < 0)
		return;
	(void)ky_map_del(&readers->watched, (uint64_t)(uint32_t)watch);
	(void)inotify_rm_watch(readers->fd, watch);
}
