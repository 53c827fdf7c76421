/* SPDX-License-Identifier: MIT */
/* Damage that a reader skipped (--recover): a warning for each, and a summary at the end. */
#ifndef KY_CLI_READING_DAMAGE_H
#define KY_CLI_READING_DAMAGE_H

#include "flow/graph/flow.h"

/* Warn of the damage of @loss, if it is one, and remember it. */
void ky_cli_damage(const struct ky_loss *loss);

/*
 * The result of the command: @ret when it is an error, or when there was no damage; else
 * KYMO_E_FORMAT, and the amount of skipped data in @err.
 */
int ky_cli_damage_end(int ret, struct kymo_error *err);

/* A stage that warns of the damage that passes. Takes @input over, on failure too. */
int ky_cli_damage_stage(struct ky_flow *input, struct ky_flow **flow, struct kymo_error *err);

#endif
