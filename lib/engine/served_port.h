/* SPDX-License-Identifier: BSD-2-Clause */
/* A port of a device whose CM messages cmportd delivers to this process. Calls nothing. */
#ifndef LIB_ENGINE_SERVED_PORT_H
#define LIB_ENGINE_SERVED_PORT_H

#include <stdint.h>
#include <stdlib.h>

#include "cm/conn.h"

struct device;

/* Reference-counted: sends may be outstanding when the port is removed. */
struct port {
	struct cm_port cm;   /* first; under the engine's lock */
	int handle;	     /* cmportd's; -1 without one */
	int *shown_handle;   /* atomic: that of the device's port opened last */
	unsigned int *users; /* atomic: of the device, which outlives the port; or NULL */
	struct device *device;
	char name[64]; /* of the device, as last reported to cmportd */
	uint8_t port_num;
	uint8_t tos;	/* atomic; for ids that set none */
	bool needs_grh; /* atomic; in all packets */
	bool is_infiniband;
	unsigned int refs; /* atomic */
};

static inline struct port *port_of(struct cm_port *cm)
{
	return (struct port *)cm;
}

static inline uint8_t port_tos(const struct port *port)
{
	return __atomic_load_n(&port->tos, __ATOMIC_RELAXED);
}

static inline bool port_needs_grh(const struct port *port)
{
	return __atomic_load_n(&port->needs_grh, __ATOMIC_RELAXED);
}

/** port_get() - take a reference; the last port_put() frees the port. */
static inline struct port *port_get(struct port *port)
{
	__atomic_add_fetch(&port->refs, 1, __ATOMIC_RELAXED);
	return port;
}

static inline void port_put(struct port *port)
{
	if (__atomic_sub_fetch(&port->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (port->users)
		__atomic_sub_fetch(port->users, 1, __ATOMIC_ACQ_REL);
	free(port);
}

#endif
