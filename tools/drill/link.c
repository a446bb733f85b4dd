/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program link of purecm drill: takes the CM class of the port that leads to an address, and
 * carries MADs, unchanged, between the peer and its standard input, a socket that keeps records.
 *
 *   link --rows                          prints the fields of all messages as JSON
 *   link [--qp1] [--write FILE] ADDRESS  sends what scripts know of both ends as JSON, and then a
 *                                        record for each MAD, until the socket is closed
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "mad/cma_hdr.h"
#include "mad/sender.h"
#include "mad/talk.h"
#include "mad/umad.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/pcapng.h"

#define PKEY_DEFAULT 0xffff

/* Read by argp in the C library, so it must not be hidden. */
__attribute__((visibility("default"))) const char *argp_program_version = "purecm " PURECM_VERSION;

struct link {
	const char *address;
	const char *write;
	bool by_qp1;
	bool rows;
	struct checkup checkup;
	struct mad_port *port;
	struct mad_sender *sender; /* NULL: send through umad */
	struct mad_path path;	   /* to the peer */
	struct mad_gid local_gid;
	struct pcapng *file; /* for all messages; may be NULL */
	FILE *drill;	     /* the standard input, for writing; flushed after each record */
};

/* --- fields -------------------------------------------------------------- */

/* A row of JSON for each: name, byte, bit, width, shift, and whether it is bytes. */
static void print_rows(const char *name, const struct wire_layout *layout)
{
	const struct wire_field *field = layout->field;
	size_t i;

	printf("\"%s\":[", name);
	for (i = 0; i < layout->n_fields; i++, field++)
		printf("%s[\"%s\",%u,%u,%u,%u,%s]", i ? "," : "", field->name, field->byte,
		       field->bit, field->width, field->shift,
		       field->kind == WIRE_BYTES ? "true" : "false");
	putchar(']');
}

static int print_all_rows(void)
{
	uint16_t attr;

	putchar('{');
	for (attr = CM_ATTR_REQ; attr <= CM_ATTR_APR; attr++) {
		print_rows(cm_msg_layout(attr)->name, cm_msg_layout(attr));
		putchar(',');
	}
	print_rows("mad", &mad_hdr_layout);
	putchar(',');
	print_rows("ip", &cma_hdr_layout);
	puts("}");
	return command_end(STATUS_OK);
}

/* --- the port ------------------------------------------------------------ */

static int open_port(struct link *link)
{
	const struct gid_entry *gid = &link->checkup.gid;
	const char *device = ibv_get_device_name(gid->verbs->device);
	struct umad_owner who = { "", "" };
	int err = umad_port_open(device, gid->port_num, &link->port, &who);

	if (err) {
		complain("a drill needs the CM class of %s/%u for itself: %s%s%s%s%s", device,
			 gid->port_num, strerror(-err), who.what[0] ? ": " : "", who.what,
			 who.remedy[0] ? "; " : "", who.remedy);
		return err;
	}
	/* Without the required privilege, messages are sent through umad, which sets the tid. */
	if (link->by_qp1 || mad_sender_open(gid->verbs, gid->port_num, &link->sender))
		link->sender = NULL;
	if (link->sender)
		mad_sender_insist(link->sender);
	return 0;
}

static int open_link(struct link *link)
{
	int err = checkup_find_way(&link->checkup);

	link->drill = fdopen(dup(STDIN_FILENO), "w");
	if (!link->drill)
		return -errno;
	if (!err)
		err = open_port(link);
	if (!err && link->write)
		err = pcapng_open(link->write, &link->file);
	if (err)
		return err;
	link->path = (struct mad_path){ .grh = true,
					.sgid_index = (uint8_t)link->checkup.gid.gid_index,
					.hop_limit = link->checkup.route.hop_limit,
					.dgid = addr_to_gid(&link->checkup.dst) };
	memcpy(&link->local_gid, &link->checkup.gid.gid, sizeof(link->local_gid));
	return 0;
}

static void put_bytes(FILE *out, const char *name, const void *bytes, size_t n)
{
	size_t i;

	fprintf(out, ",\"%s\":\"", name);
	for (i = 0; i < n; i++)
		fprintf(out, "%02x", ((const uint8_t *)bytes)[i]);
	putc('"', out);
}

static void send_ends(const struct link *link)
{
	uint8_t our_ip[16] = { 0 }, their_ip[16] = { 0 };
	struct ibv_device_attr attr = { .node_guid = 0 };

	ibv_query_device(link->checkup.gid.verbs, &attr);
	addr_pack(&link->checkup.route.src, our_ip);
	fprintf(link->drill, "{\"hop_limit\":%u,\"ip_version\":%u", link->path.hop_limit,
		addr_pack(&link->checkup.dst, their_ip));
	put_bytes(link->drill, "our_guid", &attr.node_guid, sizeof(attr.node_guid));
	put_bytes(link->drill, "our_ip", our_ip, sizeof(our_ip));
	put_bytes(link->drill, "their_ip", their_ip, sizeof(their_ip));
	put_bytes(link->drill, "here", &link->local_gid, sizeof(link->local_gid));
	put_bytes(link->drill, "there", &link->path.dgid, sizeof(link->path.dgid));
	putc('}', link->drill);
	fflush(link->drill);
}

