/* SPDX-License-Identifier: MIT */
#include "import/logs/log-perf-script.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/error.h"

/* What perf records at most is 127 frames of each kind, unless kernel.perf_event_max_stack is higher. */
#define FRAMES_MAX 1024u
/* Names of templates are long, and perf joins the names of inlined functions. */
#define FUNCTION_MAX_BYTES 4096u
/* An event has no room for more; the frames come from the innermost outwards, so the outermost are left out. */
#define STACK_MAX_BYTES (KY_LOG_EVENT_MAX - 4 * FUNCTION_MAX_BYTES)
/* Machines with more are not known, and each CPU costs the trace a stream. */
#define CPUS_MAX      2048
#define NEXT_BYTES    UINT64_C(65536)
#define ADDRESS_WIDTH 16

/* ---- the head ------------------------------------------------------------------------- */

struct perf_script_word {
	const char *at;
	size_t len;
};

/* The word at or after *@at; False: none is left. */
static bool perf_script_word(const char **at, const char *end, struct perf_script_word *word)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
	word->at = *at;
	while (*at < end && **at != ' ' && **at != '\t')
		(*at)++;
	word->len = (size_t)(*at - word->at);
	return word->len;
}

static bool perf_script_is_digits(const struct perf_script_word *word)
{
	for (size_t i = 0; i < word->len; i++)
		if (!isdigit((unsigned char)word->at[i]))
			return false;
	return word->len && word->len < 19;
}

/* The number that @digits are. No NUL ends them. */
static int64_t perf_script_number(const struct perf_script_word *digits)
{
	int64_t number = 0;

	for (size_t i = 0; i < digits->len; i++)
		number = number * 10 + (digits->at[i] - '0');
	return number;
}

/* "64730.196334:" */
static bool perf_script_time(const struct perf_script_word *word, int64_t *ns)
{
	const char *at = word->at, *colon = word->at + word->len - 1;

	return word->len > 3 && *colon == ':' && isdigit((unsigned char)*at) &&
	       memchr(at, '.', word->len) && ky_log_time_seconds(&at, colon, ns) && at == colon;
}

/* The same of times that are too large, or have too many digits. */
static bool perf_script_is_like_time(const struct perf_script_word *word)
{
	return word->len > 3 && word->at[word->len - 1] == ':' &&
	       isdigit((unsigned char)*word->at) && memchr(word->at, '.', word->len);
}

/* "[001]" */
static bool perf_script_cpu(const struct perf_script_word *word, int64_t *cpu)
{
	const struct perf_script_word digits = {word->at + 1, word->len - 2};

	if (word->len < 5 || word->len > 8 || *word->at != '[' || word->at[word->len - 1] != ']' ||
	    !perf_script_is_digits(&digits))
		return false;
	*cpu = perf_script_number(&digits);
	return true;
}

/* "32489" or "32489/32490": the thread is the second. @word is not empty. */
static bool perf_script_tid(const struct perf_script_word *word, int64_t *tid)
{
	const char *slash = memchr(word->at, '/', word->len), *end = word->at + word->len;
	const char *from = slash ? slash + 1 : word->at;
	/* "-1": nobody's. */
	bool is_negative = from < end && *from == '-';
	const struct perf_script_word digits = {from + is_negative,
						(size_t)(end - from) - is_negative};

	if (!perf_script_is_digits(&digits))
		return false;
	*tid = is_negative ? -perf_script_number(&digits) : perf_script_number(&digits);
	return *tid <= INT32_MAX && *tid >= INT32_MIN;
}

/* What follows the time: the period, if any, and the event. */
static bool log_perf_script_event(const char *at, const char *end, struct ky_perf_script_head *head)
{
	struct perf_script_word word;

	head->period = -1;
	if (!perf_script_word(&at, end, &word))
		return false;
	if (perf_script_is_digits(&word)) {
		head->period = perf_script_number(&word);
		if (!perf_script_word(&at, end, &word))
			return false;
	}
	if (word.len < 2 || word.at[word.len - 1] != ':')
		return false;
	head->event = word.at;
	head->event_len = word.len - 1;
	while (at < end && *at == ' ')
		at++;
	head->rest = at;
	return true;
}

