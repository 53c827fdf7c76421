/* SPDX-License-Identifier: MIT */
/* kymo relay: takes in the recordings of other machines. */
#include "cli/recording/relay-loader.h"
#include "cli/session/relay-log.h"
#include "cli/terminal/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "net/link/address.h"
#include "net/lttng/lttng-protocol.h"
#include "net/relay/relay-key.h"
#include "net/relay/relay.h"
#include "net/protocol/viewer-protocol.h"
#include "net/viewer/viewer-server.h"
#include "os/event-loop.h"

struct options {
	const char *dir, *listen, *lttng, *live, *clickhouse;
	uint64_t quota_bytes, clients;
	bool uses_stdio, init, insecure;
};

static void cmd_relay_defaults(void *data)
{
	struct options *options = data;

	options->dir = ".";
	options->listen = "localhost";
}

static int cmd_relay_end(void *data, const struct signalfd_siginfo *info, struct kymo_error *err)
{
	(void)data;
	(void)info;
	(void)err;
	return KY_LOOP_END;
}

static int add_signals(struct ky_loop *loop, sigset_t *before, struct kymo_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, before);
	(void)signal(SIGPIPE, SIG_IGN);
	return ky_loop_add_signals(loop, &set, cmd_relay_end, NULL, NULL, err);
}

static int cmd_relay_listen_at(struct ky_relay *relay, const struct options *options, bool has_tls,
			       struct kymo_error *err)
{
	struct ky_net_address address;
	bool is_loopback;
	uint16_t port;
	int ret = ky_net_address_parse_host(options->listen, &address, err), fd;

	if (ret < 0)
		return ret;
	fd = ky_net_listen(&address, &port, &is_loopback, err);
	if (fd < 0)
		return fd;
	if (!is_loopback && !has_tls && !options->insecure) {
		close(fd);
		ky_error_set(err, KYMO_E_INVALID,
			     "without a key the relay listens only on this machine");
		ky_error_hint(err, "make a key: kymo relay --init --dir DIR");
		return KYMO_E_INVALID;
	}
	ret = ky_relay_listen(relay, fd, err);
	if (ret < 0)
		return ret;
	fputs("Listening at ", stderr);
	ky_cli_put_text(stderr, address.host);
	fprintf(stderr, ", port %u. Recordings go to ", port);
	ky_cli_put_text(stderr, options->dir);
	fputs(".\n", stderr);
	return KYMO_OK;
}

/* A socket that listens at @address, for one of LTTng's protocols; or a negative status. */
static int open_lttng(const struct options *options, const struct ky_net_address *address,
		      uint16_t *port, struct kymo_error *err)
{
	bool is_loopback;
	int fd = ky_net_listen(address, port, &is_loopback, err);

	if (fd < 0 || is_loopback || options->insecure)
		return fd;
	close(fd);
	ky_error_set(
		err, KYMO_E_INVALID,
		"LTTng's protocol is not encrypted: the relay takes it only from this machine");
	ky_error_hint(err, "a tunnel of ssh brings other machines; --insecure does without");
	return KYMO_E_INVALID;
}

/* HOST[:CONTROL,DATA] */
static int parse_lttng(const char *text, struct ky_net_address *control,
		       struct ky_net_address *data, struct kymo_error *err)
{
	const char *comma = strrchr(text, ',');
	char host[512], port[16];
	int ret;

	snprintf(host, sizeof(host), "%.*s", (int)(comma ? comma - text : (int)strlen(text)), text);
	ret = ky_net_address_parse_host(host, control, err);
	if (ret < 0)
		return ret;
	if (!comma)
		snprintf(control->port, sizeof(control->port), "%u", KY_LTTNG_CONTROL_PORT);
	snprintf(port, sizeof(port), ":%s", comma ? comma + 1 : "5343");
	ret = ky_net_address_parse_host(port, data, err);
	if (!ret && (!comma != !strchr(text, ':')))
		ret = ky_error_set(err, KYMO_E_INVALID, "'%s' is not HOST or HOST:CONTROL,DATA",
				   text);
	memcpy(data->host, control->host, sizeof(data->host));
	return ret;
}

