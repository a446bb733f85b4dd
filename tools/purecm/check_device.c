/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of devices and ports, from libibverbs. Part of checkup.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/checkup.h"

#define GIDS_MAX       256 /* entries that MADs can be sent from */
#define MTU_WANTED     IBV_MTU_1024
#define PKEY_FULL      0xffff
#define PKEY_LIMITED   0x7fff
#define SHOWN_GIDS_MAX 4

static enum verdict worse_verdict(enum verdict a, enum verdict b)
{
	static const int rank[] = {
		[VERDICT_SKIP] = 0, [VERDICT_OK] = 1, [VERDICT_NOTE] = 2, [VERDICT_BAD] = 3
	};

	return rank[a] >= rank[b] ? a : b;
}

void found(struct finding *finding, enum verdict verdict, const char *format, ...)
{
	size_t used = strlen(finding->text);
	va_list args;

	finding->verdict = used ? worse_verdict(finding->verdict, verdict) : verdict;
	if (used && used + 2 < sizeof(finding->text)) {
		strcat(finding->text, "; ");
		used += 2;
	}
	va_start(args, format);
	vsnprintf(finding->text + used, sizeof(finding->text) - used, format, args);
	va_end(args);
}

void found_remedy(struct finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->remedy, sizeof(finding->remedy), format, args);
	va_end(args);
}

static bool is_active(const struct check_port *port)
{
	return port->attr.state == IBV_PORT_ACTIVE || port->attr.state == IBV_PORT_INIT;
}

bool check_port_is_roce(const struct check_port *port)
{
	return port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

void checkup_fini(struct checkup *checkup)
{
	int i;

	for (i = 0; i < checkup->n_verbs; i++) {
		gid_forget(checkup->verbs[i]);
		ibv_close_device(checkup->verbs[i]);
	}
	free(checkup->verbs);
	if (checkup->list)
		ibv_free_device_list(checkup->list);
}

/* --- devices and ports --------------------------------------------------- */

static void open_device(struct checkup *checkup, struct ibv_device *device, struct finding *finding)
{
	struct ibv_context *verbs = ibv_open_device(device);

	if (verbs) {
		checkup->verbs[checkup->n_verbs++] = verbs;
		found(finding, VERDICT_OK, "%s", ibv_get_device_name(device));
		return;
	}
	found(finding, VERDICT_BAD, "%s cannot be opened: %s", ibv_get_device_name(device),
	      strerror(errno));
	if (errno == EACCES || errno == EPERM)
		found_remedy(finding, "chmod 0666 /dev/infiniband/uverbs*, or run as a user who "
				      "may open them");
}

void check_devices(struct checkup *checkup, struct finding *finding)
{
	int i;

	checkup->list = ibv_get_device_list(&checkup->n_devices);
	if (!checkup->list || checkup->n_devices == 0) {
		found(finding, VERDICT_BAD, "there is no RDMA device");
		return;
	}
	checkup->verbs = calloc((size_t)checkup->n_devices, sizeof(*checkup->verbs));
	for (i = 0; checkup->verbs && i < checkup->n_devices; i++)
		open_device(checkup, checkup->list[i], finding);
}

static void look_at_port(struct checkup *checkup, struct ibv_context *verbs, uint8_t port_num,
			 struct finding *finding)
{
	struct check_port *port = &checkup->port[checkup->n_ports];

	*port = (struct check_port){ .verbs = verbs,
				     .device = ibv_get_device_name(verbs->device),
				     .port_num = port_num };
	if (ibv_query_port(verbs, port_num, &port->attr))
		return;
	checkup->n_ports++;
	found(finding, VERDICT_OK, "%s/%u %s, %s", port->device, port_num,
	      ibv_port_state_str(port->attr.state),
	      check_port_is_roce(port) ? "Ethernet (RoCE)" : "InfiniBand");
}

/* efa and iWARP devices have no QP1 and no MADs. */
static bool has_cm(const struct ibv_device *device, struct finding *finding)
{
	if (device->transport_type == IBV_TRANSPORT_IB)
		return true;
	found(finding, VERDICT_NOTE,
	      "%s is neither InfiniBand nor RoCE, and purecm leaves it alone", device->name);
	return false;
}

void check_ports(struct checkup *checkup, struct finding *finding)
{
	struct ibv_device_attr attr;
	unsigned int n, active = 0;
	bool has_other = false;
	int i;

	for (i = 0; i < checkup->n_verbs; i++) {
		if (!has_cm(checkup->verbs[i]->device, finding)) {
			has_other = true;
			continue;
		}
		if (ibv_query_device(checkup->verbs[i], &attr))
			continue;
		for (n = 1; n <= attr.phys_port_cnt && checkup->n_ports < CHECK_PORTS_MAX; n++)
			look_at_port(checkup, checkup->verbs[i], (uint8_t)n, finding);
	}
	for (n = 0; n < checkup->n_ports; n++)
		active += is_active(&checkup->port[n]);
	if (!checkup->n_verbs)
		found(finding, VERDICT_SKIP, "not checked: no device");
	else if (!active)
		found(finding, VERDICT_BAD, "no port is active");
	if (has_other && !checkup->n_ports)
		found_remedy(finding, "rdma_cm needs an InfiniBand or RoCE device; programs reach "
				      "efa through libfabric");
}

/* --- GIDs ---------------------------------------------------------------- */

static bool is_routable_v2(const struct ibv_gid_entry *entry)
{
	return entry->gid_type == IBV_GID_TYPE_ROCE_V2 &&
	       !(entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80);
}

static void name_gid(const struct ibv_gid_entry *entry, struct finding *finding)
{
	char text[INET6_ADDRSTRLEN] = "?", name[IF_NAMESIZE] = "?";

	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)entry->gid.raw))
		inet_ntop(AF_INET, entry->gid.raw + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, entry->gid.raw, text, sizeof(text));
	if_indextoname(entry->ndev_ifindex, name);
	found(finding, VERDICT_OK, "index %u is %s on %s", entry->gid_index, text, name);
}

