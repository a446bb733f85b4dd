/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check-up of this host: what each check of purecm doctor is given, and what it finds. The table
 * of checks is in doctor.c; the checks are in check_device.c, check_manager.c, check_host.c,
 * check_path.c and check_echo.c.
 */
#ifndef TOOLS_PURECM_CHECKUP_H
#define TOOLS_PURECM_CHECKUP_H

#include <infiniband/verbs.h>

#include "lib/net/gid.h"
#include "lib/net/netlink.h"

#define FINDING_BYTES	600
#define CHECK_PORTS_MAX 64

enum verdict {
	VERDICT_OK,
	VERDICT_NOTE, /* works, but may surprise; or could not be told */
	VERDICT_BAD,  /* keeps things from working */
	VERDICT_SKIP, /* of no use after what was found before */
};

struct finding {
	enum verdict verdict;
	char text[FINDING_BYTES];
	char remedy[FINDING_BYTES]; /* instead of the table's; empty: that one */
};

/* A port, as the device tells. */
struct check_port {
	struct ibv_context *verbs;
	const char *device;
	uint8_t port_num;
	struct ibv_port_attr attr;
};

struct checkup {
	struct ibv_device **list;
	int n_devices;
	struct ibv_context **verbs; /* of those that could be opened */
	int n_verbs;
	struct check_port port[CHECK_PORTS_MAX];
	unsigned int n_ports;

	/* Towards an address; each is known once its step succeeded. */
	const char *target; /* as it was typed; NULL if none was */
	union addr dst;
	bool has_dst;
	bool has_route;
	bool has_iface;
	bool has_gid;
	struct net_route route;
	struct net_iface iface;
	struct gid_entry gid;
};

typedef void check_function(struct checkup *checkup, struct finding *finding);

/** found() - say something more; the worst verdict of all counts, SKIP least of all. */
void found(struct finding *finding, enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** found_remedy() - what helps, if it is more particular than the table's. */
void found_remedy(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** check_port_is_active() - can it send? */
bool check_port_is_active(const struct check_port *port);

/** check_port_is_roce() - over Ethernet, not InfiniBand. */
bool check_port_is_roce(const struct check_port *port);

/**
 * checkup_find_way() - the steps towards an address, without a word as long as it goes well
 * @checkup: its target is set; filled: has_dst, has_route, has_iface, has_gid
 *
 * For those who send: purecm ping, purecm drill.
 *
 * Return: 0; -EHOSTUNREACH, after a complaint.
 */
int checkup_find_way(struct checkup *checkup);

/** checkup_fini() - close the devices. */
void checkup_fini(struct checkup *checkup);

/* In the order of the table; the first two fill the check-up. */
check_function check_devices;
check_function check_ports;
check_function check_gids;
check_function check_mtu;
check_function check_pkeys;
check_function check_subnet_manager;
check_function check_umad;
check_function check_manager;
check_function check_cmportd;
check_function check_port_settings;
check_function check_fast_path;
check_function check_library;
check_function check_firewall;
check_function check_namespaces;
check_function check_limits;
check_function check_address;
check_function check_route;
check_function check_interface;
check_function check_source_gid;
check_function check_neighbour;
check_function check_path_mtu;

#endif
