/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures as a source of observations: libpcap reads pcap and pcapng, frame.c finds the MADs. */
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/observation.h"

#define LIVE_FILTER  "udp port 4791 or ether proto 0x8915 or (vlan and udp port 4791)"
#define SNAP_BYTES   1024 /* a MAD with all its headers */
#define LOOK_MS	     100
#define BUFFER_BYTES (8 << 20)

struct capture {
	struct source source;
	pcap_t *pcap;
	pid_t gzip; /* which decompresses the file; 0: none */
	int link_type;
	bool is_live;
	uint64_t end_ns; /* later packets are ignored; 0 until a signal ends the capture */
};

static pcap_t *volatile live; /* ended by a signal */

static uint64_t time_of(const struct pcap_pkthdr *header)
{
	/* libpcap was asked for nanoseconds, and stores them in tv_usec. */
	return (uint64_t)header->ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)header->ts.tv_usec;
}

static void fill_observation(const struct capture *capture, const struct pcap_pkthdr *header,
			     const uint8_t *frame, struct observation *observation)
{
	observation->time_ns = time_of(header);
	observation->number = capture->source.counts.packets;
	observation->way = WAY_UNKNOWN;
	observation->frame = frame;
	observation->frame_bytes = header->caplen;
	observation->link_type = capture->link_type;
}

static void complain_of_losses(const struct capture *capture)
{
	struct pcap_stat stat;

	if (capture->is_live && !pcap_stats(capture->pcap, &stat) && stat.ps_drop)
		complain("%s: %u packets came too fast and were not seen", capture->source.name,
			 stat.ps_drop);
}

/*
 * Like pcap_next_ex(), but a signal ends a live capture after the packets that libpcap has
 * buffered. A second signal ends it at once.
 */
static int next_packet(struct capture *capture, struct pcap_pkthdr **header, const uint8_t **frame)
{
	char why[PCAP_ERRBUF_SIZE];
	int got;

	for (;;) {
		got = pcap_next_ex(capture->pcap, header, frame);
		if (got == PCAP_ERROR_BREAK && capture->is_live && !capture->end_ns) {
			capture->end_ns = clock_ns_of(CLOCK_REALTIME);
			if (pcap_setnonblock(capture->pcap, 1, why))
				return got;
		} else if (got != 0) {
			break;
		} else if (capture->end_ns) {
			return PCAP_ERROR_BREAK;
		}
	}
	if (got == 1 && capture->end_ns && time_of(*header) > capture->end_ns)
		return PCAP_ERROR_BREAK;
	return got;
}

/* gzip prints its own errors. Its output may end between two packets, so its status is checked. */
static int end_gzip(struct capture *capture)
{
	const pid_t gzip = capture->gzip;
	int status = 0;

	capture->gzip = 0;
	return gzip > 0 && waitpid(gzip, &status, 0) == gzip && status ? SOURCE_CUT : 0;
}

static int next_observation(struct source *source, struct observation *ret)
{
	struct capture *capture = (struct capture *)source;
	struct pcap_pkthdr *header;
	const uint8_t *frame;
	int got, found;

	while ((got = next_packet(capture, &header, &frame)) >= 0) {
		source->counts.packets++;
		found = frame_find_mad(capture->link_type, frame, header->caplen, ret);
		if (found < 0)
			source->counts.cut++;
		if (found != 1)
			continue;
		source->counts.mads++;
		fill_observation(capture, header, frame, ret);
		return 1;
	}
	if (got == PCAP_ERROR_BREAK) {
		complain_of_losses(capture);
		return end_gzip(capture);
	}
	complain("%s: after packet %llu: %s", source->name,
		 (unsigned long long)source->counts.packets, pcap_geterr(capture->pcap));
	return SOURCE_CUT;
}

static void close_capture(struct source *source)
{
	struct capture *capture = (struct capture *)source;

	if (capture->is_live) {
		signal(SIGINT, SIG_DFL);
		live = NULL;
	}
	pcap_close(capture->pcap);
	free(capture);
}

static int check_link(const char *path, int link_type)
{
	const char *name = pcap_datalink_val_to_description(link_type);

	if (frame_link_is_known(link_type))
		return 0;
	complain("%s: packets of link type %d (%s) are not understood; what is: Ethernet, Linux "
		 "cooked, raw IP, InfiniBand and ERF",
		 path, link_type, name ? name : "unknown");
	return -EPROTONOSUPPORT;
}

/* Common part of both ways of opening, after one of them has failed or not. */
static int begin_capture(struct capture *capture, const char *name, int err, struct source **ret)
{
	if (!err) {
		capture->link_type = pcap_datalink(capture->pcap);
		err = check_link(name, capture->link_type);
	}
	if (err) {
		if (capture->pcap)
			pcap_close(capture->pcap);
		free(capture);
		return err;
	}
	capture->source.name = name;
	capture->source.next = next_observation;
	capture->source.close = close_capture;
	*ret = &capture->source;
	return 0;
}