/* --- MADs ---------------------------------------------------------------- */

static void record_mad(struct link *link, bool is_ours, const uint8_t mad[MAD_BYTES])
{
	struct observation observation = {
		.time_ns = clock_ns_of(CLOCK_REALTIME),
		.src = is_ours ? link->local_gid : link->path.dgid,
		.dst = is_ours ? link->path.dgid : link->local_gid,
		.src_qpn = 1,
		.pkey = PKEY_DEFAULT,
	};

	if (!link->file)
		return;
	memcpy(observation.mad, mad, MAD_BYTES);
	pcapng_put(link->file, &observation, NULL);
}

static int send_mad(struct link *link, const uint8_t mad[MAD_BYTES])
{
	uint8_t failed[MAD_BYTES];
	struct mad_path path;
	int err = -EAGAIN;

	record_mad(link, true, mad);
	if (link->sender)
		err = mad_sender_send(link->sender, &link->path, mad);
	if (err)
		return mad_port_send(link->port, &link->path, mad);
	while (!err && mad_sender_failed(link->sender, &path, failed))
		err = mad_port_send(link->port, &path, failed);
	return err;
}

static int take_mads(struct link *link, struct mad_port *port)
{
	struct mad_path path;
	uint8_t mad[MAD_BYTES], answer[MAD_BYTES];
	int err;

	while ((err = mad_port_receive(port, &path, mad)) == 0 || err == -ENOMSG) {
		if (err || memcmp(&path.dgid, &link->path.dgid, sizeof(path.dgid)) != 0)
			continue;
		if (mad_probe_answer(mad, answer)) { /* not part of a drill */
			mad_port_send(link->port, &path, answer);
			continue;
		}
		record_mad(link, false, mad);
		fwrite(mad, 1, MAD_BYTES, link->drill);
		fflush(link->drill);
	}
	return err == -EAGAIN ? 0 : err;
}

/* Return: 1; 0 at the end of the input; -errno. */
static int take_ours(struct link *link)
{
	uint8_t mad[MAD_BYTES];
	const ssize_t n = read(STDIN_FILENO, mad, sizeof(mad));
	int err;

	if (n != (ssize_t)sizeof(mad)) /* ECONNRESET: the drill has left messages unread */
		return n < 0 && errno != ECONNRESET ? -errno : 0;
	err = send_mad(link, mad);
	if (err)
		complain("a message cannot be sent: %s", strerror(-err));
	return err ? err : 1;
}

/* The peer may respond to QP1, or to the queue pair that our messages are sent from. */
static int carry_mads(struct link *link)
{
	struct mad_port *beside = link->sender ? mad_sender_port(link->sender) : NULL;
	struct pollfd look[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = link->port->fd, .events = POLLIN },
				 { .fd = beside ? beside->fd : -1, .events = POLLIN } };
	int err = 0, more = 1;

	while (!err && more > 0 && poll(look, 3, -1) >= 0) {
		if (look[1].revents)
			err = take_mads(link, link->port);
		if (!err && look[2].revents)
			err = take_mads(link, beside);
		if (!err && look[0].revents)
			more = take_ours(link);
	}
	return more < 0 ? more : err;
}

/* --- the program --------------------------------------------------------- */

static void take_address(void *input, char *address, struct argp_state *state)
{
	(void)state;
	((struct link *)input)->address = address;
}

static const struct command_option options[] = {
	{ "qp1", '1', NULL, "send from QP1", COMMAND_FLAG_AT(link, by_qp1) },
	{ "write", 'w', "FILE", "write what is sent and received as pcapng",
	  COMMAND_TEXT_AT(link, write) },
	{ "rows", 'r', NULL, "print the fields of all messages", COMMAND_FLAG_AT(link, rows) },
	{ 0 },
};

static const struct command_line usage = { .args = "ADDRESS",
					   .options = options,
					   .take_arg = take_address };

int main(int argc, char **argv)
{
	static struct link link;
	int err;

	argv[0] = (char[]){ "drill" };
	signal(SIGPIPE, SIG_IGN); /* the drill may have ended when a message arrives */
	signal(SIGINT, SIG_IGN);  /* the drill, which gets it too, ends by it and then this */
	command_parse(&usage, argc, argv, &link);
	if (link.rows || !link.address)
		return print_all_rows();
	link.checkup.target = link.address;
	err = open_link(&link);
	if (!err) {
		send_ends(&link);
		err = carry_mads(&link);
	}
	if (pcapng_close(link.file))
		err = -EIO;
	mad_sender_close(link.sender);
	mad_port_close(link.port);
	checkup_fini(&link.checkup);
	return err ? STATUS_FAILED : STATUS_OK;
}
