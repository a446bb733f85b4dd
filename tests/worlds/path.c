/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the path from one address to another, IPv4 or IPv6: path SOURCE DESTINATION WORD..., for
 * each WORD. A number is a type of service, "-" leaves that option out, and !COMMAND is run by the
 * shell. A SOURCE of "-" means that the id is not bound. One binary serves both libraries.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 20000

static int n_commands;

static struct addrinfo *address(const char *text, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(text, port, &hints, &found))
		exit(2);
	return found;
}

static int resolve(struct rdma_cm_id *id, const char *source, const char *destination)
{
	struct addrinfo *from = strcmp(source, "-") ? address(source, "0") : NULL;
	struct addrinfo *to = address(destination, "7471");
	int rc;

	rc = rdma_resolve_addr(id, from ? from->ai_addr : NULL, to->ai_addr, TIMEOUT_MS) ||
	     rdma_resolve_route(id, TIMEOUT_MS);
	freeaddrinfo(to);
	if (from)
		freeaddrinfo(from);
	return rc;
}

static int show_path(struct rdma_cm_id *id, const char *source, const char *destination,
		     const char *tos)
{
	const struct ibv_sa_path_rec *path;
	uint8_t value = (uint8_t)atoi(tos);
	char gid[INET6_ADDRSTRLEN];

	if ((strcmp(tos, "-") != 0 &&
	     rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, sizeof(value))) ||
	    resolve(id, source, destination)) {
		perror(destination);
		return 1;
	}
	path = id->route.path_rec;
	printf("after %d commands, type of service %s to %s: level %u, class %u, %u hops, MTU %u, "
	       "%s, %s\n",
	       n_commands, tos, destination, path->sl, path->traffic_class, path->hop_limit,
	       128u << path->mtu, ibv_get_device_name(id->verbs->device),
	       inet_ntop(AF_INET6, &path->sgid, gid, sizeof(gid)));
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *id;
	int i, status = 0;

	for (i = 3; i < argc; i++) {
		if (argv[i][0] == '!') {
			status |= system(argv[i] + 1);
			n_commands++;
			continue;
		}
		if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
			return 1;
		status |= show_path(id, argv[1], argv[2], argv[i]);
		rdma_destroy_id(id);
	}
	return status;
}
