/* SPDX-License-Identifier: MIT */
/* --names, --fields and --color, as babeltrace2 understands them. */
#include "cli/reading/text-options.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/options/options.h"

struct word {
	const char *word;
	uint8_t bits;
};

/* What a word stands for when it does not add to the others, but is what they are added to. */
struct words {
	const char *option;
	const struct word *list;
	size_t len;
	uint8_t all, standard, chosen;
};

static const struct word name_words[] = {
	{"payload", KY_TEXT_NAME_PAYLOAD}, {"context", KY_TEXT_NAME_CONTEXT},
	{"scope", KY_TEXT_NAME_SCOPE},	   {"header", KY_TEXT_NAME_HEADER},
	{"args", KY_TEXT_NAME_PAYLOAD},	   {"arg", KY_TEXT_NAME_PAYLOAD},
	{"ctx", KY_TEXT_NAME_CONTEXT},
};

/* Call sites are in no trace; babeltrace2 knows the word and shows nothing. */
static const struct word field_words[] = {
	{"trace", KY_TEXT_FIELD_TRACE},
	{"trace:hostname", KY_TEXT_FIELD_HOSTNAME},
	{"trace:domain", KY_TEXT_FIELD_DOMAIN},
	{"trace:procname", KY_TEXT_FIELD_PROCNAME},
	{"trace:vpid", KY_TEXT_FIELD_VPID},
	{"loglevel", KY_TEXT_FIELD_LOGLEVEL},
	{"emf", KY_TEXT_FIELD_EMF},
	{"callsite", 0},
};

#define N_WORDS(list) (sizeof(list) / sizeof((list)[0]))

static const struct words names = {
	"names",
	name_words,
	N_WORDS(name_words),
	KY_TEXT_NAMES_ALL,
	KY_TEXT_NAMES_DEFAULT,
	KY_TEXT_NAMES_CHOSEN,
};
static const struct words fields = {
	"fields",
	field_words,
	N_WORDS(field_words),
	KY_TEXT_FIELDS_ALL,
	KY_TEXT_FIELDS_DEFAULT,
	KY_TEXT_FIELDS_CHOSEN,
};

/* What one list, or several of them, have said so far. */
struct choice {
	uint8_t base, added;
	const char *base_word; /* of this list; NULL: none */
	bool adds;	       /* this list */
};

static int unknown_word(const struct words *words, const char *word, struct kymo_error *err)
{
	const char *known[16] = {"all", "none", "default"}, *near;
	size_t n = 3;

	for (size_t i = 0; i < words->len && n < 16; i++)
		known[n++] = words->list[i].word;
	ky_error_set(err, KYMO_E_INVALID, "--%s: unknown word '%s'", words->option, word);
	near = ky_nearest(word, known, n);
	if (near)
		ky_error_hint(err, "did you mean '%s'?", near);
	else
		ky_error_hint(err, "kymo print --help lists them");
	return KYMO_E_INVALID;
}

/* all, none, default: at most one of them in a list. */
static int text_options_set_base(const struct words *words, struct choice *choice, const char *word,
				 struct kymo_error *err)
{
	if (choice->base_word && strcmp(choice->base_word, word) != 0)
		return ky_error_set(err, KYMO_E_INVALID, "--%s: '%s' and '%s' exclude each other",
				    words->option, choice->base_word, word);
	choice->base = strcmp(word, "all") == 0	   ? words->all
		       : strcmp(word, "none") == 0 ? 0
						   : words->standard;
	return KYMO_OK;
}

static int add_word(const struct words *words, struct choice *choice, const char *word,
		    struct kymo_error *err)
{
	static const char *const bases[] = {"all", "none", "default"};

	for (size_t i = 0; i < N_WORDS(bases); i++) {
		if (strcmp(word, bases[i]) == 0) {
			int ret = text_options_set_base(words, choice, bases[i], err);

			choice->base_word = bases[i];
			return ret;
		}
	}
	for (size_t i = 0; i < words->len; i++) {
		if (strcmp(word, words->list[i].word) == 0) {
			choice->added |= words->list[i].bits;
			choice->adds = true;
			return KYMO_OK;
		}
	}
	return unknown_word(words, word, err);
}

/* Single words replace what was the base, but not each other, in however many lists. */
static int add_list(const struct words *words, struct choice *choice, const char *list,
		    struct kymo_error *err)
{
	char *copy = strdup(list), *save = NULL;
	int ret = copy ? KYMO_OK : ky_error_nomem(err);

	choice->base_word = NULL;
	choice->adds = false;
	for (char *word = copy ? strtok_r(copy, ", \t\n", &save) : NULL; word && ret == KYMO_OK;
	     word = strtok_r(NULL, ", \t\n", &save))
		ret = add_word(words, choice, word, err);
	if (choice->adds && !choice->base_word)
		choice->base = 0;
	free(copy);
	return ret;
}

static int text_options_choose(const struct words *words, const struct ky_text_list *lists,
			       uint8_t *bits, struct kymo_error *err)
{
	struct choice choice = {.base = words->standard};
	int ret = KYMO_OK;

	for (size_t i = 0; i < lists->len && ret == KYMO_OK; i++)
		ret = add_list(words, &choice, lists->items[i], err);
	*bits = choice.base | choice.added | words->chosen;
	return ret;
}

static bool text_options_env_is(const char *name, const char *value)
{
	const char *text = getenv(name);

	return text && strcasecmp(text, value) == 0;
}

static uint8_t colours_on(void)
{
	const char *bold = getenv("BABELTRACE_TERM_COLOR_BRIGHT_MEANS_BOLD");

	/* kitty has bold colours that are not bright. */
	if (bold ? strcmp(bold, "0") == 0 : text_options_env_is("TERM", "xterm-kitty"))
		return KY_TEXT_COLOURS_BRIGHT;
	return KY_TEXT_COLOURS;
}

static int choose_colours(const char *when, bool to_stdout, uint8_t *colours,
			  struct kymo_error *err)
{
	bool on = false;

	if (!when || strcmp(when, "auto") == 0)
		on = to_stdout && (text_options_env_is("BABELTRACE_TERM_COLOR", "always") ||
				   ky_cli_colour(stdout));
	else if (strcmp(when, "always") == 0)
		on = true;
	else if (strcmp(when, "never") != 0)
		return ky_error_set(err, KYMO_E_INVALID,
				    "--color needs auto, always or never, not '%s'", when);
	*colours = on && !text_options_env_is("BABELTRACE_TERM_COLOR", "never") ? colours_on()
										: KY_TEXT_PLAIN;
	return KYMO_OK;
}

int ky_cli_text_style(const struct ky_text_words *words, bool to_stdout,
		      struct ky_text_options *text, struct kymo_error *err)
{
	int ret = text_options_choose(&names, &words->names, &text->names, err);

	if (ret == KYMO_OK)
		ret = text_options_choose(&fields, &words->fields, &text->fields, err);
	if (ret == KYMO_OK && words->raw && words->decoded)
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "--raw-values and --decoded-values exclude each other");
	text->decode = words->decoded || (!words->raw && to_stdout && isatty(STDOUT_FILENO));
	if (ret == KYMO_OK)
		ret = choose_colours(words->color, to_stdout, &text->colours, err);
	return ret;
}

void ky_cli_text_end(const struct ky_text_options *text)
{
	if (text->colours != KY_TEXT_PLAIN)
		fputs("\033[0m", stdout);
}
