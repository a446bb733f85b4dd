/* SPDX-License-Identifier: BSD-2-Clause */
/* Attacks by requests to the subnet administrator, on InfiniBand: see flooder.h. */
#include "tests/portd/flooder.h"

#include <string.h>

#include "mad/sa_msg.h"

#define BATCH	   32
#define PATIENCE_S 600
#define TABLES	   16
#define MGID_AT	   0
#define STATE_AT   48 /* of a MCMemberRecord */
#define DGID_AT	   8  /* of a PathRecord */
#define NAME_AT	   48 /* of a ServiceRecord */
#define OFFERED	   "siege"

static uint32_t last_id;

static void take(const struct portd_record *record, void *arg)
{
	(void)arg;
	(void)record;
}

/* Unread responses would get it disconnected. */
static bool send_record(const struct portd_record *record)
{
	while (portd_receive(flooder_client(), take, NULL) == 0)
		continue;
	if (portd_put_data(flooder_client(), record) == 0)
		return true;
	flooder_reconnect();
	return false;
}

static struct portd_record request(uint8_t method, uint16_t attr, uint64_t comp_mask)
{
	return (struct portd_record){ .type = PORTD_SA_ASK,
				      .sa_ask = { .port = flooder_port(),
						  .method = method,
						  .attr = attr,
						  .ask_id = ++last_id,
						  .timeout_ms = PATIENCE_S * 1000,
						  .comp_mask = comp_mask } };
}

static bool withdraw(uint32_t ask_id)
{
	const struct portd_record drop = { .type = PORTD_SA_DROP, .sa_drop = { .ask_id = ask_id } };

	return send_record(&drop);
}

/* Paths to ports that do not exist: each is a request of its own. */
bool ask_for_paths(void)
{
	struct portd_record ask = request(SA_METHOD_GET, SA_ATTR_PATH_RECORD, SA_PATH_DGID);

	ask.sa_ask.record[DGID_AT] = 0xfe;
	memcpy(ask.sa_ask.record + DGID_AT + 12, &last_id, sizeof(last_id));
	return send_record(&ask);
}

bool ask_for_paths_in_vain(void)
{
	return ask_for_paths() && withdraw(last_id);
}

static bool join_and_leave(const struct mad_gid *mgid)
{
	struct portd_record join =
		request(SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD,
			SA_MEMBER_MGID | SA_MEMBER_PORT_GID | SA_MEMBER_JOIN_STATE);

	memcpy(join.sa_ask.record + MGID_AT, mgid, sizeof(*mgid));
	join.sa_ask.record[STATE_AT] = SA_JOIN_FULL;
	return send_record(&join) && (last_id % BATCH == 0 || withdraw(last_id));
}

/* It stays in some groups, as many as permitted. */
bool join_groups(void)
{
	struct mad_gid mgid = { .raw = { 0xff, 0x12 } };

	memcpy(mgid.raw + 12, &last_id, sizeof(last_id));
	return join_and_leave(&mgid);
}

bool make_groups(void)
{
	return join_and_leave(&(struct mad_gid){ .raw[0] = 0 });
}

/* All are answered by the same hundreds of records. */
bool ask_for_tables(void)
{
	struct portd_record ask =
		request(SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD, SA_SERVICE_NAME);
	unsigned int i;
	bool done = true;

	memcpy(ask.sa_ask.record + NAME_AT, OFFERED, sizeof(OFFERED));
	for (i = 0; i < TABLES && done; i++) {
		done = send_record(&ask);
		ask.sa_ask.ask_id = ++last_id;
	}
	return done;
}

/* Paths that others use. */
bool doubt_paths(void)
{
	static const struct mad_gid server = { .raw = { 0xfe, 0x80, [9] = 0x50, 0x43, [14] = 2,
							1 } };
	struct portd_record doubt = { .type = PORTD_SA_REVALIDATE,
				      .sa_revalidate = { .port = flooder_port(), .dgid = server } };

	return send_record(&doubt);
}
