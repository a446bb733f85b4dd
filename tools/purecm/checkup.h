/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check-up of this host: inputs and findings of the checks of purecm doctor. doctor.c has the
 * table of checks; the checks are in check_device.c, check_manager.c, check_host.c and
 * check_path.c.
 */
#ifndef TOOLS_PURECM_CHECKUP_H
#define TOOLS_PURECM_CHECKUP_H

#include <infiniband/verbs.h>

#include "lib/net/gid_table.h"
#include "lib/net/netlink.h"

#define FINDING_BYTES	600
#define CHECK_PORTS_MAX 64

enum verdict {
	VERDICT_OK,
	VERDICT_NOTE, /* works, but may surprise; or unknown */
	VERDICT_BAD,  /* prevents connections */
	VERDICT_SKIP, /* useless after earlier findings */
};

struct finding {
	enum verdict verdict;
	char text[FINDING_BYTES];
	char remedy[FINDING_BYTES]; /* replaces the table's remedy unless empty */
};

/* A port, as reported by the device. */
struct check_port {
	struct ibv_context *verbs;
	const char *device;
	uint8_t port_num;
	struct ibv_port_attr attr;
};

struct checkup {
	struct ibv_device **list;
	int n_devices;
	struct ibv_context **verbs; /* devices that could be opened */
	int n_verbs;
	struct check_port port[CHECK_PORTS_MAX];
	unsigned int n_ports;

	/* The path to an address; each member is valid after its step has succeeded. */
	const char *target; /* as given by the user; NULL if none */
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

/** found() - add a statement to a finding; the worst verdict counts, SKIP is the least */
void found(struct finding *finding, enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** found_remedy() - set a remedy that is more specific than the table's */
void found_remedy(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** check_port_is_roce() - return whether a port is Ethernet, not InfiniBand */
bool check_port_is_roce(const struct check_port *port);

/**
 * checkup_find_way() - find the path to an address, printing errors only
 * @checkup: target must be set; sets has_dst, has_route, has_iface, has_gid
 *
 * Return: 0; -EHOSTUNREACH, after an error message.
 */
int checkup_find_way(struct checkup *checkup);

/** checkup_fini() - close the devices. */
void checkup_fini(struct checkup *checkup);

/* In the order of the table; the first two set the members of the check-up. */
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