/* perf writes ":4711" for a thread without a known name, ftrace "<...>". */
const char *ky_perf_script_comm(const char *text, size_t *len)
{
	static const char unknown[] = "<...>";

	while (*len && *text == ' ') {
		text++;
		(*len)--;
	}
	while (*len && text[*len - 1] == ' ')
		(*len)--;
	if ((*len > 1 && *text == ':' && (isdigit((unsigned char)text[1]) || text[1] == '-')) ||
	    (*len == sizeof(unknown) - 1 && memcmp(text, unknown, *len) == 0))
		*len = 0;
	return text;
}

/* The thread's name is what stands between @text and the thread's number, @tid. */
static void perf_script_take_comm(const char *text, const char *tid,
				  struct ky_perf_script_head *head)
{
	head->comm_len = (size_t)(tid - text);
	head->comm = ky_perf_script_comm(text, &head->comm_len);
}

bool ky_perf_script_head(const char *text, size_t len, struct ky_perf_script_head *head)
{
	const char *at = text, *end = text + len;
	struct perf_script_word word, before = {0}, two_before = {0};

	if (!len || *text == '\t')
		return false;
	head->cpu = 0;
	while (perf_script_word(&at, end, &word)) {
		if (perf_script_time(&word, &head->ns) && before.len) {
			bool has_cpu = perf_script_cpu(&before, &head->cpu);
			const struct perf_script_word *tid = has_cpu ? &two_before : &before;

			if (!tid->len || !perf_script_tid(tid, &head->tid))
				return false;
			perf_script_take_comm(text, tid->at, head);
			return log_perf_script_event(at, end, head);
		}
		two_before = before;
		before = word;
	}
	return false;
}

/*
 * The words before the event, the last first: the period and the CPU, which may be missing, the thread, and a word of its name. A number
 * before the event is a period only if there is a thread before it.
 */
static bool perf_script_untimed_words(const char *text, const struct perf_script_word *words,
				      size_t n, struct ky_perf_script_head *head)
{
	size_t i = 0;

	head->period = -1;
	head->cpu = 0;
	if (n > 2 && perf_script_is_digits(&words[0]) &&
	    (perf_script_cpu(&words[1], &head->cpu) || perf_script_tid(&words[1], &head->tid)))
		head->period = perf_script_number(&words[i++]);
	if (i < n && perf_script_cpu(&words[i], &head->cpu))
		i++;
	if (i + 1 >= n || head->cpu >= CPUS_MAX || !perf_script_tid(&words[i], &head->tid))
		return false;
	perf_script_take_comm(text, words[i].at, head);
	return true;
}

bool ky_perf_script_untimed_head(const char *text, size_t len, struct ky_perf_script_head *head)
{
	const char *at = text, *end = text + len;
	struct perf_script_word word, words[5] = {0};
	size_t n = 0;

	if (!len || *text == '\t' || *text == '#')
		return false;
	while (perf_script_word(&at, end, &word)) {
		/* A time, so the line is another one, or is damaged. */
		if (perf_script_is_like_time(&word))
			return false;
		memmove(words + 1, words, sizeof(words) - sizeof(words[0]));
		words[0] = word;
		n++;
	}
	word = words[0];
	n = n < 5 ? n : 5;
	if (n < 3 || word.len < 2 || word.at[word.len - 1] != ':')
		return false;
	head->event = word.at;
	head->event_len = word.len - 1;
	head->rest = end;
	head->ns = -1;
	return perf_script_untimed_words(text, words + 1, n - 1, head);
}

/* ---- the call stack ------------------------------------------------------------------- */

bool ky_perf_script_is_frame(const char *text, size_t len)
{
	const char *at = text, *end = text + len;
	struct perf_script_word word;
	struct ky_perf_script_head head;

	if (!len || (*text != '\t' && *text != ' ') || !perf_script_word(&at, end, &word) ||
	    word.len > 16 || at == end)
		return false;
	for (size_t i = 0; i < word.len; i++)
		if (!isxdigit((unsigned char)word.at[i]))
			return false;
	/* A thread's name may look like an address: "             cc1  4711 [000] 12.000001: sched:sched_switch: ...". */
	if (*text == ' ' && (ky_perf_script_head(text, len, &head) ||
			     ky_perf_script_untimed_head(text, len, &head)))
		return false;
	if (end[-1] == ')' || end[-1] == ']')
		return true;
	/* Without a file behind it: perf fills the address up with blanks. Words of prose may be hexadecimal, too. */
	return word.at + word.len - text >= ADDRESS_WIDTH && !memchr(text, '=', len);
}

