/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cmportd that does not exist: the calls of lib/portd/client/portd_client.h are defined here, in
 * place of the client's. It keeps all that the library says, in order, grants what it is asked for
 * unless the test has set an error, and says what the test has it say.
 */
#ifndef TESTS_UNIT_LIB_FAKE_CMPORTD_H
#define TESTS_UNIT_LIB_FAKE_CMPORTD_H

#include "lib/portd/client/portd_client.h"
#include "mad/cm_msg.h"

#define FAKE_SAID_MAX	1200
#define FAKE_SAYS_MAX	8
#define FAKE_HANDLE	3	/* of the first port that is opened */
#define FAKE_FIRST_PORT 40000	/* of the ephemeral ones */
#define FAKE_FIRST_ID	0x10000 /* of the comm ids */
#define FAKE_N_IDS	65536

struct fake_cmportd {
	/* What the library said. Records without a call of their own have the type of their
	 * request. */
	struct portd_record said[FAKE_SAID_MAX];
	unsigned int n_said;
	unsigned int n_left; /* of these; the rest is held for portd_send_held() */
	unsigned int n_sends;
	unsigned int n_datagrams; /* of portd_try_data() */

	/* What it answers: 0 or -errno. */
	int open_err, bind_err, listen_err, send_err, try_err, resume_err;
	unsigned int n_busy; /* so often portd_try_data() finds no room */
	uint8_t n_handles;
	uint16_t n_ports; /* ephemeral ones that were taken; those given back are not counted off */
	bool has_no_ports;
	unsigned int n_leases; /* of comm ids */
	uint32_t n_events;     /* of each port's device */

	/* What it says when the engine asks. */
	struct portd_record says[FAKE_SAYS_MAX];
	unsigned int n_says;
	bool has_ended;

	const char *reopened; /* the device whose port 1 the next cmportd opens anew; or NULL */

	void (*meanwhile)(const struct portd_record *record); /* before a record is kept; or NULL */
	void (*opening)(void);				      /* before a port is opened; or NULL */
	int fd;
};

extern struct fake_cmportd cmportd;

/** fake_cmportd_begin() - one to which nothing was said. */
void fake_cmportd_begin(void);

/** fake_cmportd_says() - portd_receive() will have this record; the descriptor is readable. */
void fake_cmportd_says(const struct portd_record *record);

/** fake_cmportd_count() - how many records of this type it was given. */
unsigned int fake_cmportd_count(enum portd_type type);

/** fake_cmportd_last() - the last record of this type; there is one. */
const struct portd_record *fake_cmportd_last(enum portd_type type);

/** fake_cmportd_message() - the last CM message, which is of this kind. */
struct cm_msg fake_cmportd_message(enum cm_attr kind);

#endif
