/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>

#include "net/files/relay-hosts.h"
#include "net/files/relay-memory.h"

#define CLIENTS 100
#define PIECE	UINT64_C(65536)

/* Each takes what it can, one after the other. */
static void take_all(uint64_t own[CLIENTS])
{
	struct kymo_error err;

	for (int i = 0; i < CLIENTS; i++) {
		int ret = KYMO_OK;

		while (!ret)
			ret = ky_relay_memory_take(&own[i], PIECE, &err);
		assert_int_equal(ret, i ? KYMO_E_AGAIN : KYMO_E_LIMIT);
		assert_true(own[i] >= KY_RELAY_MEMORY_OWN);
		assert_true(own[i] <= KY_RELAY_MEMORY_ALL >> (i + 1 < 8 ? i + 1 : 8));
	}
}

static void test_memory_of_greedy_clients(void **state)
{
	uint64_t own[CLIENTS] = {0}, all = 0;

	(void)state;
	take_all(own);
	for (int i = 0; i < CLIENTS; i++)
		all += own[i];
	assert_true(all <= KY_RELAY_MEMORY_ALL + CLIENTS * KY_RELAY_MEMORY_OWN);
	for (int i = 0; i < CLIENTS; i++)
		ky_relay_memory_give(&own[i], own[i]);
	/* Nothing is left of them. */
	take_all(own);
	for (int i = 0; i < CLIENTS; i++)
		ky_relay_memory_give(&own[i], own[i]);
}

static struct ky_relay_host *find(struct ky_relay_hosts *hosts, const char *name)
{
	struct ky_relay_host *host;

	assert_int_equal(ky_relay_hosts_find(hosts, "/nowhere", name, &host, NULL), KYMO_OK);
	return host;
}

static void test_names_of_hosts(void **state)
{
	struct ky_relay_hosts hosts = {0};
	struct ky_relay_host *stays = find(&hosts, "stays"), *large = find(&hosts, "large");
	char name[32];

	(void)state;
	stays->bytes = 7;
	/* To count it again takes long. */
	large->bytes = 100;
	ky_relay_host_leave(large);
	for (size_t i = 0; i < KY_RELAY_HOSTS_MAX + 10; i++) {
		snprintf(name, sizeof(name), "h%zu", i);
		ky_relay_host_leave(find(&hosts, name));
	}
	assert_int_equal(hosts.list.len, KY_RELAY_HOSTS_MAX);
	assert_ptr_equal(find(&hosts, "stays"), stays);
	assert_int_equal(stays->bytes, 7);
	assert_int_equal(stays->users, 2);
	assert_ptr_equal(find(&hosts, "large"), large);
	ky_relay_hosts_fini(&hosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_of_greedy_clients),
		cmocka_unit_test(test_names_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
