/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any node, service and hints for rdma_getaddrinfo(), and any bytes as ibacm's response: it fails,
 * or its results are complete. No name server is queried: names are numbers (--wrap=getaddrinfo).
 */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/names/addrinfo.h"
#include "lib/path/ibacm.h"
#include "tests/fuzz/input.h"

#define TEXT_MAX  80
#define REPLY_MAX 1100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
struct ibacm *__wrap_ibacm_of_host(void);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **ret);
int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **ret);

static struct input in;
static struct ibacm acm;
static int ibacm_end; /* of the connection */
static struct ibv_device *device_list[2];

/* --- substitutes --------------------------------------------------------- */

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *num)
{
	if (num)
		*num = 1;
	return device_list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	assert(list == device_list);
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **ret)
{
	struct addrinfo with = hints ? *hints : (struct addrinfo){ .ai_family = AF_UNSPEC };

	with.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
	return __real_getaddrinfo(node, service, &with, ret);
}

/* Mostly a response to the request: a valid header in front of any entries. */
static void prepare_reply(void)
{
	static const uint16_t types[] = { 2, 3, 0x10, 7 }; /* two addresses, a path, nothing */
	static uint8_t wire[REPLY_MAX];
	uint8_t how = next_byte(&in);
	uint64_t tid = acm.tid + 1;
	uint16_t bytes = (uint16_t)(IBACM_HEADER_BYTES + how % 14 * IBACM_ENTRY_BYTES);
	unsigned int i;

	next_bytes(&in, wire, sizeof(wire));
	if (how < 0xf0) {
		memset(wire, 0, IBACM_HEADER_BYTES);
		wire[0] = 1;
		wire[1] = 0x81;
		memcpy(wire + 6, &bytes, sizeof(bytes));
		memcpy(wire + 8, &tid, sizeof(tid));
		for (i = 0; i < how % 14u; i++)
			memcpy(wire + IBACM_HEADER_BYTES + i * IBACM_ENTRY_BYTES + 4,
			       &types[next_byte(&in) % 4], sizeof(types[0]));
	}
	send(ibacm_end, wire, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (next_byte(&in) & 1)
		shutdown(ibacm_end, SHUT_WR);
}

struct ibacm *__wrap_ibacm_of_host(void)
{
	return &acm;
}

static void begin_ibacm(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		abort();
	ibacm_init(&acm, "/nonexistent", "/nonexistent", 0);
	acm.is_tried = true;
	acm.fd = ends[0];
	ibacm_end = ends[1];
}

/* --- the program --------------------------------------------------------- */

static const char *next_text(char text[TEXT_MAX])
{
	static const char *const texts[] = { "192.0.2.1", "2001:db8::1", "7471", "0x1061c06" };
	uint8_t how = next_byte(&in);

	if (how < 0x40)
		return NULL;
	if (how < 0x80)
		return texts[how % 4];
	next_bytes(&in, text, how % TEXT_MAX);
	text[how % TEXT_MAX] = '\0';
	return text;
}

/* Exactly as long as stated, so that reads beyond it are detected. */
static struct sockaddr *next_addr(socklen_t *ret_bytes)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6, AF_IB, AF_UNIX };
	static const socklen_t sizes[] = { sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6),
					   sizeof(struct sockaddr_ib), sizeof(struct sockaddr) };
	uint8_t how = next_byte(&in);
	struct sockaddr *addr;

	*ret_bytes = 0;
	if (how < 0x80)
		return NULL;
	addr = malloc(sizes[how % 4]);
	next_bytes(&in, addr, sizes[how % 4]);
	addr->sa_family = families[how % 4];
	*ret_bytes = sizes[how % 4];
	return addr;
}

static void next_hints(struct rdma_addrinfo *hints)
{
	static const int spaces[] = { 0, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB };
	static const int families[] = { 0, AF_INET, AF_INET6, AF_IB };

	memset(hints, 0, sizeof(*hints));
	hints->ai_flags = next_byte(&in) & 0x3f;
	hints->ai_family = families[next_byte(&in) % 4];
	hints->ai_qp_type = next_byte(&in) % 12;
	hints->ai_port_space = spaces[next_byte(&in) % 5];
	hints->ai_src_addr = next_addr(&hints->ai_src_len);
	hints->ai_dst_addr = next_addr(&hints->ai_dst_len);
}

static unsigned int checksum_of(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	unsigned int sum = 0;

	while (n--)
		sum += *at++;
	return sum;
}

/* All data of an entry can be read. */
static void check_result(const struct rdma_addrinfo *found)
{
	unsigned int sum = 0;

	for (; found; found = found->ai_next) {
		assert(!found->ai_src_len == !found->ai_src_addr);
		assert(!found->ai_dst_len == !found->ai_dst_addr);
		sum += checksum_of(found->ai_src_addr, found->ai_src_len);
		sum += checksum_of(found->ai_dst_addr, found->ai_dst_len);
		sum += checksum_of(found->ai_route, found->ai_route_len);
		sum += checksum_of(found->ai_connect, found->ai_connect_len);
	}
	assert(sum < UINT32_MAX);
}

static void ask(void)
{
	char node[TEXT_MAX], service[TEXT_MAX];
	struct rdma_addrinfo hints, *found = NULL;
	bool has_hints = next_byte(&in) & 3;
	const char *of_node = next_text(node), *of_service = next_text(service);

	next_hints(&hints);
	prepare_reply();
	if (!rdma_getaddrinfo(of_node, of_service, has_hints ? &hints : NULL, &found))
		check_result(found);
	rdma_freeaddrinfo(found);
	free(hints.ai_src_addr);
	free(hints.ai_dst_addr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	in = (struct input){ data, bytes };
	begin_ibacm();
	while (in.left && acm.fd >= 0)
		ask();
	ibacm_fini(&acm);
	close(ibacm_end);
	return 0;
}
