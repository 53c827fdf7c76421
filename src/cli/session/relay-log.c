/* SPDX-License-Identifier: MIT */
#include "cli/session/relay-log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/terminal/command.h"
#include "os/now.h"

#define LINE_NS (INT64_C(1000000000) / KY_RELAY_LOG_RATE)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Each line moves this forward by LINE_NS; it may be a burst ahead of now. */
static int64_t paid_ns;
static uint64_t n_left_out;

static bool relay_log_may_write(void)
{
	int64_t now = ky_os_now_ns();

	if (paid_ns < now)
		paid_ns = now;
	if (paid_ns - now >= LINE_NS * KY_RELAY_LOG_BURST)
		return false;
	paid_ns += LINE_NS;
	return true;
}

static void relay_log_tell_left_out(void)
{
	if (n_left_out)
		ky_log_warning(&ky_cli_log,
			       "%" PRIu64 " messages were left out: more than %d a second came",
			       n_left_out, KY_RELAY_LOG_RATE);
	n_left_out = 0;
}

static void relay_log_write(void *data, enum ky_log_level level, const char *text)
{
	(void)data;
	pthread_mutex_lock(&lock);
	if (relay_log_may_write()) {
		relay_log_tell_left_out();
		ky_cli_log.write(ky_cli_log.data, level, text);
	} else {
		n_left_out++;
	}
	pthread_mutex_unlock(&lock);
}

const struct ky_log ky_relay_log = {relay_log_write, NULL};

void ky_relay_log_end(void)
{
	pthread_mutex_lock(&lock);
	relay_log_tell_left_out();
	pthread_mutex_unlock(&lock);
}
