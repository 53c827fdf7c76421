/* SPDX-License-Identifier: MIT */
/*
 * What events of Chrome's JSON trace format have in common: texts, ids, names of threads, and durations that are open. log->state has
 * the names and durations between ky_chrome_threads_open() and ky_chrome_threads_close(). `object` is an event, a json_t.
 *
 * Threads: one at a time per log.
 */
#ifndef KY_IMPORT_LOG_CHROME_H
#define KY_IMPORT_LOG_CHROME_H

#include <jansson.h>

#include "import/logs/log-format.h"

/* Names are cut behind so many bytes. */
#define KY_CHROME_NAME_BYTES 200

/* The text of member @name; "": the member is no text. */
const char *ky_chrome_text(json_t *object, const char *name);
/* The number of a process or thread. Some programs write texts: those are known by their hash. */
int64_t ky_chrome_id(json_t *object, const char *name);

/* 0 or KYMO_E_MEMORY. */
int ky_chrome_threads_open(struct ky_log_file *log);
void ky_chrome_threads_close(struct ky_log_file *log);

/* @object is an event of phase M, and may name a process or thread. 0 or KYMO_E_MEMORY. */
int ky_chrome_keep_name(struct ky_log_file *log, json_t *object);
/* The name of thread @tid of @pid, which are those of @object; else that of the process; else "". */
const char *ky_chrome_name(const struct ky_log_file *log, json_t *object, int64_t pid, int64_t tid);

/* @object begins a duration @name of its thread. 0 or KYMO_E_MEMORY. */
int ky_chrome_push(struct ky_log_file *log, json_t *object, const char *name);
/* @object ends the innermost duration of its thread: @name gets the name of that, or "". */
void ky_chrome_pop(struct ky_log_file *log, json_t *object, char name[KY_CHROME_NAME_BYTES + 1]);

#endif
