/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections with equal keys in the tables of cmportd: see flooder.h. The flooder also listens, as
 * the peer of its own connections.
 */
#include "tests/portd/flooder.h"

#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cm/core.h"

#define LISTENS	   100 /* per claim */
#define N_ALIKE	   5000
#define ALIKE_QPN  0x700001
#define ASKED_MAX  65536
#define PATIENCE_S 20

static uint16_t listens_at;

static void listen_for_itself(void)
{
	struct portd_claim claim = { .claim_id = LISTENS, .ps = RDMA_PS_TCP, .local_family = 4 };
	int err;

	flooder_send_to_itself();
	err = portd_bind(flooder_client(), &claim);
	if (!err)
		err = portd_listen(flooder_client(), &claim);
	if (err)
		die("a listener", err);
	listens_at = claim.local_port;
}

static uint32_t comm_id_of(const struct portd_mad *mad)
{
	struct cm_msg msg;

	return cm_msg_decode(mad->mad, MAD_BYTES, &msg) ? 0 : msg.req.local_comm_id;
}

static void send_all(const struct portd_mad *mads, unsigned int n)
{
	int err;

	do /* on a busy machine cmportd may not read for a second */
		err = flooder_send(mads, n);
	while (err == -EAGAIN);
	if (err)
		die("a message", err);
}

/* --- comm ids of one request ------------------------------------------------- */

static uint32_t rejected; /* as the sender's comm id */

static void prepare_renamings(void)
{
	struct portd_mad mad;
	struct cm_msg rej;

	listen_for_itself();
	flooder_request(&mad, listens_at, 0);
	rejected = comm_id_of(&mad);
	send_all(&mad, 1);
	usleep(200 * 1000); /* until it has arrived */
	cm_msg_init(&rej, CM_ATTR_REJ, 0);
	rej.rej.remote_comm_id = rejected;
	rej.rej.message = CM_ANSWERED_REQ;
	rej.rej.reason = CM_REJ_CONSUMER;
	flooder_put(&mad, &rej);
	send_all(&mad, 1);
}

bool rename_connection(void)
{
	struct portd_mad mads[BATCH];
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		flooder_reply(&mads[i], rejected, ALIKE_QPN);
	return flooder_send(mads, BATCH) == 0;
}

/* --- similar connections ------------------------------------------------------ */

static uint32_t asked[ASKED_MAX]; /* comm ids of its requests, oldest first */
static unsigned int n_asked, n_closed, n_replied;

static void take(const struct portd_record *record, void *arg)
{
	struct portd_record reply = { .type = PORTD_MAD };
	struct cm_msg msg;

	(void)arg;
	if (record->type != PORTD_MAD || cm_msg_decode(record->mad.mad, MAD_BYTES, &msg) ||
	    msg.hdr.attr_id != CM_ATTR_REQ)
		return;
	n_replied++;
	flooder_reply(&reply.mad, msg.req.local_comm_id, ALIKE_QPN);
	portd_hold(flooder_client(), &reply);
}

/* Return: false if nothing arrives for a while. */
static bool reply_to_requests(void)
{
	struct pollfd pfd = { .fd = portd_client_fd(flooder_client()), .events = POLLIN };
	int err;

	if (poll(&pfd, 1, 100) <= 0)
		return false;
	do
		err = portd_receive(flooder_client(), take, NULL);
	while (!err);
	return portd_send_held(flooder_client()) == 0;
}

static void ask_itself(void)
{
	struct portd_mad mads[BATCH];
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		flooder_request(&mads[i], listens_at, 0);
		asked[n_asked++ % ASKED_MAX] = comm_id_of(&mads[i]);
	}
	send_all(mads, BATCH);
	for (i = n_replied; n_replied < i + BATCH && reply_to_requests();)
		continue;
}

static void prepare_lookalikes(void)
{
	const time_t end = time(NULL) + PATIENCE_S;

	listen_for_itself();
	while (n_replied < N_ALIKE && time(NULL) < end)
		ask_itself();
}

bool replace_lookalikes(void)
{
	struct portd_record closed = { .type = PORTD_CLOSE };
	unsigned int i;

	for (i = 0; i < BATCH && n_closed < n_asked; i++) {
		closed.close.local_comm_id = asked[n_closed++ % ASKED_MAX];
		portd_hold(flooder_client(), &closed);
	}
	ask_itself();
	return true;
}

void flooder_prepare(const char *kind)
{
	if (!strcmp(kind, "renamings"))
		prepare_renamings();
	else if (!strcmp(kind, "lookalikes"))
		prepare_lookalikes();
}