static int listen_lttng(struct ky_relay *relay, const struct options *options,
			struct kymo_error *err)
{
	struct ky_net_address control, data;
	uint16_t control_port, data_port;
	int ret = parse_lttng(options->lttng, &control, &data, err), fd, data_fd;

	if (ret < 0)
		return ret;
	fd = open_lttng(options, &control, &control_port, err);
	if (fd < 0)
		return fd;
	data_fd = open_lttng(options, &data, &data_port, err);
	if (data_fd < 0) {
		close(fd);
		return data_fd;
	}
	ret = ky_relay_listen_lttng(relay, fd, data_fd, err);
	if (ret < 0)
		return ret;
	fputs("Listening at ", stderr);
	ky_cli_put_text(stderr, control.host);
	fprintf(stderr, ", ports %u and %u, for LTTng.\n", control_port, data_port);
	return KYMO_OK;
}

/* HOST[:PORT], :PORT or PORT; without a port, LTTng's. */
static int parse_live(const char *text, struct ky_net_address *address, struct kymo_error *err)
{
	char port[sizeof(address->port) + 1];
	int ret;

	if (text[0] && strspn(text, "0123456789") == strlen(text)) {
		snprintf(port, sizeof(port), ":%s", text);
		text = port;
	}
	ret = ky_net_address_parse_host(text, address, err);
	if (!ret && (text[0] == '[' ? !strstr(text, "]:") : !strchr(text, ':')))
		snprintf(address->port, sizeof(address->port), "%d", KY_VIEWER_PORT);
	return ret;
}

static int show_live(struct ky_viewer_server *viewers, const struct options *options,
		     struct kymo_error *err)
{
	struct ky_net_address address;
	uint16_t port;
	int ret = parse_live(options->live, &address, err), fd;

	if (ret < 0)
		return ret;
	fd = open_lttng(options, &address, &port, err);
	if (fd < 0)
		return fd;
	ret = ky_viewer_server_listen(viewers, fd, err);
	if (ret < 0)
		return ret;
	fputs("Viewers connect to net://", stderr);
	ky_cli_put_text(stderr, address.host);
	fprintf(stderr, ":%u.\n", port);
	return KYMO_OK;
}

static int cmd_relay_make_key(const struct options *options, struct kymo_error *err)
{
	int ret = ky_relay_key_make(options->dir, err);

	if (ret < 0)
		return ret;
	fputs("Key for recorders: ", stdout);
	ky_cli_put_text(stdout, options->dir);
	puts("/.kymo/recorder-key\n"
	     "Copy it to the other machines: kymo record --relay-key FILE -o kymo://HOST/NAME ...\n"
	     "Everyone with this file can send recordings to the relay, and read what is there.");
	fputs("Key for readers: ", stdout);
	ky_cli_put_text(stdout, options->dir);
	puts("/.kymo/reader-key\n"
	     "Everyone with this file can read recordings, and send none.");
	return KYMO_OK;
}

static int cmd_relay_run_with(const struct options *options, const struct ky_relay_options *to,
			      struct ky_loop *loop, const sigset_t *before, struct kymo_error *err)
{
	struct ky_relay_loader loader = {
		.store = options->clickhouse, .dir = to->dir, .loop = loop, .mask = *before};
	struct ky_relay *relay;
	int ret = ky_relay_open(to, loop, &relay, err);

	if (ret < 0)
		return ret;
	if (options->uses_stdio)
		ret = ky_relay_serve(relay, dup(STDIN_FILENO), dup(STDOUT_FILENO), err);
	else
		ret = cmd_relay_listen_at(relay, options, to->tls != NULL, err);
	if (!ret && options->lttng)
		ret = listen_lttng(relay, options, err);
	if (!ret && options->live)
		ret = show_live(to->viewers, options, err);
	/* After the lines about addresses, which the loader's are not to come into. */
	if (!ret && options->clickhouse)
		ret = ky_relay_loader_begin(&loader, err);
	if (!ret)
		ret = ky_loop_run(loop, err);
	ky_relay_loader_end(&loader);
	ky_relay_close(relay);
	return ret;
}

