/* SPDX-License-Identifier: MIT */
/* Triggers: the text of conditions and actions, counters, pairs, deadlines, limits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "record/triggers/trigger-match.h"

#define MS INT64_C(1000000)
#define S  (1000 * MS)

static struct ky_trigger_rule parse(const char *text)
{
	struct ky_trigger_rule rule;
	struct kymo_error err;

	if (ky_trigger_rule_parse(&rule, text, &err) < 0)
		fail_msg("'%s': column %u: %s", text, err.column, err.message);
	return rule;
}

static void test_events(void **state)
{
	struct ky_trigger_rule rule =
		parse("sched_switch if next_prio < 0 && prev_comm == \"within 5\"");
	const struct ky_trigger_condition *c = &rule.condition;

	(void)state;
	assert_int_equal(c->kind, KY_TRIGGER_EVENT);
	assert_int_equal(c->count, 1);
	assert_string_equal(c->first.pattern, "sched_switch");
	assert_string_equal(c->first.filter, "next_prio < 0 && prev_comm == \"within 5\"");
	assert_false(c->first.of_programs);
	assert_int_equal(c->once_per_ns, S);
	ky_trigger_rule_fini(&rule);
	rule = parse("shop:order if (first 3) > 2 5 times within 200ms once per 3s first 9");
	assert_true(rule.condition.first.of_programs);
	assert_string_equal(rule.condition.first.filter, "(first 3) > 2");
	assert_int_equal(rule.condition.count, 5);
	assert_int_equal(rule.condition.within_ns, 200 * MS);
	assert_int_equal(rule.condition.once_per_ns, 3 * S);
	assert_int_equal(rule.condition.first_n, 9);
	ky_trigger_rule_fini(&rule);
	rule = parse("kernel sched:sched_waking");
	assert_false(rule.condition.first.of_programs);
	ky_trigger_rule_fini(&rule);
	rule = parse("user tick");
	assert_true(rule.condition.first.of_programs);
	ky_trigger_rule_fini(&rule);
}

static void test_durations(void **state)
{
	struct ky_trigger_rule rule = parse("syscall_exit_fsync if ret < 0 with duration >= 100ms");
	const struct ky_trigger_condition *c = &rule.condition;

	(void)state;
	assert_int_equal(c->kind, KY_TRIGGER_DURATION);
	assert_string_equal(c->first.pattern, "syscall_entry_fsync");
	assert_null(c->first.filter);
	assert_string_equal(c->second.pattern, "syscall_exit_fsync");
	assert_string_equal(c->second.filter, "ret < 0");
	assert_int_equal(c->n_keys, 1);
	assert_string_equal(c->keys[0].begin, "$ctx.tid");
	assert_int_equal(c->compare, KY_TRIGGER_GE);
	assert_int_equal(c->duration_ns, 100 * MS);
	ky_trigger_rule_fini(&rule);
	rule = parse("syscall:fsync with duration > 1s");
	assert_string_equal(rule.condition.second.pattern, "syscall_exit_fsync");
	ky_trigger_rule_fini(&rule);
	rule = parse(
		"sched_waking->sched_switch if next_prio < 0 by tid = next_tid, $cpu with duration < 2us");
	assert_string_equal(rule.condition.first.pattern, "sched_waking");
	assert_string_equal(rule.condition.second.filter, "next_prio < 0");
	assert_int_equal(rule.condition.n_keys, 2);
	assert_string_equal(rule.condition.keys[0].begin, "tid");
	assert_string_equal(rule.condition.keys[0].end, "next_tid");
	assert_string_equal(rule.condition.keys[1].end, "$cpu");
	ky_trigger_rule_fini(&rule);
	rule = parse("shop:pay_end with duration > 1ms");
	assert_string_equal(rule.condition.first.pattern, "shop:pay_begin");
	assert_string_equal(rule.condition.keys[0].end, "$ctx.vtid");
	ky_trigger_rule_fini(&rule);
	rule = parse("shop:beat without shop:beat within 5s");
	assert_int_equal(rule.condition.kind, KY_TRIGGER_WITHOUT);
	assert_int_equal(rule.condition.within_ns, 5 * S);
	ky_trigger_rule_fini(&rule);
}

static void test_amounts(void **state)
{
	struct ky_trigger_rule rule = parse("loss > 100");

	(void)state;
	assert_int_equal(rule.condition.kind, KY_TRIGGER_LOSS);
	assert_int_equal(rule.condition.number, 100);
	ky_trigger_rule_fini(&rule);
	rule = parse("fill > 80%");
	assert_int_equal(rule.condition.number, 80);
	ky_trigger_rule_fini(&rule);
	rule = parse("size > 1G once per 1min");
	assert_int_equal(rule.condition.number, 1 << 30);
	ky_trigger_rule_fini(&rule);
	rule = parse("at 03:10:09");
	assert_int_equal(rule.condition.number, 3 * 3600 + 10 * 60 + 9);
	ky_trigger_rule_fini(&rule);
	rule = parse("every 10min");
	assert_int_equal(rule.condition.within_ns, 600 * S);
	ky_trigger_rule_fini(&rule);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *text;
		uint32_t column;
	} bad[] = {
		{"", 1},
		{"if x", 1},
		{"a if", 5},
		{"a if x == \"b", 11},
		{"a if (x", 6},
		{"a if x)", 7},
		{"a 0 times within 1s", 3},
		{"a 5 within 1s", 5},
		{"a 5 times within", 17},
		{"a 5 times within 0", 18},
		{"a with duration 5s", 17},
		{"a with duration > 5s", 1},
		{"a -> b", 7},
		{"a -> b by with duration > 1s", 11},
		{"a,b -> c with duration > 1s", 1},
		{"a without b", 12},
		{"a once 5s", 8},
		{"a first 0", 9},
		{"a whenever", 3},
		{"fill > 80", 8},
		{"fill > 100%", 8},
		{"size > much", 8},
		{"loss < 5", 6},
		{"at 25:00", 4},
		{"at noon", 4},
		{"every 1ms", 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ky_trigger_rule rule;
		struct kymo_error err;

		if (ky_trigger_rule_parse(&rule, bad[i].text, &err) != KYMO_E_INVALID)
			fail_msg("'%s' is accepted", bad[i].text);
		if (err.column != bad[i].column)
			fail_msg("'%s': column %u: %s", bad[i].text, err.column, err.message);
		ky_trigger_rule_fini(&rule);
	}
}

static void test_actions(void **state)
{
	static const char *const bad[] = {
		"", "snap", "run", "run:", "stop", "start:", "rotate:x", "mark\nx"};
	struct ky_trigger_rule rule = parse("a");
	struct kymo_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ky_trigger_rule_add_action(&rule, bad[i], &err), KYMO_E_INVALID);
	assert_int_equal(ky_trigger_rule_add_action(&rule, "run:echo a:b", &err), 0);
	assert_int_equal(ky_trigger_rule_add_action(&rule, "snapshot", &err), 0);
	assert_string_equal(rule.actions.data[0].argument, "echo a:b");
	assert_null(rule.actions.data[1].argument);
	ky_trigger_rule_fini(&rule);
}

struct machine {
	struct ky_trigger_rule rule;
	struct ky_trigger_match match;
	struct ky_trigger_hit hit;
};

static void begin(struct machine *m, const char *text)
{
	m->rule = parse(text);
	assert_int_equal(ky_trigger_match_init(&m->match, &m->rule.condition, 0), 0);
}

static void end(struct machine *m)
{
	ky_trigger_match_fini(&m->match);
	ky_trigger_rule_fini(&m->rule);
}

static bool event(struct machine *m, bool is_second, uint64_t key, int64_t ns)
{
	return ky_trigger_match_event(&m->match, is_second, key, ns, &m->hit);
}

static void test_limits(void **state)
{
	struct machine m;

	(void)state;
	begin(&m, "a once per 100ms first 3");
	assert_true(event(&m, false, 0, 1 * S));
	assert_false(event(&m, false, 0, 1 * S + 99 * MS));
	assert_true(event(&m, false, 0, 1 * S + 100 * MS));
	assert_true(event(&m, false, 0, 2 * S));
	assert_false(event(&m, false, 0, 9 * S));
	assert_int_equal(m.match.n_fired, 3);
	assert_int_equal(m.match.n_held, 2);
	end(&m);
	begin(&m, "a once per 0");
	for (int i = 0; i < 10; i++)
		assert_true(event(&m, false, 0, 5));
	end(&m);
}

static void test_times(void **state)
{
	struct machine m;

	(void)state;
	begin(&m, "a 3 times within 100ms once per 0");
	assert_false(event(&m, false, 0, 0));
	assert_false(event(&m, false, 0, 90 * MS));
	assert_false(event(&m, false, 0, 110 * MS));
	/* 90, 110 and 190. */
	assert_true(event(&m, false, 0, 190 * MS));
	/* The next time needs as many again. */
	assert_false(event(&m, false, 0, 191 * MS));
	assert_false(event(&m, false, 0, 192 * MS));
	assert_true(event(&m, false, 0, 193 * MS));
	end(&m);
}

