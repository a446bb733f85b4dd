/* SPDX-License-Identifier: BSD-2-Clause */
/* A fake cmportd, in place of the library's client of it: see fake_cmportd.h. */
#include "tests/unit/lib/fake_cmportd.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mad/cm_msg.h"
#include "tests/unit/test.h"

struct fake_cmportd cmportd;

static struct portd_client *const client = (struct portd_client *)&cmportd;

void fake_cmportd_begin(void)
{
	cmportd = (struct fake_cmportd){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
					 .n_events = 1 };
	ck_assert_int_ge(cmportd.fd, 0);
}

void fake_cmportd_send(const struct portd_record *record)
{
	ck_assert_uint_lt(cmportd.n_says, FAKE_SAYS_MAX);
	cmportd.says[cmportd.n_says++] = *record;
	ck_assert_int_eq(eventfd_write(cmportd.fd, 1), 0);
}

/* A test may check while the requesting thread waits for the response. */
static unsigned int count_recorded(void)
{
	return __atomic_load_n(&cmportd.n_said, __ATOMIC_ACQUIRE);
}

unsigned int fake_cmportd_count(enum portd_type type)
{
	unsigned int i, n = 0;

	for (i = 0; i < count_recorded(); i++)
		n += cmportd.said[i].type == type;
	return n;
}

const struct portd_record *fake_cmportd_last(enum portd_type type)
{
	unsigned int i;

	for (i = count_recorded(); i > 0; i--)
		if (cmportd.said[i - 1].type == type)
			return &cmportd.said[i - 1];
	ck_abort_msg("cmportd was not given %s", portd_type_str(type));
	return NULL;
}

struct cm_msg fake_cmportd_message(enum cm_attr kind)
{
	static const char *const names[] = { "REQ",  "MRA",	 "REJ",	     "REP", "RTU", "DREQ",
					     "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR" };
	struct cm_msg msg;

	ck_assert_int_eq(cm_msg_decode(fake_cmportd_last(PORTD_MAD)->mad.mad, MAD_BYTES, &msg), 0);
	ck_assert_str_eq(names[msg.hdr.attr_id - CM_ATTR_REQ], names[kind - CM_ATTR_REQ]);
	return msg;
}

static void keep(const struct portd_record *record)
{
	if (cmportd.meanwhile)
		cmportd.meanwhile(record);
	ck_assert_uint_lt(cmportd.n_said, FAKE_SAID_MAX);
	cmportd.said[cmportd.n_said] = *record;
	__atomic_add_fetch(&cmportd.n_said, 1, __ATOMIC_RELEASE);
}

static void keep_claim(enum portd_type type, const struct portd_claim *claim)
{
	keep(&(struct portd_record){ .type = type, .claim = *claim });
}

/* --- start and end --------------------------------------------------------- */

int portd_client_open(struct portd_client **ret, struct portd_ids *ret_ids,
		      struct portd_why *ret_why)
{
	(void)ret_why;
	*ret_ids = (struct portd_ids){ .first = FAKE_FIRST_ID, .count = FAKE_N_IDS };
	*ret = client;
	return 0;
}

int portd_client_open_by(struct portd_client **ret,
			 int (*reach)(int *ret_fd, struct portd_why *ret_why),
			 struct portd_ids *ret_ids, struct portd_why *ret_why)
{
	(void)reach;
	return portd_client_open(ret, ret_ids, ret_why);
}

void portd_client_close(struct portd_client *of)
{
	(void)of;
}

void portd_client_leave(struct portd_client *of, int ms)
{
	(void)of, (void)ms;
}

int portd_start_own(int *ret_fd, struct portd_why *ret_why)
{
	(void)ret_fd, (void)ret_why;
	return -ECONNREFUSED;
}

void portd_client_after_fork(void)
{
}

int portd_client_fd(const struct portd_client *of)
{
	(void)of;
	return cmportd.fd;
}

void portd_drain(struct portd_client *of, int ms)
{
	(void)of, (void)ms;
}

void portd_resume_here(void)
{
	cmportd.resumer = pthread_self();
}

int portd_receive(struct portd_client *of,
		  void (*take)(const struct portd_record *record, void *arg), void *arg)
{
	eventfd_t count;
	unsigned int i;

	(void)of;
	eventfd_read(cmportd.fd, &count);
	if (cmportd.has_ended)
		return -EPIPE;
	for (i = 0; i < cmportd.n_says; i++)
		take(&cmportd.says[i], arg);
	cmportd.n_says = 0;
	return 0;
}

int portd_resume(struct portd_client *of, void (*tell)(struct portd_client *client, void *arg),
		 void *arg)
{
	if (cmportd.resume_err)
		return cmportd.resume_err;
	cmportd.has_ended = false;
	tell(of, arg);
	return 0;
}

/* --- ports, comm ids ------------------------------------------------------- */