static int cmd_relay_run(const struct options *options, struct ky_relay_options *to,
			 struct ky_loop *loop, const sigset_t *before, struct kymo_error *err)
{
	const struct ky_viewer_server_options viewers = {to->dir, to->clients_max, to->log};
	int ret =
		options->uses_stdio ? KYMO_OK : ky_viewer_server_start(&viewers, &to->viewers, err);

	if (!ret)
		ret = cmd_relay_run_with(options, to, loop, before, err);
	ky_viewer_server_stop(to->viewers);
	return ret;
}

static int cmd_relay_serve(const struct options *options, struct ky_loop *loop,
			   const sigset_t *before, struct kymo_error *err)
{
	struct ky_relay_options to = {
		.dir = options->dir,
		.quota_bytes = options->quota_bytes,
		.clients_max = (unsigned int)options->clients,
		.log = &ky_relay_log,
	};
	struct ky_relay_key key;
	int ret;

	if (mkdir(options->dir, 0700) < 0 && errno != EEXIST) {
		ret = ky_error_errno(err, errno, "cannot create the directory");
		ky_error_path(err, options->dir);
		return ret;
	}
	if (options->init)
		return cmd_relay_make_key(options, err);
	ret = ky_relay_key_load(options->dir, &to.tls, &key, err);
	to.token = to.tls ? key.token : NULL;
	to.reader_token = to.tls && key.reader_token[0] ? key.reader_token : NULL;
	if (!ret)
		ret = cmd_relay_run(options, &to, loop, before, err);
	ky_tls_free(to.tls);
	ky_relay_log_end();
	return ret;
}

static int run_relay(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	struct ky_loop *loop;
	struct kymo_error err;
	sigset_t before;
	int ret;

	(void)n_args;
	(void)args;
	if (options->clients > 1000000)
		return ky_cli_usage(command, "--clients: up to 1000000");
	ret = ky_loop_new(&loop, &err);
	if (ret < 0)
		return ky_cli_error(&err);
	ret = add_signals(loop, &before, &err);
	if (!ret)
		ret = cmd_relay_serve(options, loop, &before, &err);
	ky_loop_free(loop);
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"dir", 'd', KY_OPTION_TEXT, "DIR",
	 "Directory for the recordings; the relay creates it if need be. Each recording is in DIR/HOST/NAME. Default: the "
	 "current directory.",
	 offsetof(struct options, dir), NULL},
	{"listen", 'l', KY_OPTION_TEXT, "HOST[:PORT]",
	 "Where recorders connect. Default: localhost, port 5350. Port 0 takes a free port.",
	 offsetof(struct options, listen), NULL},
	{"lttng", 0, KY_OPTION_TEXT, "HOST[:CONTROL,DATA]",
	 "Take in what LTTng sends, too (lttng create --set-url=net://HOST:CONTROL:DATA), at these ports of HOST. Default ports: "
	 "5342 and 5343, as LTTng's. Port 0 takes a free port.",
	 offsetof(struct options, lttng), NULL},
	{"live", 0, KY_OPTION_TEXT, "[HOST:]PORT",
	 "Show the recordings below DIR to viewers that speak LTTng's live protocol: babeltrace2, Trace Compass. LTTng's port is "
	 "5344. Port 0 takes a free port. The protocol has no keys; beyond this machine it needs --insecure, or a tunnel of ssh.",
	 offsetof(struct options, live), NULL},
	{"clickhouse", 0, KY_OPTION_TEXT, "URL|DIR",
	 "Load the recordings into a ClickHouse server, or into a store in the directory DIR, while they arrive: kymo fleet follow. "
	 "The relay never waits for it.",
	 offsetof(struct options, clickhouse), NULL},
	{"quota", 0, KY_OPTION_SIZE, "SIZE",
	 "The most that the recordings of one host may take. The relay refuses further packets of a host that exceeds it. "
	 "Default: no limit.",
	 offsetof(struct options, quota_bytes), NULL},
	{"clients", 0, KY_OPTION_U64, "N", "The most recorders at a time. Default: 1000.",
	 offsetof(struct options, clients), NULL},
	{"init", 0, KY_OPTION_FLAG, NULL,
	 "Make a key for the relay, and end. A relay with a key uses TLS, and takes recordings only from recorders that have "
	 "its file DIR/.kymo/recorder-key (kymo record --relay-key).",
	 offsetof(struct options, init), NULL},
	{"insecure", 0, KY_OPTION_FLAG, NULL,
	 "Listen beyond this machine without a key: everyone who reaches the relay can send recordings, and read on the way "
	 "what others send.",
	 offsetof(struct options, insecure), NULL},
	{"stdio", 0, KY_OPTION_FLAG, NULL,
	 "Serve one recorder, which speaks to the standard input and output, and end with it. kymo record -o ssh://HOST/DIR "
	 "starts the relay on HOST in this way.",
	 offsetof(struct options, uses_stdio), NULL},
	{0},
};

