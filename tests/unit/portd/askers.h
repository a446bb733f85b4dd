/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two clients of the rig on InfiniBand, of the user that the tests run as, and what they ask of the
 * subnet administrator. All of it is dealt with before these functions return.
 */
#ifndef TESTS_UNIT_PORTD_ASKERS_H
#define TESTS_UNIT_PORTD_ASKERS_H

#include "mad/sa_msg.h"
#include "tests/unit/portd/rig.h"
#include "tests/unit/portd/rig_subnet.h"

extern struct rig_client carol, dave;

/** askers_set_up() - a rig in a folder of the test's own, which both clients have joined. */
void askers_set_up(void);

/** question() - a query, to be filled in; it times out after two seconds. */
struct portd_record question(const struct rig_client *client, uint32_t ask_id, uint8_t method,
			     uint16_t attr);

/** tell() - a client says that. */
void tell(struct rig_client *client, const struct portd_record *record);

/** ask_path() - it asks for the path to a certain host. */
void ask_path(struct rig_client *client, uint32_t ask_id);

/** ask_path_to() - to another, and waits for ten minutes. */
void ask_path_to(struct rig_client *client, uint32_t ask_id, uint8_t host);

/** join_group() - it joins one of many groups. */
void join_group(struct rig_client *client, uint32_t ask_id, uint32_t group);

/** join() - it joins a certain group. */
void join(struct rig_client *client, uint32_t ask_id);

/** drop() - it does not need that any more. */
void drop(struct rig_client *client, uint32_t ask_id);

/** revalidate() - the path of ask_path() does not work. */
void revalidate(struct rig_client *client);

/** told() - Return: the error that it was told; -1 if nothing. */
int told(struct rig_client *client, uint32_t ask_id);

#endif
