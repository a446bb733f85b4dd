/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: creating channels and ids, and calls with invalid arguments. */
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>

#include "steps.h"

static void channel_fd_is_blocking_and_closed_on_exec(struct scene *s)
{
	struct rdma_event_channel *other = rdma_create_event_channel();

	SAY("O_NONBLOCK %d", !!(fcntl(s->channel->fd, F_GETFL) & O_NONBLOCK));
	SAY("FD_CLOEXEC %d", !!(fcntl(s->channel->fd, F_GETFD) & FD_CLOEXEC));
	SAY("second channel has another fd: %d", other && other->fd != s->channel->fd);
	rdma_destroy_event_channel(other);
}

static void new_id_has_only_what_was_given(struct scene *s)
{
	static const int spaces[] = {
		RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, 0, 0x0107
	};
	struct rdma_cm_id *id;
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		SAY("port space %#x", (unsigned)spaces[i]);
		if (DO(rdma_create_id(s->channel, &id, s, spaces[i])))
			continue;
		assign_id_name(id, "new");
		show_id(id);
		SAY("context kept: %d channel kept: %d", id->context == s,
		    id->channel == s->channel);
		id->context = NULL;
		DO(rdma_destroy_id(id));
	}
}

static void null_arguments_are_refused(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP), *out = NULL;
	struct rdma_addrinfo *info = NULL;

	DO(rdma_get_cm_event(s->channel, NULL));
	DO(rdma_ack_cm_event(NULL));
	DO(rdma_bind_addr(id, NULL));
	DO(rdma_get_request(id, &out));
	DO(rdma_getaddrinfo(NULL, NULL, NULL, &info));
	DO(rdma_set_local_ece(id, NULL));
	DO(rdma_get_remote_ece(id, NULL));
	rdma_freeaddrinfo(NULL);
	close_id(id);
}

static void unknown_address_families_are_refused(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };

	DO(rdma_bind_addr(id, (struct sockaddr *)&addr));
	DO(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS));
	addr.ss_family = 0;
	DO(rdma_bind_addr(id, (struct sockaddr *)&addr));
	DO(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS));
	addr.ss_family = AF_UNIX;
	DO(rdma_resolve_addr(id, (struct sockaddr *)&addr, at(&s->peer, 1), RESOLVE_MS));
	show_id(id);
	close_id(id);
}

static void ports_are_read_from_the_addresses(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);

	SAY("src %u dst %u", ntohs(rdma_get_src_port(id)), ntohs(rdma_get_dst_port(id)));
	DO(rdma_bind_addr(id, at(&s->self, s->port)));
	SAY("src own %d dst %u", ntohs(rdma_get_src_port(id)) == s->port,
	    ntohs(rdma_get_dst_port(id)));
	DO(rdma_resolve_addr(id, NULL, at(&s->peer, 4321), RESOLVE_MS));
	SAY("src own %d dst %u", ntohs(rdma_get_src_port(id)) == s->port,
	    ntohs(rdma_get_dst_port(id)));
	take_event(s);
	SAY("src own %d dst %u", ntohs(rdma_get_src_port(id)) == s->port,
	    ntohs(rdma_get_dst_port(id)));
	close_id(id);
}

/* The program is in the folder of the scenarios. Long output is printed as a checksum. */
static void run_in_thread(const char *name)
{
	char self[PATH_MAX + 16] = { 0 }; /* plus the name */

	if (readlink("/proc/self/exe", self, PATH_MAX - 1) < 0 || !strrchr(self, '/'))
		give_up("/proc/self/exe: %s", strerror(errno));
	strcpy(strrchr(self, '/') + 1, name);
	if (access(self, X_OK))
		give_up("%s: %s", self, strerror(errno));
	shell("%s | tee /tmp/%s.out | md5sum; wc -l </tmp/%s.out", self, name, name);
}

static void resolver_finds_the_same(struct scene *s)
{
	(void)s;
	run_in_thread("addrinfo");
}

static void ibacm_is_asked_and_believed(struct scene *s)
{
	(void)s;
	run_in_thread("ibacm");
}

static void every_event_has_its_name(struct scene *s)
{
	int event;

	(void)s;
	for (event = -2; event < 24; event++)
		SAY("%d %s", event, rdma_event_str((enum rdma_cm_event_type)event));
}

const struct scenario args_scenarios[] = {
	LOCAL("args-channel", channel_fd_is_blocking_and_closed_on_exec, 0,
	      "flags of an event channel's descriptor"),
	LOCAL("args-new-id", new_id_has_only_what_was_given, 0,
	      "fields of a new id in every port space, and an unknown port space"),
	LOCAL("args-null", null_arguments_are_refused, 0, "NULL where it is not allowed"),
	LOCAL("args-family", unknown_address_families_are_refused, 0,
	      "addresses of unknown families"),
	LOCAL("args-ports", ports_are_read_from_the_addresses, 0,
	      "rdma_get_src_port and rdma_get_dst_port over an id's life"),
	LOCAL("args-event-names", every_event_has_its_name, 0,
	      "rdma_event_str for known and unknown numbers"),
	LOCAL_LIMIT("args-resolver", resolver_finds_the_same, SLOW | V4_ONLY, 180,
		    "rdma_getaddrinfo with every combination of hints"),
	LOCAL("args-ibacm", ibacm_is_asked_and_believed, ALONE | V4_ONLY,
	      "rdma_getaddrinfo on a host with ibacm"),
	LAST_SCENARIO,
};