/* Lines of some systems end with CR LF. */
static size_t perf_script_line(const char *text, size_t len)
{
	return len && text[len - 1] == '\r' ? len - 1 : len;
}

bool ky_perf_script_begins_untimed(const char *text, size_t len)
{
	struct ky_perf_script_head head;
	const char *end = text + len, *stop = NULL, *frame;

	for (; text < end; text = stop + 1) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			return false;
		if (stop > text && *text != '#')
			break;
	}
	if (text >= end || !ky_perf_script_untimed_head(
				   text, perf_script_line(text, (size_t)(stop - text)), &head))
		return false;
	frame = stop + 1;
	stop = memchr(frame, '\n', (size_t)(end - frame));
	if (!stop)
		return false;
	len = perf_script_line(frame, (size_t)(stop - frame));
	/* Lists in prose may look like frames; the brackets of the object are less common. */
	return len && frame[len - 1] == ')' && ky_perf_script_is_frame(frame, len);
}

bool ky_perf_script_stack_follows(const struct ky_log_file *log)
{
	size_t len;
	const char *text = ky_log_window(log, &len);
	const char *stop = text && len ? memchr(text, '\n', len) : NULL;

	return stop ? ky_perf_script_is_frame(text, perf_script_line(text, (size_t)(stop - text)))
		    : log->at < log->file.size_bytes;
}

/* The same, with the line's begin in the window. */
static bool perf_script_is_next(struct ky_log_file *log, const struct ky_log_frames *frames)
{
	uint64_t left = log->file.size_bytes - log->at;
	uint64_t want = left < NEXT_BYTES ? left : NEXT_BYTES;
	const char *text =
		want ? (const char *)ky_foreign_bytes(&log->file, log->at, want, "a line", NULL)
		     : NULL;
	const char *stop = text ? memchr(text, '\n', want) : NULL;

	return text &&
	       frames->is_frame(text, perf_script_line(text, stop ? (size_t)(stop - text) : want));
}

/*
 * Where " (/usr/lib/x86_64-linux-gnu/libc.so.6)" begins, which ends a frame: names of C++ functions have brackets, too, and so have files
 * that are gone, "(/opt/app (deleted))". NULL: the frame has none.
 */
static const char *perf_script_object(const char *at, const char *end)
{
	size_t depth = 0;

	if (end == at || end[-1] != ')')
		return NULL;
	for (const char *from = end - 1; from > at; from--) {
		depth += *from == ')';
		depth -= *from == '(';
		if (!depth)
			return from[-1] == ' ' ? from - 1 : NULL;
	}
	return NULL;
}

struct perf_script_frame {
	const char *function, *object; /* object: the file, in its brackets; may be empty */
	size_t function_len, object_len;
	bool is_kernel;
};

static void log_perf_script_frame(const char *text, size_t len, struct perf_script_frame *frame)
{
	const char *at = text, *end = text + len, *object;
	struct perf_script_word address;

	(void)perf_script_word(&at, end, &address);
	while (at < end && *at == ' ')
		at++;
	object = perf_script_object(at, end);
	frame->object = object ? object + 2 : "";
	frame->object_len = object ? (size_t)(end - 1 - frame->object) : 0;
	/* In the upper half of the addresses; a frame that was followed wrongly may have any address. */
	frame->is_kernel = address.len == 16 && *address.at >= '8' &&
			   (memcmp(address.at, "ffff", 4) == 0 ||
			    (frame->object_len > 7 && memcmp(frame->object, "[kernel", 7) == 0));
	if (object)
		end = object;
	for (const char *plus = end; plus > at + 1; plus--)
		if (plus[-1] == '+' && plus + 1 < text + len && plus[0] == '0' && plus[1] == 'x') {
			end = plus - 1;
			break;
		}
	frame->function = at;
	frame->function_len = (size_t)(end - at);
}

