/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two clients of the rig on InfiniBand, of the user that runs the tests, and their requests to the
 * subnet administrator. Each function returns after its request is handled.
 */
#ifndef TESTS_UNIT_PORTD_ASKERS_H
#define TESTS_UNIT_PORTD_ASKERS_H

#include "mad/sa_msg.h"
#include "tests/unit/portd/rig.h"
#include "tests/unit/portd/rig_subnet.h"

extern struct rig_client carol, dave;

/** askers_set_up() - a rig in a folder of the test's own, with both clients joined. */
void askers_set_up(void);

/** question() - a query, to be filled in; it times out after two seconds. */
struct portd_record question(const struct rig_client *client, uint32_t ask_id, uint8_t method,
			     uint16_t attr);

/** tell() - send a record from a client. */
void tell(struct rig_client *client, const struct portd_record *record);

/** ask_path() - query the path to a certain host. */
void ask_path(struct rig_client *client, uint32_t ask_id);

/** ask_path_to() - query the path to another host, with a timeout of ten minutes. */
void ask_path_to(struct rig_client *client, uint32_t ask_id, uint8_t host);

/** join_group() - join one of many groups. */
void join_group(struct rig_client *client, uint32_t ask_id, uint32_t group);

/** join() - join a certain group. */
void join(struct rig_client *client, uint32_t ask_id);

/** drop() - cancel a query or leave a group. */
void drop(struct rig_client *client, uint32_t ask_id);

/** revalidate() - report that the path of ask_path() does not work. */
void revalidate(struct rig_client *client);

/** told() - Return: the error of the latest result; -1 without one. */
int told(struct rig_client *client, uint32_t ask_id);

#endif
