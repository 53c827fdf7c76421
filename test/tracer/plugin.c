/* SPDX-License-Identifier: MIT */
/* A library that programs load and unload. */
#include <kymo/trace.h>

__attribute__((visibility("default"))) void plugin_work(int n);
void plugin_work(int n)
{
	KYMO_EVENT(plugin, work, n);
}
