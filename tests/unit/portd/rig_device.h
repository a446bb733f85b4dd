/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake device as the rig sees it; tests see rig.h.
 */
#ifndef TESTS_UNIT_PORTD_RIG_DEVICE_H
#define TESTS_UNIT_PORTD_RIG_DEVICE_H

/** rig_device_forget() - what was sent, and what has arrived and was not taken. */
void rig_device_forget(void);

/* Linked in place of those of lib/net/gid.h. */
int __wrap_gid_by_index(struct ibv_context *verbs, uint8_t port_num, uint32_t gid_index,
			struct gid_entry *ret);
int __wrap_gid_by_tag(struct ibv_context *verbs, uint8_t port_num, uint16_t tag,
		      struct gid_entry *ret);

#endif