static void test_pairs(void **state)
{
	struct machine m;

	(void)state;
	begin(&m, "a -> b by x with duration > 10ms once per 0");
	assert_false(event(&m, false, 1, 0));
	assert_false(event(&m, false, 2, 5 * MS));
	assert_false(event(&m, true, 3, 6 * MS));
	assert_false(event(&m, true, 2, 15 * MS));
	assert_true(event(&m, true, 1, 16 * MS));
	assert_true(m.hit.has_duration);
	assert_int_equal(m.hit.duration_ns, 16 * MS);
	/* It has ended. */
	assert_false(event(&m, true, 1, 90 * MS));
	/* Begins without ends take memory up to a limit. */
	for (uint64_t key = 10; key < 10 + 2 * KY_TRIGGER_OPEN_MAX; key++)
		(void)event(&m, false, key, 100 * MS);
	assert_int_equal(m.match.open.len, KY_TRIGGER_OPEN_MAX);
	assert_int_equal(m.match.n_dropped, KY_TRIGGER_OPEN_MAX);
	end(&m);
}

static void test_without(void **state)
{
	struct machine m;

	(void)state;
	begin(&m, "a without b by x within 100ms once per 0");
	assert_int_equal(ky_trigger_match_due(&m.match), INT64_MAX);
	(void)event(&m, false, 1, 10 * MS);
	(void)event(&m, false, 2, 20 * MS);
	/* The first one counts. */
	(void)event(&m, false, 1, 50 * MS);
	assert_int_equal(ky_trigger_match_due(&m.match), 110 * MS);
	(void)event(&m, true, 1, 60 * MS);
	assert_int_equal(ky_trigger_match_due(&m.match), 120 * MS);
	assert_false(ky_trigger_match_expire(&m.match, 119 * MS, &m.hit));
	assert_true(ky_trigger_match_expire(&m.match, 500 * MS, &m.hit));
	assert_int_equal(m.hit.ns, 120 * MS);
	assert_false(ky_trigger_match_expire(&m.match, 500 * MS, &m.hit));
	end(&m);
}

static void test_amounts_fire(void **state)
{
	struct machine m;

	(void)state;
	begin(&m, "loss > 10 once per 0");
	assert_false(ky_trigger_match_amount(&m.match, 10, 1));
	assert_true(ky_trigger_match_amount(&m.match, 11, 2));
	assert_false(ky_trigger_match_amount(&m.match, 21, 3));
	assert_true(ky_trigger_match_amount(&m.match, 22, 4));
	end(&m);
	begin(&m, "fill > 50% once per 0");
	assert_false(ky_trigger_match_amount(&m.match, 50, 1));
	assert_true(ky_trigger_match_amount(&m.match, 51, 1));
	end(&m);
	begin(&m, "every 2s once per 0");
	assert_int_equal(ky_trigger_match_due(&m.match), 2 * S);
	assert_true(ky_trigger_match_expire(&m.match, 2 * S + 5, &m.hit));
	assert_int_equal(ky_trigger_match_due(&m.match), 4 * S + 5);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),	cmocka_unit_test(test_durations),
		cmocka_unit_test(test_amounts), cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_actions), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_times),	cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_without), cmocka_unit_test(test_amounts_fire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
