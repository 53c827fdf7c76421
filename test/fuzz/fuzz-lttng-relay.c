/* SPDX-License-Identifier: MIT */
/*
 * What an LTTng consumer daemon sends to a relay, over both connections. The input is a list of pieces: a byte that
 * says how the piece is used (below), its size (u16, little-endian), its bytes. Whatever it is, the relay goes on.
 *
 *	bit 0		over the data connection
 *	bits 1 to 3	where the handle of a stream is put into the piece: number in the table `places`; 7: nowhere
 *	bit 4		the handle of the second stream, not of the first
 */
#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/vec.h"
#include "net/lttng/lttng-consumer.h"
#include "os/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
	int control, data;
	struct ky_lttng_relay *relay;
	int rest; /* rounds after the last piece */
};

static uint64_t handle_of(const struct ky_lttng_relay *relay, size_t number)
{
	ky_vec_foreach(&relay->consumers, consumer)
		if (number < (*consumer)->streams.len)
			return (*consumer)->streams.data[number]->handle;
	return 0;
}

/* The heads of packets, commands about a stream, and rotations (with 0, 3 and 7 bytes of padding; the second stream). */
static const uint8_t places[7] = {8, 24, 37, 40, 44, 53, 60};

/* One piece for each round of the loop: the relay has taken the ones before. */
static void send_piece(struct input *input)
{
	uint8_t piece[4096];
	uint8_t how = input->at[0];
	size_t size = input->at[1] | (size_t)input->at[2] << 8;
	uint8_t place = how >> 1 & 7;

	input->at += 3;
	if (size > (size_t)(input->end - input->at))
		size = (size_t)(input->end - input->at);
	if (size > sizeof(piece))
		size = sizeof(piece);
	memcpy(piece, input->at, size);
	input->at += size;
	if (place < 7 && places[place] + 8u <= size) {
		const uint64_t handle = htobe64(handle_of(input->relay, how >> 4 & 1));

		memcpy(piece + places[place], &handle, sizeof(handle));
	}
	(void)send(how & 1 ? input->data : input->control, piece, size,
		   MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int take_round(void *data, struct kymo_error *err)
{
	struct input *input = data;

	(void)err;
	if (input->end - input->at >= 3)
		send_piece(input);
	else if (input->rest == 0)
		(void)shutdown(input->control, SHUT_WR);
	else if (input->rest == 1)
		(void)shutdown(input->data, SHUT_WR);
	else if (input->rest == 3)
		return KY_LOOP_END;
	if (input->end - input->at < 3)
		input->rest++;
	return KYMO_OK;
}

static void add(struct ky_lttng_relay *relay, struct ky_clients *clients, int *fd,
		const struct ky_client_calls *calls)
{
	struct kymo_error err;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
	    ky_clients_add(clients, fds[0], fds[0], calls, relay, NULL, false, &err) < 0)
		abort();
	*fd = fds[1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/dev/shm/fuzz-lttng-relay.XXXXXX";
	struct ky_relay_hosts hosts = {.list = KY_VEC_INIT};
	struct input input = {.at = data, .end = data + size};
	struct ky_lttng_relay_options options = {
		.dir = dir, .quota_bytes = 64 << 20, .hosts = &hosts};
	struct ky_clients clients;
	struct kymo_error err;
	struct ky_loop *loop;
	int always[2];

	if (!mkdtemp(dir) || pipe(always) < 0 || write(always[1], "", 1) < 0 ||
	    ky_loop_new(&loop, &err) < 0 || ky_clients_init(&clients, loop, NULL, 8, &err) < 0)
		abort();
	options.clients = &clients;
	options.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ky_lttng_relay_new(&options, &input.relay, &err) < 0)
		abort();
	add(input.relay, &clients, &input.control, &ky_lttng_control_calls);
	add(input.relay, &clients, &input.data, &ky_lttng_data_calls);
	/* A descriptor that is always readable: the loop never waits. */
	if (ky_loop_add(loop, always[0], take_round, &input, NULL, &err) < 0 ||
	    ky_loop_run(loop, &err) < 0)
		abort();
	ky_clients_fini(&clients);
	ky_lttng_relay_free(input.relay);
	ky_loop_free(loop);
	ky_relay_hosts_fini(&hosts);
	close(input.control);
	close(input.data);
	close(options.dir_fd);
	close(always[0]);
	close(always[1]);
	ky_tree_remove(dir);
	return 0;
}
