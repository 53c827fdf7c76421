/* SPDX-License-Identifier: MIT */
/* An automaton with a set of places, after Thompson: it goes through the text once. */
#include "view/tsp/tsp-pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MAX_STEPS   1024
#define MAX_CLASSES 64
#define MAX_DEPTH   32

enum op {
	BYTE,
	ANY,
	CLASS,
	BEGIN,
	END,
	SPLIT, /* goes to two places */
	JUMP,
	MATCH,
};

/* Places are relative: so a step can be put before others. */
struct step {
	enum op op;
	uint8_t byte, class;
	int16_t first, second;
};

struct class
{
	uint8_t bits[32];
};

struct set {
	uint16_t places[MAX_STEPS];
	size_t n;
	uint8_t has[MAX_STEPS];
};

struct ky_tsp_pattern {
	struct step steps[MAX_STEPS];
	size_t n, n_classes;
	struct class classes[MAX_CLASSES];
	struct set sets[2];
	uint16_t stack[2 * MAX_STEPS];
	/* While it is parsed: */
	const char *at;
	bool is_bad;
};

/* ---- parsing ----------------------------------------------------------------------------- */

/* Put @step before place @place. */
static void tsp_pattern_insert(struct ky_tsp_pattern *pattern, size_t place, struct step step)
{
	if (pattern->n + 1 >= MAX_STEPS) {
		pattern->is_bad = true;
		return;
	}
	memmove(&pattern->steps[place + 1], &pattern->steps[place],
		(pattern->n - place) * sizeof(step));
	pattern->steps[place] = step;
	pattern->n++;
}

static void tsp_pattern_add(struct ky_tsp_pattern *pattern, enum op op, int first, int second)
{
	tsp_pattern_insert(
		pattern, pattern->n,
		(struct step){.op = op, .first = (int16_t)first, .second = (int16_t)second});
}

static void tsp_pattern_set_bits(struct class *class, unsigned int from, unsigned int to)
{
	for (unsigned int c = from; c <= to; c++)
		class->bits[c / 8] |= (uint8_t)(1U << c % 8);
}

static void invert(struct class *class)
{
	for (size_t i = 0; i < sizeof(class->bits); i++)
		class->bits[i] = (uint8_t) ~class->bits[i];
}

/* \d and so on. False: it is no class. */
static bool named_class(char c, struct class *class)
{
	*class = (struct class){{0}};
	switch (c | 0x20) {
	case 'd':
		tsp_pattern_set_bits(class, '0', '9');
		break;
	case 'w':
		tsp_pattern_set_bits(class, '0', '9');
		tsp_pattern_set_bits(class, 'a', 'z');
		tsp_pattern_set_bits(class, 'A', 'Z');
		tsp_pattern_set_bits(class, '_', '_');
		break;
	case 's':
		tsp_pattern_set_bits(class, '\t', '\r');
		tsp_pattern_set_bits(class, ' ', ' ');
		break;
	default:
		return false;
	}
	if (!(c & 0x20))
		invert(class);
	return true;
}

static void tsp_pattern_add_class(struct ky_tsp_pattern *pattern, const struct class *class)
{
	if (pattern->n_classes >= MAX_CLASSES) {
		pattern->is_bad = true;
		return;
	}
	pattern->classes[pattern->n_classes] = *class;
	tsp_pattern_insert(pattern, pattern->n,
			   (struct step){.op = CLASS, .class = (uint8_t)pattern->n_classes++});
}

/* One end of a range, or a single character, of [...]. */
static unsigned int class_byte(struct ky_tsp_pattern *pattern)
{
	if (*pattern->at == '\\' && pattern->at[1])
		pattern->at++;
	if (!*pattern->at) {
		pattern->is_bad = true;
		return 0;
	}
	return (unsigned char)*pattern->at++;
}