static void check_roce_gids(const struct check_port *port, struct finding *finding)
{
	struct ibv_gid_entry *entry = calloc(GIDS_MAX, sizeof(*entry));
	ssize_t n = entry ? ibv_query_gid_table(port->verbs, entry, GIDS_MAX, 0) : 0;
	unsigned int routable = 0;
	ssize_t i;

	for (i = 0; i < n; i++) {
		if (entry[i].port_num != port->port_num || !is_routable_v2(&entry[i]))
			continue;
		if (routable++ < SHOWN_GIDS_MAX)
			name_gid(&entry[i], finding);
	}
	if (routable > SHOWN_GIDS_MAX)
		found(finding, VERDICT_OK, "%u more on %s/%u", routable - SHOWN_GIDS_MAX,
		      port->device, port->port_num);
	if (!routable)
		found(finding, VERDICT_BAD, "%s/%u has no RoCE v2 GID for an IP address",
		      port->device, port->port_num);
	free(entry);
}

void check_gids(struct checkup *checkup, struct finding *finding)
{
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++) {
		if (!is_active(&checkup->port[i]))
			continue;
		if (check_port_is_roce(&checkup->port[i]))
			check_roce_gids(&checkup->port[i], finding);
		else
			found(finding, VERDICT_OK, "%s/%u has %d GIDs", checkup->port[i].device,
			      checkup->port[i].port_num, checkup->port[i].attr.gid_tbl_len);
	}
}

/* --- port settings -------------------------------------------------------- */

void check_mtu(struct checkup *checkup, struct finding *finding)
{
	const struct check_port *port;
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++) {
		port = &checkup->port[i];
		if (!is_active(port))
			continue;
		found(finding, port->attr.active_mtu < MTU_WANTED ? VERDICT_NOTE : VERDICT_OK,
		      "%s/%u has an active MTU of %u, at most %u bytes", port->device,
		      port->port_num, 128u << port->attr.active_mtu, 128u << port->attr.max_mtu);
	}
}

static bool has_default_pkey(const struct check_port *port)
{
	__be16 pkey;
	int i;

	for (i = 0; i < port->attr.pkey_tbl_len; i++) {
		if (!ibv_query_pkey(port->verbs, port->port_num, i, &pkey) &&
		    (ntohs(pkey) == PKEY_FULL || ntohs(pkey) == PKEY_LIMITED))
			return true;
	}
	return false;
}

void check_pkeys(struct checkup *checkup, struct finding *finding)
{
	const struct check_port *port;
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++) {
		port = &checkup->port[i];
		if (has_default_pkey(port))
			found(finding, VERDICT_OK, "%s/%u is in the default partition",
			      port->device, port->port_num);
		else
			found(finding, VERDICT_BAD, "%s/%u is not in the default partition",
			      port->device, port->port_num);
	}
}

void check_subnet_manager(struct checkup *checkup, struct finding *finding)
{
	const struct check_port *port;
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++) {
		port = &checkup->port[i];
		if (check_port_is_roce(port))
			continue;
		if (port->attr.sm_lid)
			found(finding, VERDICT_OK, "the subnet manager of %s/%u has LID %u",
			      port->device, port->port_num, port->attr.sm_lid);
		else
			found(finding, VERDICT_BAD, "%s/%u has no subnet manager", port->device,
			      port->port_num);
	}
}
