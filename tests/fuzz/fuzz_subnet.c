/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of cmportd on InfiniBand, of two users, that query the subnet administrator, join groups,
 * cancel and disconnect at any time, while it sends any responses, or none, and cmportd is
 * replaced. In the end all clients leave, and after the longest timeout nothing may be left.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/directory.h"
#include "tests/fuzz/input.h"
#include "tests/unit/portd/rig.h"
#include "tests/unit/portd/rig_subnet.h"

#define CLIENTS	   4
#define ALLOWED	   1000000000 /* messages per second: rates are not tested here */
#define LATEST	   16	      /* queries that may be answered */
#define LONGEST_MS 600000
#define ROUNDS	   5
#define FIRST_UID  1001

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct rig_client client[CLIENTS];
static struct input in;

static void close_client(struct rig_client *who)
{
	int *const fds[] = { &who->control, &who->data, &who->page_fd };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* Return: a client, connected first if necessary. */
static struct rig_client *next_client(void)
{
	unsigned int i = next_byte(&in) % CLIENTS;

	if (client[i].data >= 0 && rig_is_disconnected(&client[i]))
		close_client(&client[i]);
	if (client[i].data >= 0)
		return &client[i];
	rig_client_as_user(FIRST_UID + i % 2);
	rig_join(&client[i]);
	return &client[i];
}

static void do_leave(void)
{
	close_client(next_client());
	rig_settle();
}

static void send_record(const struct portd_record *record)
{
	rig_send_record(next_client(), record);
	if (next_byte(&in) % 4)
		rig_settle();
}

static void fill_path(struct portd_sa_ask *ask)
{
	ask->method = SA_METHOD_GET;
	ask->attr = SA_ATTR_PATH_RECORD;
	ask->record[23] = next_byte(&in) % 4; /* of the DGID */
}

static void fill_join(struct portd_sa_ask *ask)
{
	ask->method = SA_METHOD_SET;
	ask->attr = SA_ATTR_MCMEMBER_RECORD;
	ask->record[0] = next_byte(&in) % 4; /* of the MGID; 0: a new group */
	ask->record[48] = SA_JOIN_FULL;
}

static void fill_table(struct portd_sa_ask *ask)
{
	ask->method = SA_METHOD_GET_TABLE;
	ask->attr = SA_ATTR_SERVICE_RECORD;
	ask->record[7] = next_byte(&in) % 2; /* of the service id */
}

static void do_ask(void)
{
	static void (*const fills[])(struct portd_sa_ask * ask) = { fill_path, fill_join,
								    fill_table };
	struct portd_record record = { .type = PORTD_SA_ASK };
	struct portd_sa_ask *ask = &record.sa_ask;
	uint8_t how = next_byte(&in);

	ask->port = client[0].handle;
	ask->ask_id = next_byte(&in) % 16;
	ask->timeout_ms = how & 4 ? LONGEST_MS : next_byte(&in) * 10u;
	ask->comp_mask = how >> 4;
	fills[how % 3](ask);
	if (how & 8) /* or anything else */
		next_bytes(&in, ask->record, sizeof(ask->record));
	send_record(&record);
}

static void do_drop(void)
{
	const struct portd_record record = { .type = PORTD_SA_DROP,
					     .sa_drop = { .ask_id = next_byte(&in) % 16 } };

	send_record(&record);
}

static void do_doubt(void)
{
	struct portd_record record = { .type = PORTD_SA_REVALIDATE,
				       .sa_revalidate = { .port = client[0].handle } };

	record.sa_revalidate.dgid.raw[15] = next_byte(&in) % 4;
	send_record(&record);
}

/* Return: one of the latest queries; UINT32_MAX if there is none. */
static unsigned int next_asked(void)
{
	unsigned int back = 1 + next_byte(&in) % LATEST;

	return back <= rig_n_asked() ? rig_n_asked() - back : UINT32_MAX;
}

static void do_answer(void)
{
	static const uint16_t status[] = { 0, 0, 0, 1, 0x200, 0x300 };
	unsigned int n = next_asked();
	uint8_t how = next_byte(&in);

	if (n != UINT32_MAX)
		rig_answer_by_sa(n, status[how % 6], how);
}

static void do_list(void)
{
	unsigned int n = next_asked();

	if (n != UINT32_MAX)
		rig_list_by_sa(n, next_byte(&in) * 5u);
}

static void do_event(void)
{
	static const enum ibv_event_type type[] = { IBV_EVENT_SM_CHANGE,
						    IBV_EVENT_CLIENT_REREGISTER,
						    IBV_EVENT_LID_CHANGE, IBV_EVENT_PORT_ERR };
	uint8_t how = next_byte(&in);

	rig_settle(); /* earlier messages are for the previous administrator */
	rig_port_event(type[how % 4], how >> 4);
}

static void do_pass(void)
{
	uint8_t ms = next_byte(&in);

	rig_pass(ms & 1 ? ms * 500u : ms);
}

static void do_read(void)
{
	struct rig_client *who = next_client();
	struct portd_record record;

	while (rig_next(who, &record))
		continue;
}

static void must_be_empty(void)
{
	struct server *server = rig_server();
	struct user *user;

	assert(server->n_clients == 0 && server->asks.table.n_nodes == 0);
	assert(list_is_empty(&server->tellers));
	list_for_each_entry (user, &server->users.all, link)
		assert(user->n_asks == 0 && user->n_leaving == 0 && list_is_empty(&user->tables));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static void (*const does[])(void) = { do_ask,	do_ask,	   do_ask,    do_drop,
					      do_doubt, do_answer, do_answer, do_list,
					      do_event, do_pass,   do_read,   do_leave };
	static bool is_infiniband;
	unsigned int i;

	in = (struct input){ data, bytes };
	if (!is_infiniband)
		rig_use_infiniband();
	is_infiniband = true;
	rig_set_up(clean_directory());
	rig_server()->options.quotas.is[QUOTA_USER_RATE] = ALLOWED;
	for (i = 0; i < CLIENTS; i++)
		client[i] = (struct rig_client){ .control = -1, .data = -1, .page_fd = -1 };
	next_client();
	while (in.left)
		does[next_byte(&in) % (sizeof(does) / sizeof(does[0]))]();
	for (i = 0; i < CLIENTS; i++)
		close_client(&client[i]);
	rig_settle();
	for (i = 0; i < ROUNDS; i++)
		rig_pass(LONGEST_MS + 1);
	must_be_empty();
	rig_tear_down();
	return 0;
}