static void parse_class(struct ky_tsp_pattern *pattern)
{
	struct class class = {{0}}, named;
	bool is_inverse = *pattern->at == '^', is_first = true;

	pattern->at += is_inverse;
	for (; !pattern->is_bad && (*pattern->at != ']' || is_first); is_first = false) {
		unsigned int from, to;

		if (*pattern->at == '\\' && named_class(pattern->at[1], &named)) {
			for (size_t i = 0; i < sizeof(class.bits); i++)
				class.bits[i] |= named.bits[i];
			pattern->at += 2;
			continue;
		}
		from = to = class_byte(pattern);
		if (*pattern->at == '-' && pattern->at[1] && pattern->at[1] != ']') {
			pattern->at++;
			to = class_byte(pattern);
		}
		pattern->is_bad |= to < from;
		if (!pattern->is_bad)
			tsp_pattern_set_bits(&class, from, to);
	}
	pattern->at += !pattern->is_bad;
	if (is_inverse)
		invert(&class);
	tsp_pattern_add_class(pattern, &class);
}

static void parse_escape(struct ky_tsp_pattern *pattern)
{
	static const char plain[] = "ntr", values[] = "\n\t\r";
	char c = *pattern->at;
	struct class class;
	const char *found;

	if (!c) {
		pattern->is_bad = true;
		return;
	}
	pattern->at++;
	if (named_class(c, &class)) {
		tsp_pattern_add_class(pattern, &class);
		return;
	}
	found = strchr(plain, c);
	/* Letters and digits have meanings that are not here. */
	if (!found && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
		pattern->is_bad = true;
	tsp_pattern_insert(
		pattern, pattern->n,
		(struct step){.op = BYTE, .byte = (uint8_t)(found ? values[found - plain] : c)});
}

static void parse_choice(struct ky_tsp_pattern *pattern, unsigned int depth);

static void tsp_pattern_parse_group(struct ky_tsp_pattern *pattern, unsigned int depth)
{
	if (strncmp(pattern->at, "?:", 2) == 0)
		pattern->at += 2;
	if (depth >= MAX_DEPTH || *pattern->at == '?')
		pattern->is_bad = true;
	else
		parse_choice(pattern, depth + 1);
	pattern->is_bad |= *pattern->at != ')';
	pattern->at += !pattern->is_bad;
}

static void parse_atom(struct ky_tsp_pattern *pattern, unsigned int depth)
{
	char c = *pattern->at++;

	switch (c) {
	case '(':
		tsp_pattern_parse_group(pattern, depth);
		break;
	case '[':
		parse_class(pattern);
		break;
	case '\\':
		parse_escape(pattern);
		break;
	case '.':
		tsp_pattern_add(pattern, ANY, 0, 0);
		break;
	case '^':
		tsp_pattern_add(pattern, BEGIN, 0, 0);
		break;
	case '$':
		tsp_pattern_add(pattern, END, 0, 0);
		break;
	case '*':
	case '+':
	case '?':
	case '{':
		pattern->is_bad = true;
		break;
	default:
		tsp_pattern_insert(pattern, pattern->n,
				   (struct step){.op = BYTE, .byte = (uint8_t)c});
	}
}

/* What is from @begin on, repeated as the next character says. */
static void parse_repeat(struct ky_tsp_pattern *pattern, size_t begin)
{
	const struct step split = {.op = SPLIT, .first = 1};
	char c = *pattern->at++;

	if (c == '+') {
		tsp_pattern_add(pattern, SPLIT, (int)begin - (int)pattern->n, 1);
	} else {
		tsp_pattern_insert(pattern, begin, split);
		if (c == '*')
			tsp_pattern_add(pattern, JUMP, (int)begin - (int)pattern->n, 0);
		pattern->steps[begin].second = (int16_t)(pattern->n - begin);
	}
	/* "*?" takes as little as it can: whether it matches is the same. */
	if (*pattern->at == '?')
		pattern->at++;
}

static void parse_sequence(struct ky_tsp_pattern *pattern, unsigned int depth)
{
	while (!pattern->is_bad && *pattern->at && !strchr("|)", *pattern->at)) {
		size_t begin = pattern->n;

		parse_atom(pattern, depth);
		if (!pattern->is_bad && *pattern->at && strchr("*+?", *pattern->at))
			parse_repeat(pattern, begin);
	}
}

static void parse_choice(struct ky_tsp_pattern *pattern, unsigned int depth)
{
	size_t begin = pattern->n, jump;

	parse_sequence(pattern, depth);
	while (!pattern->is_bad && *pattern->at == '|') {
		pattern->at++;
		tsp_pattern_insert(pattern, begin, (struct step){.op = SPLIT, .first = 1});
		jump = pattern->n;
		tsp_pattern_add(pattern, JUMP, 0, 0);
		pattern->steps[begin].second = (int16_t)(pattern->n - begin);
		parse_sequence(pattern, depth);
		pattern->steps[jump].first = (int16_t)(pattern->n - jump);
	}
}

int ky_tsp_pattern_new(const char *text, struct ky_tsp_pattern **made, struct kymo_error *err)
{
	struct ky_tsp_pattern *pattern = calloc(1, sizeof(*pattern));

	if (!pattern)
		return ky_error_nomem(err);
	pattern->at = text;
	parse_choice(pattern, 0);
	pattern->is_bad |= *pattern->at != '\0';
	tsp_pattern_add(pattern, MATCH, 0, 0);
	if (!pattern->is_bad) {
		*made = pattern;
		return KYMO_OK;
	}
	free(pattern);
	return ky_error_set(err, KYMO_E_INVALID,
			    "the regular expression is malformed, too long, or has a part that the "
			    "search does not know");
}

void ky_tsp_pattern_free(struct ky_tsp_pattern *pattern)
{
	free(pattern);
}

/* ---- matching ---------------------------------------------------------------------------- */

/* Add @place and what follows without a character. True: the whole pattern is there. */
static bool tsp_pattern_reach(struct ky_tsp_pattern *pattern, struct set *set, size_t place,
			      bool at_begin, bool at_end)
{
	size_t n = 0;

	pattern->stack[n++] = (uint16_t)place;
	while (n) {
		size_t i = pattern->stack[--n];
		const struct step *step = &pattern->steps[i];

		if (set->has[i])
			continue;
		set->has[i] = 1;
		set->places[set->n++] = (uint16_t)i;
		if (step->op == MATCH)
			return true;
		if (step->op == SPLIT)
			pattern->stack[n++] = (uint16_t)((int)i + step->second);
		if (step->op == SPLIT || step->op == JUMP)
			pattern->stack[n++] = (uint16_t)((int)i + step->first);
		else if ((step->op == BEGIN && at_begin) || (step->op == END && at_end))
			pattern->stack[n++] = (uint16_t)(i + 1);
	}
	return false;
}

static bool takes(const struct ky_tsp_pattern *pattern, const struct step *step, uint8_t c)
{
	switch (step->op) {
	case BYTE:
		return step->byte == c;
	case ANY:
		return true;
	case CLASS:
		return pattern->classes[step->class].bits[c / 8] >> c % 8 & 1;
	default:
		return false;
	}
}

static void tsp_pattern_clear(struct set *set)
{
	for (size_t i = 0; i < set->n; i++)
		set->has[set->places[i]] = 0;
	set->n = 0;
}

bool ky_tsp_pattern_finds(struct ky_tsp_pattern *pattern, const char *text, size_t len)
{
	struct set *now = &pattern->sets[0], *next = &pattern->sets[1], *swap;
	bool is_found = false;

	tsp_pattern_clear(now);
	for (size_t i = 0; !is_found; i++) {
		is_found = tsp_pattern_reach(pattern, now, 0, i == 0, i == len);
		if (is_found || i == len)
			break;
		tsp_pattern_clear(next);
		for (size_t k = 0; k < now->n && !is_found; k++) {
			const struct step *step = &pattern->steps[now->places[k]];

			if (takes(pattern, step, (uint8_t)text[i]))
				is_found =
					tsp_pattern_reach(pattern, next, (size_t)now->places[k] + 1,
							  false, i + 1 == len);
		}
		swap = now;
		now = next;
		next = swap;
	}
	tsp_pattern_clear(now);
	tsp_pattern_clear(next);
	return is_found;
}