int portd_await(struct portd_client *of)
{
	(void)of;
	return cmportd.awaited ? cmportd.awaited() : 0;
}

int portd_open_port(struct portd_client *of, const char *device, uint8_t port_num,
		    portd_opened_fn *opened, void *arg, struct portd_why *ret_why)
{
	const struct portd_reply reply = {
		.handle = FAKE_HANDLE + cmportd.n_handles,
		.ca_guid = 0x10 + port_num,
	};

	(void)of, (void)device, (void)ret_why;
	if (cmportd.opening)
		cmportd.opening();
	if (cmportd.open_err)
		return cmportd.open_err;
	cmportd.n_handles++;
	opened(&reply, arg);
	return 0;
}

int portd_tell_port(struct portd_client *of, const char *device, uint8_t port_num,
		    struct portd_reply *ret)
{
	unsigned int place = cmportd.swaps_handles ? 2u - port_num : port_num - 1u;

	(void)of, (void)device;
	*ret = (struct portd_reply){ .error = (uint16_t)-cmportd.open_err,
				     .handle = (uint8_t)(FAKE_HANDLE + place) };
	return 0;
}

void portd_keep_reply(const struct portd_reply *reply, void *arg)
{
	*(struct portd_reply *)arg = *reply;
}

uint32_t portd_port_events(const struct portd_client *of, int handle)
{
	(void)of, (void)handle;
	return cmportd.n_events;
}

int portd_bind(struct portd_client *of, struct portd_claim *claim)
{
	(void)of;
	keep_claim(PORTD_BIND, claim);
	if (!cmportd.bind_err && !claim->local_port)
		claim->local_port = FAKE_FIRST_PORT + cmportd.n_ports++;
	return cmportd.bind_err;
}

int portd_listen(struct portd_client *of, const struct portd_claim *claim)
{
	(void)of;
	keep_claim(PORTD_LISTEN, claim);
	return cmportd.listen_err;
}

void portd_update(struct portd_client *of, const struct portd_claim *claim)
{
	(void)of;
	keep_claim(PORTD_UPDATE, claim);
}

void portd_release(struct portd_client *of, uint32_t claim_id)
{
	(void)of;
	keep_claim(PORTD_RELEASE, &(struct portd_claim){ .claim_id = claim_id });
}

int portd_tell_claim(struct portd_client *of, const struct portd_claim *claim, bool listens)
{
	(void)of;
	keep_claim(listens ? PORTD_LISTEN : PORTD_BIND, claim);
	return cmportd.bind_err;
}

uint16_t portd_take_port(struct portd_client *of, uint16_t ps)
{
	(void)of, (void)ps;
	return cmportd.has_no_ports ? 0 : FAKE_FIRST_PORT + cmportd.n_ports++;
}

/* Returning a port is a RELEASE with its number and without a claim. */
bool portd_give_port(struct portd_client *of, uint16_t ps, uint16_t port)
{
	(void)of;
	keep_claim(PORTD_RELEASE, &(struct portd_claim){ .ps = ps, .local_port = port });
	return true;
}

int portd_lease_ids(struct portd_client *of, struct portd_ids *ret)
{
	(void)of;
	*ret = (struct portd_ids){ .first = FAKE_FIRST_ID + FAKE_N_IDS * ++cmportd.n_leases,
				   .count = FAKE_N_IDS };
	return 0;
}

/* --- messages -------------------------------------------------------------- */

void portd_hold(struct portd_client *of, const struct portd_record *record)
{
	(void)of;
	keep(record);
}

int portd_send_held(struct portd_client *of)
{
	(void)of;
	cmportd.n_sends++;
	cmportd.n_left = cmportd.n_said;
	return cmportd.send_err;
}

int portd_put_data(struct portd_client *of, const struct portd_record *record)
{
	keep(record);
	return portd_send_held(of);
}

int portd_tell_data(struct portd_client *of, const struct portd_record *record)
{
	return portd_put_data(of, record);
}

void portd_tell_failed(struct portd_client *of)
{
	(void)of;
	cmportd.has_ended = true;
}

int portd_try_data(struct portd_client *of, const struct portd_datagram *datagram)
{
	struct portd_datagram in = *datagram;
	struct portd_record record;

	(void)of;
	if (cmportd.try_err)
		return cmportd.try_err;
	if (cmportd.n_busy) {
		cmportd.n_busy--;
		return -EAGAIN;
	}
	cmportd.n_datagrams++;
	for (in.at = 0; portd_get(&in, &record) == 0;)
		keep(&record);
	return 0;
}

void portd_track(struct portd_client *of, const struct cm_record *tracked)
{
	(void)of;
	keep(&(struct portd_record){ .type = PORTD_TRACK, .tracked = *tracked });
}

void portd_tell_tracked(struct portd_client *of, const struct cm_record *tracked)
{
	portd_track(of, tracked);
}
