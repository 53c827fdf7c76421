/* SPDX-License-Identifier: MIT */
/* Small parsers and helpers for texts that users write: sizes, durations, wildcards. */
#ifndef KY_BASE_TEXT_H
#define KY_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "4096", "64k", "8M", "1G" (also KiB, MiB, GiB: the same powers of 1024). 0 or KYMO_E_INVALID. */
int ky_parse_size(const char *text, uint64_t *bytes);
/* "5s", "100ms", "20us", "7ns", "2min", "1h", "1.5s"; a bare number is seconds. */
int ky_parse_duration(const char *text, uint64_t *ns);
/* A decimal number, or a hexadecimal one with 0x; nothing else may follow. */
int ky_parse_u64(const char *text, uint64_t *value);

/* Returns the value of digit @c, 0 to 15 (hexadecimal or less); else KY_NO_DIGIT. */
#define KY_NO_DIGIT 99
int ky_digit_value(int c);

/*
 * Matches the whole of @text: '*' stands for any run of characters, '?' for one character; '\'
 * quotes.
 */
bool ky_glob_match(const char *pattern, const char *text);
/*
 * Whether the @n wildcards @globs select @text. The last matching wildcard decides: '!' before a
 * wildcard excludes texts. Without wildcards, or when the first one has '!', texts are selected at
 * first.
 */
bool ky_glob_choose(const char *const *globs, size_t n, const char *text);

/* "2a6422d0-6cee-11e0-8c08-cb07d7b3a564", and nothing else. */
bool ky_parse_uuid(const char *text, uint8_t uuid[16]);
/* Formats a UUID; returns @out. */
#define KY_UUID_TEXT_BYTES 37
char *ky_format_uuid(char out[KY_UUID_TEXT_BYTES], const uint8_t uuid[16]);

/* Returns the number of single-character edits from @a to @b; for "did you mean". */
size_t ky_edit_distance(const char *a, const char *b);

/* "1.5 MiB", "312 B": for people. @out has at least 32 bytes. Returns @out. */
char *ky_format_bytes(char *out, uint64_t bytes);
/* "1.250 ms", "3.000 s": for people. @out has at least 32 bytes. Returns @out. */
char *ky_format_duration(char *out, uint64_t ns);
/* "5min", "1500ms": a time that somebody has set, as ky_parse_duration() reads it. @out has at least 32 bytes. Returns @out. */
char *ky_format_setting(char *out, uint64_t ns);

#endif
