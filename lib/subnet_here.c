/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking without cmportd: see subnet_here.h. News of the port would come as asynchronous events of
 * the device; but these are the program's to read, so the port is looked at with each question.
 */
#include "lib/subnet_here.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "mad/umad_sa.h"

#define HOPS_TO_SM   255
#define SA_GUID_HIGH 0x02 /* IBTA vol. 1, 14.2.1: 0x0200000000000002 */
#define SA_GUID_LOW  0x02

struct subnet_here {
	struct list link; /* in engine.subnets; never taken out */
	struct device *device;
	uint8_t port_num;
	struct umad_sa sa;
	struct sa_agent agent;
	struct mad_path to_sm;
};

static void put_on_wire(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms)
{
	struct subnet_here *subnet = arg;
	int err = umad_sa_send(&subnet->sa, &subnet->to_sm, mad, wait_ms);

	if (err)
		log_debug("a question to the subnet administrator was not sent: %s",
			  strerror(-err));
}

static void find_sm(struct subnet_here *subnet, const struct ibv_port_attr *attr)
{
	struct mad_path *path = &subnet->to_sm;

	*path = (struct mad_path){ .dlid = attr->sm_lid, .sl = attr->sm_sl };
	if (!(attr->flags & IBV_QPF_GRH_REQUIRED))
		return;
	path->grh = true;
	path->hop_limit = HOPS_TO_SM;
	ibv_query_gid(subnet->device->verbs, subnet->port_num, 0, (union ibv_gid *)&path->dgid);
	memset(path->dgid.raw + 8, 0, 8);
	path->dgid.raw[8] = SA_GUID_HIGH;
	path->dgid.raw[15] = SA_GUID_LOW;
}

static void look_at_port(struct subnet_here *subnet)
{
	struct ibv_port_attr attr;
	struct sa_subnet now;

	if (ibv_query_port(subnet->device->verbs, subnet->port_num, &attr))
		return;
	find_sm(subnet, &attr);
	now = (struct sa_subnet){ .lid = attr.lid,
				  .sm_lid = attr.sm_lid,
				  .sm_sl = attr.sm_sl,
				  .is_active = attr.state == IBV_PORT_ACTIVE };
	sa_agent_subnet(&subnet->agent, &now, false, engine_now());
}

static int subnet_new(struct engine *engine, const struct port *port, struct subnet_here **ret)
{
	const char *name = ibv_get_device_name(port->device->verbs->device);
	struct subnet_here *subnet = calloc(1, sizeof(*subnet));
	int err;

	if (!subnet)
		return -ENOMEM;
	subnet->device = port->device;
	subnet->port_num = port->port_num;
	err = umad_sa_open(name, port->port_num, &subnet->sa);
	if (!err) {
		err = engine_watch_subnet(subnet->sa.fd, subnet);
		if (err)
			umad_sa_close(&subnet->sa);
	}
	if (err) {
		free(subnet);
		return err;
	}
	sa_agent_init(&subnet->agent, (uint32_t)engine_random(), put_on_wire, subnet);
	list_append(&engine->subnets, &subnet->link);
	*ret = subnet;
	return 0;
}

static int subnet_of(struct engine *engine, const struct port *port, struct subnet_here **ret)
{
	struct subnet_here *subnet;
	struct list *node;

	list_for_each (node, &engine->subnets) {
		subnet = container_of(node, struct subnet_here, link);
		if (subnet->device != port->device || subnet->port_num != port->port_num)
			continue;
		*ret = subnet;
		return 0;
	}
	return subnet_new(engine, port, ret);
}

static void told(struct sa_ask *asked, int err, const struct sa_msg *answer)
{
	struct subnet_ask *ask = container_of(asked, struct subnet_ask, here);

	if (err || asked->msg.hdr.method != SA_METHOD_SET)
		list_remove(&ask->link); /* a membership lasts */
	ask->done(ask, err, answer);
	if (!ask->asks_again)
		return;
	ask->asks_again = false;
	subnet_ask_again(ask);
}

int subnet_here_ask(struct engine *engine, struct subnet_ask *ask)
{
	struct subnet_here *subnet;
	int err = subnet_of(engine, ask->port, &subnet);

	if (err)
		return err;
	look_at_port(subnet);
	list_append(&engine->subnet_asks, &ask->link);
	ask->subnet = subnet;
	ask->here.msg = ask->msg;
	ask->here.timeout_ms = ask->timeout_ms;
	ask->here.done = told;
	sa_agent_ask(&subnet->agent, &ask->here, engine_now());
	engine_wake(engine);
	return 0;
}

void subnet_here_drop(struct subnet_ask *ask)
{
	sa_agent_withdraw(&ask->subnet->agent, &ask->here, engine_now());
	engine_wake(NULL);
}

static struct subnet_here *find(const struct engine *engine, const void *who)
{
	struct list *node;

	list_for_each (node, &engine->subnets)
		if (container_of(node, struct subnet_here, link) == who)
			return container_of(node, struct subnet_here, link);
	return NULL;
}

bool subnet_here_receive(const void *who)
{
	struct engine *engine = engine_lock();
	struct subnet_here *subnet = find(engine, who);
	uint8_t mad[MAD_BYTES];
	int err = 0;

	while (subnet && !err) {
		err = umad_sa_receive(&subnet->sa, mad);
		if (!err)
			sa_agent_input(&subnet->agent, mad, sizeof(mad), engine_now());
	}
	if (err == -ENODEV)
		umad_sa_close(&subnet->sa);
	engine_unlock();
	return subnet;
}

void subnet_here_expire(struct cm_time now)
{
	struct engine *engine = engine_lock();
	struct list *node;

	list_for_each (node, &engine->subnets)
		sa_agent_expire(&container_of(node, struct subnet_here, link)->agent, now);
	engine_unlock();
}

struct cm_time subnet_here_deadline(const struct engine *engine)
{
	struct cm_time deadline = CM_TIME_NEVER;
	struct list *node;

	list_for_each (node, &engine->subnets)
		deadline = cm_time_earlier(
			deadline,
			sa_agent_deadline(&container_of(node, struct subnet_here, link)->agent));
	return deadline;
}

void subnet_here_after_fork(struct engine *engine)
{
	struct list *node;

	if (!engine->subnets.next)
		return;
	list_for_each (node, &engine->subnets)
		umad_sa_close(&container_of(node, struct subnet_here, link)->sa);
}
