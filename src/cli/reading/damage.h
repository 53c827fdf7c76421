/* SPDX-License-Identifier: MIT */
/* Damage that was passed over (--recover): each is told as a warning, and all of it at the end. */
#ifndef KY_CLI_READING_DAMAGE_H
#define KY_CLI_READING_DAMAGE_H

#include "flow/graph/flow.h"

/* Warn of the damage of @loss, if it is one, and remember it. */
void ky_cli_damage(const struct ky_loss *loss);

/*
 * How it all ends: @ret when that is an error, or when no damage was told; else KYMO_E_FORMAT and in
 * @err how much was skipped.
 */
int ky_cli_damage_end(int ret, struct kymo_error *err);

/* A stage that warns of the damage that passes. Takes @input over, on failure too. */
int ky_cli_damage_stage(struct ky_flow *input, struct ky_flow **flow, struct kymo_error *err);

#endif
