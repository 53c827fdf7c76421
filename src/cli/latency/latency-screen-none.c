/* SPDX-License-Identifier: MIT */
/* A build without ncurses. */
#include "base/error.h"
#include "cli/latency/latency-screen.h"

int ky_screen_open(struct ky_latency_view *view, struct ky_members *members,
		   struct ky_screen **screen, struct kymo_error *err)
{
	(void)view;
	(void)members;
	*screen = NULL;
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "this build of kymo has no screens");
}

void ky_screen_close(struct ky_screen *screen)
{
	(void)screen;
}

int ky_screen_update(struct ky_screen *screen, struct kymo_error *err)
{
	(void)screen;
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "this build of kymo has no screens");
}

bool ky_screen_keys(struct ky_screen *screen)
{
	(void)screen;
	return false;
}