/* Names of Java have semicolons, which separate functions here: "Ljava/lang/Thread;.run". */
void ky_perf_script_add_name(struct ky_strbuf *folded, const char *name, size_t len)
{
	len = len < FUNCTION_MAX_BYTES ? len : FUNCTION_MAX_BYTES;
	for (size_t i = 0; i < len; i++)
		ky_strbuf_addc(folded, name[i] == ';' ? ':' : name[i]);
}

/* A function without a name is that of its file, as in reports of perf.data: "[libc.so.6]". */
static void perf_script_add_unknown(struct ky_strbuf *folded, const struct perf_script_frame *frame)
{
	static const char deleted[] = " (deleted)";
	const char *name = frame->object, *slash;
	size_t len = strnlen(name, frame->object_len);

	if (len > sizeof(deleted) - 1 &&
	    memcmp(name + len - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		len -= sizeof(deleted) - 1;
	slash = memrchr(name, '/', len);
	len -= slash ? (size_t)(slash + 1 - name) : 0;
	name = slash ? slash + 1 : name;
	if (!len || *name == '[') {
		ky_perf_script_add_name(folded, len ? name : "[unknown]", len ? len : 9);
		return;
	}
	ky_strbuf_addc(folded, '[');
	ky_perf_script_add_name(folded, name, len);
	ky_strbuf_addc(folded, ']');
}

void ky_perf_script_add_function(struct ky_strbuf *folded, const char *text, size_t len)
{
	static const char unknown[] = "[unknown]";
	struct perf_script_frame frame;

	log_perf_script_frame(text, len, &frame);
	if (frame.function_len == sizeof(unknown) - 1 &&
	    memcmp(frame.function, unknown, sizeof(unknown) - 1) == 0)
		perf_script_add_unknown(folded, &frame);
	else
		ky_perf_script_add_name(folded, frame.function,
					strnlen(frame.function, frame.function_len));
	ky_strbuf_adds(folded, frame.is_kernel ? "_[k]" : "");
}

/* @names has the functions with a NUL behind each, the innermost first. */
static void perf_script_fold(const struct ky_strbuf *names, const uint32_t *begins, size_t n,
			     struct ky_strbuf *folded)
{
	const char *text = ky_strbuf_text(names);

	for (size_t i = n; i-- > 0;) {
		ky_strbuf_adds(folded, text + begins[i]);
		if (i)
			ky_strbuf_addc(folded, ';');
	}
}

/* The number of functions. */
static size_t perf_script_add_frame(const struct ky_log_frames *frames, const char *text,
				    size_t len, struct ky_strbuf *names, uint32_t *begins, size_t n,
				    bool *is_cut)
{
	*is_cut |= n == FRAMES_MAX || names->len >= STACK_MAX_BYTES;
	if (*is_cut)
		return n;
	begins[n] = (uint32_t)names->len;
	frames->add(names, text, len);
	if (names->len == begins[n])
		return n;
	ky_strbuf_addc(names, '\0');
	return n + 1;
}

int ky_log_read_stack(struct ky_log_file *log, const struct ky_log_frames *frames,
		      const char *first, size_t len, struct ky_strbuf *folded)
{
	struct ky_strbuf names = KY_STRBUF_INIT;
	uint32_t begins[FRAMES_MAX];
	const char *line;
	bool is_cut = false;
	size_t n = len ? perf_script_add_frame(frames, first, len, &names, begins, 0, &is_cut) : 0;
	int ret = 1;

	while (ret > 0 && perf_script_is_next(log, frames)) {
		ret = ky_log_next_line(log, &line, &len);
		if (ret > 0)
			n = perf_script_add_frame(frames, line, len, &names, begins, n, &is_cut);
	}
	log->n_shortened += is_cut;
	perf_script_fold(&names, begins, n, folded);
	if (ret >= 0 && (ky_strbuf_failed(&names) || ky_strbuf_failed(folded)))
		ret = ky_error_nomem(log->err);
	ky_strbuf_fini(&names);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_perf_script_stack(struct ky_log_file *log, struct ky_strbuf *folded)
{
	static const struct ky_log_frames frames = {ky_perf_script_is_frame,
						    ky_perf_script_add_function};

	return ky_log_read_stack(log, &frames, NULL, 0, folded);
}
