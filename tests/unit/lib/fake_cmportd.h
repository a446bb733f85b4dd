/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake cmportd: the calls of lib/portd/client/portd_client.h are defined here, in place of the
 * client's. It stores all records of the library in order, grants all requests unless the test has
 * set an error, and sends records of the test.
 */
#ifndef TESTS_UNIT_LIB_FAKE_CMPORTD_H
#define TESTS_UNIT_LIB_FAKE_CMPORTD_H

#include <pthread.h>

#include "lib/portd/client/portd_client.h"
#include "mad/cm_msg.h"

#define FAKE_SAID_MAX	1200
#define FAKE_SAYS_MAX	8
#define FAKE_HANDLE	3	/* of the first opened port */
#define FAKE_FIRST_PORT 40000	/* of the ephemeral ports */
#define FAKE_FIRST_ID	0x10000 /* of the comm ids */
#define FAKE_N_IDS	65536

struct fake_cmportd {
	/*
	 * Records of the library. Those without a call of their own have the type of their request.
	 */
	struct portd_record said[FAKE_SAID_MAX];
	unsigned int n_said;
	unsigned int n_left; /* of these that were sent; the rest is held for portd_send_held() */
	unsigned int n_sends;
	unsigned int n_datagrams; /* of portd_try_data() */

	/* Results: 0 or -errno. */
	int open_err, bind_err, listen_err, send_err, try_err, resume_err;
	unsigned int n_busy; /* number of times that portd_try_data() finds no room */
	uint8_t n_handles;
	uint16_t n_ports; /* ephemeral ports taken so far, including returned ones */
	bool has_no_ports;
	unsigned int n_leases; /* of comm ids */
	uint32_t n_events;     /* of each port's device */

	/* Results for the engine. */
	struct portd_record says[FAKE_SAYS_MAX];
	unsigned int n_says;
	bool has_ended;
	pthread_t resumer; /* the thread that has called portd_resume_here() */

	bool swaps_handles; /* the next cmportd opens port 2 first */

	void (*meanwhile)(
		const struct portd_record *record); /* before a record is stored; or NULL */
	void (*opening)(void);			    /* before a port is opened; or NULL */
	int (*awaited)(void);			    /* portd_await(); NULL: returns 0 */
	int fd;
};

extern struct fake_cmportd cmportd;

/** fake_cmportd_begin() - start without records. */
void fake_cmportd_begin(void);

/** fake_cmportd_send() - have portd_receive() return this record; the descriptor is readable. */
void fake_cmportd_send(const struct portd_record *record);

/** fake_cmportd_count() - the number of records of this type from the library. */
unsigned int fake_cmportd_count(enum portd_type type);

/** fake_cmportd_last() - the last record of this type, which must exist. */
const struct portd_record *fake_cmportd_last(enum portd_type type);

/** fake_cmportd_message() - the last CM message, which must be of this kind. */
struct cm_msg fake_cmportd_message(enum cm_attr kind);

#endif
