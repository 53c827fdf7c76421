/* SPDX-License-Identifier: MIT */
#include "cli/recording/trigger-requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/json/json.h"

struct row {
	const char *number, *condition, *fired, *held, *lost, *actions;
};

static int trigger_requests_add(const struct ky_control_socket_place *place,
				const struct ky_trigger_rule *rule, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0}, answer;
	const char *number;
	size_t at = 0;
	int ret;

	ky_control_socket_add(&request, "trigger");
	ky_control_socket_add(&request, rule->condition.text);
	ky_vec_foreach(&rule->actions, action)
		ky_control_socket_add(&request, action->text);
	ret = ky_control_socket_ask(place, &request, 0, &answer, err);
	if (ret < 0)
		return ret;
	(void)ky_control_socket_next(&answer, &at);
	number = ky_control_socket_next(&answer, &at);
	fputs("Trigger ", stderr);
	ky_cli_put_text(stderr, number ? number : "?");
	fputs(": ", stderr);
	ky_cli_put_text(stderr, rule->condition.text);
	fputc('\n', stderr);
	return KYMO_OK;
}

int ky_trigger_requests_add(const struct ky_control_socket_place *place,
			    const struct ky_trigger_rules *rules, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < rules->len && !ret; i++)
		ret = trigger_requests_add(place, &rules->data[i], err);
	return ret;
}

int ky_trigger_requests_remove(const struct ky_control_socket_place *place,
			       const struct ky_text_list *numbers, struct kymo_error *err)
{
	struct ky_control_socket_message request, answer;
	int ret = KYMO_OK;

	for (size_t i = 0; i < numbers->len && !ret; i++) {
		request.len = 0;
		ky_control_socket_add(&request, "remove-trigger");
		ky_control_socket_add(&request, numbers->items[i]);
		ret = ky_control_socket_ask(place, &request, 0, &answer, err);
	}
	return ret;
}

static bool next_row(const struct ky_control_socket_message *answer, size_t *at, struct row *row)
{
	const char **const words[] = {&row->number, &row->condition, &row->fired,
				      &row->held,   &row->lost,	     &row->actions};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		*words[i] = ky_control_socket_next(answer, at);
		if (!*words[i])
			return false;
	}
	return true;
}

static uint64_t trigger_requests_number(const char *text)
{
	return strtoull(text, NULL, 10);
}

static void trigger_requests_print_json(const struct ky_control_socket_message *answer, size_t at)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct row row;

	ky_strbuf_adds(&out, "{\"triggers\": [");
	for (int n = 0; next_row(answer, &at, &row); n++) {
		ky_strbuf_addf(&out, "%s{\"number\": %" PRIu64 ", \"when\": ", n ? ", " : "",
			       trigger_requests_number(row.number));
		ky_json_put_text(&out, row.condition, strlen(row.condition));
		ky_strbuf_addf(&out,
			       ", \"fired\": %" PRIu64 ", \"held\": %" PRIu64 ", \"lost\": %" PRIu64
			       ", \"do\": ",
			       trigger_requests_number(row.fired),
			       trigger_requests_number(row.held),
			       trigger_requests_number(row.lost));
		ky_json_put_text(&out, row.actions, strlen(row.actions));
		ky_strbuf_addc(&out, '}');
	}
	ky_strbuf_adds(&out, "]}\n");
	ky_cli_write(&out);
	ky_strbuf_fini(&out);
}

static void print_table(const struct ky_control_socket_message *answer, size_t at)
{
	struct row row;
	int n = 0;

	for (; next_row(answer, &at, &row); n++) {
		if (!n)
			printf("%4s %9s %9s %9s  %s\n", "no.", "fired", "held", "lost", "trigger");
		printf("%4" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 "  ",
		       trigger_requests_number(row.number), trigger_requests_number(row.fired),
		       trigger_requests_number(row.held), trigger_requests_number(row.lost));
		ky_cli_put_text(stdout, row.condition);
		fputs(": ", stdout);
		ky_cli_put_text(stdout, row.actions);
		putchar('\n');
	}
	if (!n)
		puts("This recording has no triggers.");
}

int ky_trigger_requests_list(const struct ky_control_socket_place *place, bool json,
			     struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0}, answer;
	size_t at = 0;
	int ret;

	ky_control_socket_add(&request, "triggers");
	ret = ky_control_socket_ask(place, &request, 0, &answer, err);
	if (ret < 0)
		return ret;
	(void)ky_control_socket_next(&answer, &at);
	if (json)
		trigger_requests_print_json(&answer, at);
	else
		print_table(&answer, at);
	return KYMO_OK;
}
