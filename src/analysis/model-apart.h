/* SPDX-License-Identifier: MIT */
/*
 * Telling listeners in another thread, later: what happened is copied, in its order, and a task of the crew
 * calls their hooks while the model goes on. Only for listeners that can bear it; see struct ky_listener.
 *
 * Who may run beside whom: put and settle are the model's thread's. The task runs beside both, once at a
 * time, in whatever thread is free: that of the model, too, where it would have to wait.
 */
#ifndef KY_ANALYSIS_MODEL_APART_H
#define KY_ANALYSIS_MODEL_APART_H

#include "analysis/model.h"

struct ky_apart;

/* What can be told apart. */
enum ky_apart_kind {
	KY_APART_CALL,
	KY_APART_IO,
	KY_APART_REQUEST,
	KY_APART_PACKET,
	KY_APART_MEMORY,
	KY_APART_KINDS,
};

/* NULL: out of memory. @crew, of two jobs at least, must outlive it. */
struct ky_apart *ky_apart_new(struct ky_crew *crew);
void ky_apart_free(struct ky_apart *apart); /* settled; NULL is fine */

/* Has it only hooks that can be told apart? */
bool ky_apart_can(const struct ky_listener *listener);
/* While nothing is under way. 0 or KYMO_E_MEMORY. */
int ky_apart_listen(struct ky_apart *apart, const struct ky_listener *listener);
void ky_apart_unlisten(struct ky_apart *apart);

/*
 * @what, the struct that the kind's hook takes, happened; nothing is done where nobody listens. 0, or the
 * negative status that a hook returned.
 */
int ky_apart_put(struct ky_apart *apart, enum ky_apart_kind kind, const void *what);
/* All that happened has been told, and no task is under way. The same. */
int ky_apart_settle(struct ky_apart *apart);

#endif
