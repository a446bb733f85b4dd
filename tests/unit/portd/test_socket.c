/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A running cmportd with clients that violate the protocol. No RDMA device is needed: requests are
 * refused before they use one. $CMPORTD is the program.
 */
#include <dirent.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/portd/proto/datagram.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

#define PORT	    7174
#define N_DATAGRAMS 20000
#define LOOKS	    1000
#define LOOK_US	    10000

static pid_t server;

struct client {
	int control;
	int data;
	struct portd_reply reply; /* the latest one */
};

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", socket_path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void set_up(void)
{
	int ends[2];
	char byte;

	folder_make();
	ck_assert_int_eq(pipe(ends), 0);
	server = fork();
	if (server == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(CMPORTD, CMPORTD, "--socket", socket_path, "--idle", "0", "--started", NULL);
		_exit(127);
	}
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1); /* it serves */
	close(ends[0]);
}

static void tear_down(void)
{
	int status;

	kill(server, SIGTERM);
	ck_assert_int_eq(waitpid(server, &status, 0), server);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "cmportd ended with 0x%x",
		      (unsigned int)status);
}

static int n_descriptors(void)
{
	char name[64];
	int n = 0;
	DIR *dir;

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)server);
	dir = opendir(name);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void send_bytes(int fd, const void *bytes, size_t n)
{
	ck_assert_int_ge(send(fd, bytes, n, MSG_NOSIGNAL), -1);
}

/* Return: false if cmportd has disconnected. */
static bool receive(struct client *client)
{
	struct portd_datagram in;
	struct portd_record record;
	int fd[2];

	if (portd_datagram_receive(client->control, &in, fd, 0) <= 0)
		return false;
	ck_assert_int_eq(portd_get(&in, &record), 0);
	client->reply = record.reply;
	if (fd[0] >= 0)
		client->data = fd[0];
	return true;
}

static bool ask(struct client *client, const struct portd_record *record)
{
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, record);
	send_bytes(client->control, out.data, out.bytes);
	return portd_is_one_way(record->type) || receive(client);
}

static struct client meet(uint16_t version)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = version } };
	struct client client = { .control = dial(), .data = -1 };

	ck_assert(ask(&client, &hello));
	return client;
}

static void close_client(struct client *client)
{
	close(client->control);
	close(client->data);
}

static int bind_of(struct client *client, uint32_t claim_id)
{
	struct portd_record record = { .type = PORTD_BIND,
				       .claim = { .claim_id = claim_id,
						  .ps = RDMA_PS_TCP,
						  .local_family = 4,
						  .local_port = PORT,
						  .afonly = 1 } };

	ck_assert(ask(client, &record));
	return client->reply.error;
}

FIXTURE(set_up, tear_down);
TEST(hello_returns_comm_ids_and_a_data_socket)
{
	struct client client = meet(PORTD_VERSION);

	ck_assert_uint_eq(client.reply.error, 0);
	ck_assert_uint_eq(client.reply.count, 65536);
	ck_assert_int_ge(client.data, 0);
}

TEST(no_two_clients_get_the_same_comm_ids)
{
	struct client one = meet(PORTD_VERSION), two = meet(PORTD_VERSION);

	ck_assert_uint_ne(one.reply.first, two.reply.first);
}

TEST(client_of_another_version_gets_the_servers_version)
{
	struct client client = meet(PORTD_VERSION + 1);

	ck_assert_uint_eq(client.reply.error, EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(client.reply.text, "version"));
}

TEST(request_before_hello_ends_the_connection)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct client client = { .control = dial(), .data = -1 };

	ck_assert(!ask(&client, &record));
}

TEST(second_hello_ends_the_connection)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct client client = meet(PORTD_VERSION);

	ck_assert(!ask(&client, &hello));
}

TEST(a_message_on_the_control_socket_is_unexpected)
{
	struct portd_record record = { .type = PORTD_MAD };
	struct client client = meet(PORTD_VERSION);

	ck_assert(!ask(&client, &record));
}