/*
 * Return: the decompressed content of a gzip file; NULL if it is not a gzip file. Examines regular
 * files only: a pipe that is opened twice loses data.
 */
static FILE *unpack(const char *path, pid_t *ret_gzip)
{
	static const uint8_t magic[2] = { 0x1f, 0x8b };
	uint8_t head[sizeof(magic)];
	struct stat file;
	const bool is_regular = !stat(path, &file) && S_ISREG(file.st_mode);
	int ends[2], fd = is_regular ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	const bool is_packed = fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head) &&
			       memcmp(head, magic, sizeof(magic)) == 0;
	FILE *content = NULL;

	if (is_packed && pipe2(ends, O_CLOEXEC) == 0) {
		*ret_gzip = fork();
		if (*ret_gzip == 0) {
			dup2(fd, STDIN_FILENO);
			dup2(ends[1], STDOUT_FILENO);
			execlp("gzip", "gzip", "-dc", NULL);
			_exit(STATUS_FAILED);
		}
		close(ends[1]);
		content = fdopen(ends[0], "r");
	}
	if (fd >= 0)
		close(fd);
	return content;
}

static pcap_t *open_file(const char *path, pid_t *ret_gzip, char why[PCAP_ERRBUF_SIZE])
{
	FILE *content = strcmp(path, "-") == 0 ? NULL : unpack(path, ret_gzip);

	if (content)
		return pcap_fopen_offline_with_tstamp_precision(content, PCAP_TSTAMP_PRECISION_NANO,
								why);
	return pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
}

int capture_open(const char *path, struct source **ret)
{
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	struct capture *capture = calloc(1, sizeof(*capture));
	char why[PCAP_ERRBUF_SIZE];

	if (!capture)
		return -ENOMEM;
	capture->pcap = open_file(path, &capture->gzip, why);
	/* libpcap's message already has the path of a file that it cannot open. */
	if (!capture->pcap && strncmp(why, path, strlen(path)) == 0)
		complain("%s", why);
	else if (!capture->pcap)
		complain("%s: %s", name, why);
	return begin_capture(capture, name, capture->pcap ? 0 : -EINVAL, ret);
}

/* --- live capture --------------------------------------------------------- */

static void end_live(int signal_number)
{
	(void)signal_number;
	if (live)
		pcap_breakloop(live);
}

/* Return: 0, or a PCAP_ERROR_*. */
static int set_up(pcap_t *pcap)
{
	struct bpf_program filter;
	int err;

	if (pcap_set_snaplen(pcap, SNAP_BYTES) || pcap_set_timeout(pcap, LOOK_MS) ||
	    pcap_set_immediate_mode(pcap, 1) || pcap_set_buffer_size(pcap, BUFFER_BYTES) ||
	    pcap_set_tstamp_precision(pcap, PCAP_TSTAMP_PRECISION_NANO))
		return PCAP_ERROR;
	err = pcap_activate(pcap);
	if (err < 0)
		return err;
	err = 0;
	/* If the filter does not suit the link type, all packets are examined. */
	if (!pcap_compile(pcap, &filter, LIVE_FILTER, 1, PCAP_NETMASK_UNKNOWN)) {
		err = pcap_setfilter(pcap, &filter);
		pcap_freecode(&filter);
	}
	return err;
}

static void complain_of_set_up(const char *interface, pcap_t *pcap, int err)
{
	const char *what = pcap_statustostr(err), *more = pcap_geterr(pcap);
	const bool has_more = *more && strcmp(more, what) != 0;

	complain("%s cannot be listened to: %s%s%s", interface, what, has_more ? ": " : "",
		 has_more ? more : "");
}

int capture_open_live(const char *interface, struct source **ret)
{
	const struct sigaction action = { .sa_handler = end_live };
	struct capture *capture = calloc(1, sizeof(*capture));
	char why[PCAP_ERRBUF_SIZE];
	int err;

	if (!capture)
		return -ENOMEM;
	capture->is_live = true;
	capture->pcap = pcap_create(interface, why);
	err = capture->pcap ? set_up(capture->pcap) : PCAP_ERROR;
	if (!capture->pcap)
		complain("%s: %s", interface, why);
	else if (err)
		complain_of_set_up(interface, capture->pcap, err);
	live = err ? NULL : capture->pcap;
	err = begin_capture(capture, interface, err ? -EIO : 0, ret);
	if (err) {
		live = NULL;
		return err;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return 0;
}
