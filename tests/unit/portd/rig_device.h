/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake device as used by the rig; rig.h is for tests. */
#ifndef TESTS_UNIT_PORTD_RIG_DEVICE_H
#define TESTS_UNIT_PORTD_RIG_DEVICE_H

/** rig_device_forget() - drop sent messages, and received ones that were not read. */
void rig_device_forget(void);

/* Substitutes for functions of lib/net/gid_table.h. */
int __wrap_gid_by_index(struct ibv_context *verbs, uint8_t port_num, uint32_t gid_index,
			struct gid_entry *ret);
int __wrap_gid_by_tag(struct ibv_context *verbs, uint8_t port_num, uint16_t tag,
		      struct gid_entry *ret);

#endif
