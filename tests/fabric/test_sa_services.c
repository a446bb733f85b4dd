/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services at the subnet administrator of a fabric of two InfiniBand hosts.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include "tests/fabric/sa_rig.h"
#include "tests/unit/test.h"

#define GUID_OF_A     0x0050430000000101ull
#define GUID_OF_B     0x0050430000000201ull
#define SERVICE_BYTES 176
#define IDENTITY      7 /* component mask: id, GID, P_Key */
#define WITH_LEASE    (1 << 4)
#define WITH_KEY      (1 << 5)
#define WITH_NAME     (1 << 6)
#define MANY	      12500 /* of 176 bytes: together more than the 2 MiB of a socket */
#define TOO_MANY      23840 /* more than the 4 MiB of a message */

static struct sa_rig rig;

/* Messages are assembled for the agent. */
static void set_up(void)
{
	sa_rig_open(&rig, 1);
}

static void tear_down(void)
{
	sa_rig_close(&rig);
}

struct service {
	__be64 id;
	union ibv_gid gid;
	__be16 pkey;
	__be16 reserved;
	__be32 lease;
	uint8_t key[16];
	char name[64];
	uint8_t data[64];
};

static union ibv_gid gid_of(uint64_t guid)
{
	return (union ibv_gid){ .global = { htobe64(UINT64_C(0xfe80) << 48), htobe64(guid) } };
}

static struct service service_of(uint64_t id, uint64_t guid)
{
	return (struct service){ .id = htobe64(id),
				 .gid = gid_of(guid),
				 .pkey = 0xffff,
				 .lease = 0xffffffff,
				 .name = "news" };
}

static unsigned int ask_service(uint8_t method, const struct service *service, uint64_t mask)
{
	sa_rig_send(&rig, method, UMAD_SA_ATTR_SERVICE_REC, mask, service, sizeof(*service));
	return sa_rig_status(&rig);
}

static unsigned int n_services(const char *name)
{
	struct service service = { .id = 0 };

	strcpy(service.name, name);
	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_SERVICE_REC, WITH_NAME, &service,
		    sizeof(service));
	return sa_rig_table(&rig, SERVICE_BYTES);
}

FIXTURE(set_up, tear_down);

TEST(services_are_found_by_name_until_deregistered)
{
	struct service one = service_of(1, GUID_OF_A), two = service_of(1, GUID_OF_B);
	uint64_t mask = IDENTITY | WITH_LEASE | WITH_NAME;

	ck_assert_uint_eq(n_services("news"), 0);
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &one, mask), 0);
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &one, mask), 0);
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &two, mask), 0);
	ck_assert_uint_eq(n_services("news"), 2);
	ck_assert_uint_eq(n_services("new"), 0);
	ck_assert_uint_eq(ask_service(UMAD_METHOD_GET, &one, 1), UMAD_SA_STATUS_TOO_MANY_RECORDS);
	ck_assert_uint_eq(ask_service(UMAD_METHOD_GET, &one, IDENTITY), 0);
	ck_assert_uint_eq(ask_service(UMAD_SA_METHOD_DELETE, &one, IDENTITY), 0);
	ck_assert_uint_eq(ask_service(UMAD_SA_METHOD_DELETE, &two, IDENTITY), 0);
	ck_assert_uint_eq(ask_service(UMAD_SA_METHOD_DELETE, &two, IDENTITY),
			  UMAD_SA_STATUS_NO_RECORDS);
	ck_assert_uint_eq(n_services("news"), 0);
}

TEST(service_ends_with_its_lease)
{
	struct service service = service_of(2, GUID_OF_A);

	service.lease = htonl(1);
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &service, IDENTITY | WITH_LEASE | WITH_NAME),
			  0);
	while (n_services("news"))
		usleep(20000);
}

TEST(service_of_another_key_stays)
{
	struct service service = service_of(3, GUID_OF_A);

	service.key[5] = 1;
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &service, IDENTITY | WITH_KEY), 0);
	service.key[5] = 2;
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &service, IDENTITY | WITH_KEY),
			  UMAD_SA_STATUS_REQ_DENIED);
	ck_assert_uint_eq(ask_service(UMAD_SA_METHOD_DELETE, &service, IDENTITY | WITH_KEY),
			  UMAD_SA_STATUS_REQ_DENIED);
	service.key[5] = 1;
	ck_assert_uint_eq(ask_service(UMAD_SA_METHOD_DELETE, &service, IDENTITY | WITH_KEY), 0);
}

TEST(service_of_an_unknown_port_is_refused)
{
	struct service service = service_of(4, 77);

	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &service, IDENTITY),
			  UMAD_SA_STATUS_INVALID_GID);
	service = service_of(4, GUID_OF_A);
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &service, 1), UMAD_SA_STATUS_INSUF_COMPS);
}

TEST(lease_of_0_has_0_left)
{
	struct service service = service_of(0x77, GUID_OF_A), is;
	struct umad_sa_packet *packet = umad_get_mad(rig.table);

	service.lease = 0;
	ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &service, IDENTITY | WITH_LEASE), 0);
	memcpy(&is, packet->data, sizeof(is));
	ck_assert_uint_eq(ntohl(is.lease), 0);
}

TEST(table_longer_than_a_socket_or_a_message_takes_is_refused)
{
	struct service service = service_of(0, GUID_OF_A);
	uint64_t id;

	service.lease = htonl(3600);
	for (id = 0; id < TOO_MANY; id++) {
		if (id == MANY)
			ck_assert_uint_eq(ask_service(UMAD_SA_METHOD_GET_TABLE, &service, 0),
					  UMAD_SA_STATUS_NO_RESOURCES);
		service.id = htobe64(0x1000 + id);
		ck_assert_uint_eq(ask_service(UMAD_METHOD_SET, &service, IDENTITY | WITH_LEASE), 0);
	}
	ck_assert_uint_eq(ask_service(UMAD_SA_METHOD_GET_TABLE, &service, 0),
			  UMAD_SA_STATUS_NO_RESOURCES);
}
