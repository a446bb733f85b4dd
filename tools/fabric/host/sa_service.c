/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ServiceRecord, IBTA vol. 1, 15.2.5.14: services registered by programs, each until its lease
 * expires.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/fabric/host/sa.h"

#define RECORD_BYTES  176
#define LEASE_FOREVER UINT32_MAX
#define LEASE_AT      28
#define KEY_AT	      32
#define NAME_AT	      48
#define SERVICES_MAX  65536

enum {
	HAS_ID = 1 << 0,
	HAS_GID = 1 << 1,
	HAS_PKEY = 1 << 2,
	HAS_LEASE = 1 << 4,
	HAS_KEY = 1 << 5,
	HAS_NAME = 1 << 6,
	IDENTIFIES = HAS_ID | HAS_GID | HAS_PKEY,
};

#define BIT(n) (UINT64_C(1) << (n))

/* The last four rows are arrays of numbers of 1, 2, 4 and 8 bytes, each number a component. */
static const struct sa_component components[] = {
	{ HAS_ID, 0, 8 },    { HAS_GID, 8, 16 },  { HAS_PKEY, 24, 2 }, { HAS_NAME, NAME_AT, 64 },
	{ BIT(7), 112, 1 },  { BIT(8), 113, 1 },  { BIT(9), 114, 1 },  { BIT(10), 115, 1 },
	{ BIT(11), 116, 1 }, { BIT(12), 117, 1 }, { BIT(13), 118, 1 }, { BIT(14), 119, 1 },
	{ BIT(15), 120, 1 }, { BIT(16), 121, 1 }, { BIT(17), 122, 1 }, { BIT(18), 123, 1 },
	{ BIT(19), 124, 1 }, { BIT(20), 125, 1 }, { BIT(21), 126, 1 }, { BIT(22), 127, 1 },
	{ BIT(23), 128, 2 }, { BIT(24), 130, 2 }, { BIT(25), 132, 2 }, { BIT(26), 134, 2 },
	{ BIT(27), 136, 2 }, { BIT(28), 138, 2 }, { BIT(29), 140, 2 }, { BIT(30), 142, 2 },
	{ BIT(31), 144, 4 }, { BIT(32), 148, 4 }, { BIT(33), 152, 4 }, { BIT(34), 156, 4 },
	{ BIT(35), 160, 8 }, { BIT(36), 168, 8 }, { 0, 0, 0 },
};

static const struct sa_component key_component[] = {
	{ HAS_KEY, KEY_AT, 16 },
	{ 0, 0, 0 },
};

struct service {
	struct list link;
	uint64_t ends_ns; /* UINT64_MAX: never */
	uint8_t record[RECORD_BYTES];
};

static void drop_service(struct service *service)
{
	list_remove(&service->link);
	free(service);
}

static void drop_expired(struct host *host)
{
	struct service *service;
	uint64_t now = clock_ns();

	list_for_each_entry_safe (service, &host->services, link)
		if (service->ends_ns <= now)
			drop_service(service);
}

static struct service *find_service(struct host *host, const uint8_t *record)
{
	struct service *service;

	list_for_each_entry (service, &host->services, link)
		if (sa_suits(components, IDENTIFIES, record, service->record))
			return service;
	return NULL;
}

/* The key is shown only to those who registered with it. */
static void add_record(const struct service *service, bool with_key, struct sa_answer *answer)
{
	uint8_t record[RECORD_BYTES];
	uint32_t lease = LEASE_FOREVER;
	uint64_t now = clock_ns();

	memcpy(record, service->record, sizeof(record));
	if (service->ends_ns != UINT64_MAX)
		lease = service->ends_ns > now
				? (uint32_t)((service->ends_ns - now) / CLOCK_NS_PER_S)
				: 0;
	lease = htonl(lease);
	memcpy(record + LEASE_AT, &lease, sizeof(lease));
	if (!with_key)
		memset(record + KEY_AT, 0, NAME_AT - KEY_AT);
	sa_answer_add(answer, record);
}

static unsigned int register_service(struct host *host, uint64_t mask, const uint8_t *record,
				     struct sa_answer *answer)
{
	struct service *service = find_service(host, record);
	uint32_t lease = htonl(LEASE_FOREVER);
	struct fab_port port;
	union ibv_gid gid;

	memcpy(&gid, record + 8, sizeof(gid));
	if ((mask & IDENTIFIES) != IDENTIFIES)
		return UMAD_SA_STATUS_INSUF_COMPS;
	if (!sa_find_gid(host, &gid, &port))
		return UMAD_SA_STATUS_INVALID_GID;
	if (service && !sa_suits(key_component, HAS_KEY, record, service->record))
		return UMAD_SA_STATUS_REQ_DENIED;
	if (!service && list_length(&host->services) < SERVICES_MAX) {
		service = calloc(1, sizeof(*service));
		if (service)
			list_append(&host->services, &service->link);
	}
	if (!service)
		return UMAD_SA_STATUS_NO_RESOURCES;
	memcpy(service->record, record, sizeof(service->record));
	if (mask & HAS_LEASE)
		memcpy(&lease, record + LEASE_AT, sizeof(lease));
	service->ends_ns = ntohl(lease) == LEASE_FOREVER
				   ? UINT64_MAX
				   : clock_ns() + ntohl(lease) * CLOCK_NS_PER_S;
	add_record(service, true, answer);
	return UMAD_SA_STATUS_SUCCESS;
}

static unsigned int remove_service(struct host *host, uint64_t mask, const uint8_t *record,
				   struct sa_answer *answer)
{
	struct service *service = find_service(host, record);

	if ((mask & IDENTIFIES) != IDENTIFIES)
		return UMAD_SA_STATUS_INSUF_COMPS;
	if (!service)
		return UMAD_SA_STATUS_NO_RECORDS;
	if (!sa_suits(key_component, HAS_KEY, record, service->record))
		return UMAD_SA_STATUS_REQ_DENIED;
	add_record(service, true, answer);
	drop_service(service);
	return UMAD_SA_STATUS_SUCCESS;
}

unsigned int sa_service(struct host *host, const struct umad_sa_packet *request,
			struct sa_answer *answer)
{
	uint64_t mask = be64toh(request->comp_mask);
	struct service *service;

	drop_expired(host);
	if (request->mad_hdr.method == UMAD_METHOD_SET)
		return register_service(host, mask, request->data, answer);
	if (request->mad_hdr.method == UMAD_SA_METHOD_DELETE)
		return remove_service(host, mask, request->data, answer);
	list_for_each_entry (service, &host->services, link)
		if (sa_suits(components, mask, request->data, service->record))
			add_record(service, sa_is_trusted(request), answer);
	return UMAD_SA_STATUS_SUCCESS;
}

void sa_services_forget(struct host *host)
{
	struct service *service;

	list_for_each_entry_safe (service, &host->services, link)
		drop_service(service);
}
