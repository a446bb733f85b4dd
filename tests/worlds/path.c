/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints service level and traffic class of the path from one address to another: path SOURCE
 * DESTINATION WORD..., for each type of service; - is an id without the option, and !COMMAND runs a
 * command before the next. One binary for both libraries.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 20000

static int n_commands;

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(7471) };

	if (inet_pton(AF_INET, text, &addr.sin_addr) != 1)
		exit(2);
	return addr;
}

static int show_path(struct rdma_cm_id *id, const char *source, const char *destination,
		     const char *tos)
{
	struct sockaddr_in from = address(source), to = address(destination);
	uint8_t value = (uint8_t)atoi(tos);

	from.sin_port = 0;
	if ((strcmp(tos, "-") != 0 &&
	     rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, sizeof(value))) ||
	    rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, TIMEOUT_MS) ||
	    rdma_resolve_route(id, TIMEOUT_MS)) {
		perror(destination);
		return 1;
	}
	printf("after %d commands, type of service %s: level %u, class %u\n", n_commands, tos,
	       id->route.path_rec->sl, id->route.path_rec->traffic_class);
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
