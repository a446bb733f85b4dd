/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that query the subnet administrator: see askers.h. */
#include "tests/unit/portd/askers.h"

#include <string.h>

#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

#define JOIN_MASK UINT64_C(0x130c7)

struct rig_client carol, dave;

void askers_set_up(void)
{
	folder_make();
	rig_use_infiniband();
	rig_set_up(socket_path);
	rig_join(&carol);
	rig_join(&dave);
}

struct portd_record question(const struct rig_client *client, uint32_t ask_id, uint8_t method,
			     uint16_t attr)
{
	return (struct portd_record){ .type = PORTD_SA_ASK,
				      .sa_ask = { .port = client->handle,
						  .method = method,
						  .attr = attr,
						  .ask_id = ask_id,
						  .timeout_ms = 2000,
						  .comp_mask = SA_PATH_DGID } };
}

void tell(struct rig_client *client, const struct portd_record *record)
{
	ck_assert(rig_send_record(client, record));
	rig_settle();
}

void ask_path(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record = question(client, ask_id, SA_METHOD_GET, SA_ATTR_PATH_RECORD);

	record.sa_ask.record[23] = 9; /* of the DGID */
	tell(client, &record);
}

void join_group(struct rig_client *client, uint32_t ask_id, uint32_t group)
{
	struct portd_record record =
		question(client, ask_id, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD);

	record.sa_ask.comp_mask = JOIN_MASK;
	record.sa_ask.record[0] = 0xff;
	memcpy(record.sa_ask.record + 12, &group, sizeof(group)); /* of the MGID */
	record.sa_ask.record[31] = 0x66;			  /* a port GID that is not ours */
	record.sa_ask.record[48] = SA_JOIN_FULL;
	tell(client, &record);
}

void join(struct rig_client *client, uint32_t ask_id)
{
	join_group(client, ask_id, 0);
}

void drop(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record = { .type = PORTD_SA_DROP, .sa_drop = { .ask_id = ask_id } };

	tell(client, &record);
}

void revalidate(struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_SA_REVALIDATE,
				       .sa_revalidate = { .port = client->handle,
							  .dgid = { { [15] = 9 } } } };

	tell(client, &record);
}

int told(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record;

	if (!rig_next(client, &record))
		return -1;
	ck_assert_int_eq(record.type, PORTD_SA_TOLD);
	ck_assert_uint_eq(record.sa_told.ask_id, ask_id);
	return record.sa_told.error;
}

void ask_path_to(struct rig_client *client, uint32_t ask_id, uint8_t host)
{
	struct portd_record record = question(client, ask_id, SA_METHOD_GET, SA_ATTR_PATH_RECORD);

	record.sa_ask.timeout_ms = 600000;
	record.sa_ask.record[23] = host; /* of the DGID */
	tell(client, &record);
}
