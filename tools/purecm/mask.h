/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Masks: addresses are replaced by others that mean nothing, each always by the same one, in
 * messages and in text, so that what is shown to strangers can still be followed.
 */
#ifndef TOOLS_PURECM_MASK_H
#define TOOLS_PURECM_MASK_H

#include <stdio.h>

#include "tools/purecm/observation.h"

struct mask;

/** mask_new() - knows no address yet. Return: to be given back with mask_free(); NULL: no memory */
struct mask *mask_new(void);

/** mask_free() - NULL is allowed. */
void mask_free(struct mask *mask);

/**
 * mask_observation() - mask who sent a message to whom, all addresses and GUIDs in it, and wipe the
 * private data of programs
 *
 * IPv4 addresses become some of 198.18.0.0/15, others some of 2001:db8::/32, link-local ones stay
 * link-local. Ports, LIDs, numbers of queue pairs and comm ids stay.
 *
 * Return: false if the message is none that can be masked, and is not to be shown.
 */
bool mask_observation(struct mask *mask, struct observation *observation);

/** mask_text() - print text with the addresses and GUIDs in it masked. */
void mask_text(struct mask *mask, const char *text, FILE *out);

#endif