const struct ky_command ky_command_relay = {
	.name = "relay",
	.is_rare = true,
	.summary = "take in recordings of other recorders and machines",
	.usage = "[OPTIONS]",
	.description =
		"The relay receives recordings over the network: kymo record -o kymo://HOST/NAME sends them. It writes each one to "
		"DIR/HOST/NAME, where HOST is the recorder's machine, as an ordinary recording: kymo print, babeltrace2 and others "
		"read it, kymo print --live also while it grows. A second recording of the same name gets a number: NAME-2.\n\n"
		"When a connection breaks or the relay ends, the recorders keep their events and connect again. The relay "
		"continues where it stopped: it has each packet once, also when it was killed.\n\n"
		"Without a key the relay listens only on this machine. kymo relay --init makes a key, for TLS with recorders on other "
		"machines. kymo record -o ssh://HOST/DIR needs neither a key nor a running relay.\n\n"
		"With --lttng, the relay also takes in sessions of LTTng, in place of lttng-relayd: of the kernel and of programs, live "
		"sessions, rotations and snapshots. Each session is in DIR/HOST/SESSION, where HOST is the machine's name.\n\n"
		"SIGINT or SIGTERM ends the relay.",
	.examples =
		"# a relay, and a recording that goes to it\n"
		"kymo relay --dir /var/tmp/recordings &\n"
		"kymo record -o kymo://localhost/web -k sched_switch --duration 10s\n"
		"kymo report cpu /var/tmp/recordings/*/web\n\n"
		"# recordings of other machines\n"
		"kymo relay --init --dir /var/tmp/recordings\n"
		"kymo relay --dir /var/tmp/recordings --listen 0.0.0.0 --quota 20G\n\n"
		"# a session of LTTng, on the same machine\n"
		"kymo relay --dir /var/tmp/recordings --lttng localhost &\n"
		"lttng create web --set-url=net://localhost\n"
		"lttng enable-event --userspace --all; lttng start; sleep 10; lttng destroy\n"
		"kymo print /var/tmp/recordings/*/web\n\n"
		"# many machines in one ClickHouse server: docs/fleet.md\n"
		"kymo relay --dir /var/tmp/recordings --clickhouse https://server:8443/fleet\n\n"
		"# watch recordings of this machine in babeltrace2 and Trace Compass\n"
		"kymo relay --dir /var/tmp/recordings --live 5344 &\n"
		"babeltrace2 -i lttng-live net://localhost/host/$(hostname)/web\n\n"
		"# a recording that is kept on another machine; ssh is all that it needs\n"
		"kymo record -o ssh://archive.example.com/var/tmp/recordings -k sched_switch --duration 10s\n",
	.see_also = "record sessions print",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.defaults = cmd_relay_defaults,
	.max_args = 0,
	.run = run_relay,
};