TEST(a_message_for_an_unopened_port_is_dropped)
{
	struct portd_record record = { .type = PORTD_MAD, .mad = { .port = 200 } };
	struct client client = meet(PORTD_VERSION);
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, &record);
	send_bytes(client.data, out.data, out.bytes);
	ck_assert_int_eq(bind_of(&client, 1), 0);
}

TEST(only_resuming_clients_can_hold_comm_ids)
{
	struct client owner = meet(PORTD_VERSION), thief = meet(PORTD_VERSION);
	struct portd_record record = { .type = PORTD_HOLD_IDS,
				       .ids = { .first = owner.reply.first } };

	ck_assert(ask(&thief, &record));
	ck_assert_uint_eq(thief.reply.error, EPERM);
}

TEST(a_connection_on_a_port_that_was_not_opened_changes_nothing)
{
	struct portd_record record = { .type = PORTD_TRACK,
				       .tracked = { .handle = 255, .state = 255 } };
	struct client client = meet(PORTD_VERSION);

	record.tracked.local_comm_id = client.reply.first;
	ck_assert(ask(&client, &record));
	ck_assert_int_eq(bind_of(&client, 1), 0);
}

TEST(a_port_of_a_living_client_is_in_use)
{
	struct client one = meet(PORTD_VERSION), two = meet(PORTD_VERSION);

	ck_assert_int_eq(bind_of(&one, 1), 0);
	ck_assert_int_eq(bind_of(&two, 1), EADDRNOTAVAIL);
}

TEST(a_port_of_a_disconnected_client_is_free_at_once)
{
	struct client one = meet(PORTD_VERSION), two = meet(PORTD_VERSION);

	ck_assert_int_eq(bind_of(&one, 1), 0);
	close(one.control);
	ck_assert_int_eq(bind_of(&two, 1), 0);
}

TEST(a_device_that_does_not_exist_is_enodev)
{
	struct portd_record record = { .type = PORTD_OPEN_PORT,
				       .open_port = { .port_num = 1, .device = "no such device" } };
	struct client client = meet(PORTD_VERSION);

	ck_assert(ask(&client, &record));
	ck_assert_uint_eq(client.reply.error, ENODEV);
}

/* Half of the datagrams begin like a record. */
static void fill(uint8_t *bytes, size_t n, unsigned int number)
{
	size_t i;

	for (i = 0; i < n; i++)
		bytes[i] = (uint8_t)random();
	if (n < PORTD_HEAD_BYTES || number % 2)
		return;
	bytes[0] = 0;
	bytes[1] %= PORTD_N_TYPES;
	bytes[2] = (uint8_t)(n >> 8);
	bytes[3] = (uint8_t)n;
}

TEST_LOOP(cmportd_survives_random_datagrams, 0, 2)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = 0x106, .count = 1 } };
	struct client client = meet(PORTD_VERSION);
	uint8_t bytes[512];
	int before, i, looks;

	if (geteuid()) {
		printf("skipped: only root may connect so often\n");
		return;
	}
	/* The first of these opens files that stay open; random bytes may be one. */
	ck_assert(ask(&client, &lease));
	before = n_descriptors();
	srandom((unsigned int)_i);
	close_client(&client);
	for (i = 0; i < N_DATAGRAMS; i += 10) {
		client = meet(PORTD_VERSION);
		for (looks = 0; looks < 10; looks++) {
			size_t n = 1 + (size_t)random() % (sizeof(bytes) - 1);

			fill(bytes, n, (unsigned int)looks / 2);
			send_bytes(looks % 3 ? client.control : client.data, bytes, n);
		}
		close_client(&client);
	}
	client = meet(PORTD_VERSION);
	/*
	 * A turn has ended when the next client has a reply; threads may close descriptors later,
	 * see closer.h.
	 */
	for (looks = 0; n_descriptors() > before && looks < LOOKS; looks++) {
		close_client(&client);
		usleep(LOOK_US);
		client = meet(PORTD_VERSION);
	}
	ck_assert_int_le(n_descriptors(), before);
	ck_assert_uint_eq(client.reply.error, 0);
}
