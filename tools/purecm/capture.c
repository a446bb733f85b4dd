/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures as a source of sightings: libpcap reads pcap and pcapng, frame.c finds the MADs.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/command.h"
#include "tools/purecm/frame.h"

#define NS_PER_S UINT64_C(1000000000)

struct capture {
	struct source source;
	pcap_t *pcap;
	int link_type;
};

static void fill(const struct capture *capture, const struct pcap_pkthdr *header,
		 const uint8_t *frame, struct sighting *sighting)
{
	/* libpcap was asked for nanoseconds, and puts them where the microseconds were. */
	sighting->time_ns = (uint64_t)header->ts.tv_sec * NS_PER_S + (uint64_t)header->ts.tv_usec;
	sighting->number = capture->source.counts.packets;
	sighting->way = WAY_UNKNOWN;
	sighting->frame = frame;
	sighting->frame_bytes = header->caplen;
	sighting->link_type = capture->link_type;
}

static int next(struct source *source, struct sighting *ret)
{
	struct capture *capture = (struct capture *)source;
	struct pcap_pkthdr *header;
	const uint8_t *frame;
	int got, found;

	while ((got = pcap_next_ex(capture->pcap, &header, &frame)) == 1) {
		source->counts.packets++;
		found = frame_find_mad(capture->link_type, frame, header->caplen, ret);
		if (found < 0)
			source->counts.cut++;
		if (found != 1)
			continue;
		source->counts.mads++;
		fill(capture, header, frame, ret);
		return 1;
	}
	if (got == PCAP_ERROR_BREAK)
		return 0;
	complain("%s: after packet %llu: %s", source->name,
		 (unsigned long long)source->counts.packets, pcap_geterr(capture->pcap));
	return -EBADMSG;
}

static void close_capture(struct source *source)
{
	struct capture *capture = (struct capture *)source;

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

int capture_open(const char *path, struct source **ret)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	char why[PCAP_ERRBUF_SIZE];
	int err = -ENOMEM;

	if (!capture)
		goto fail;
	err = -EBADMSG;
	capture->pcap =
		pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!capture->pcap) {
		/* Of a file that it cannot open, libpcap names the path by itself. */
		if (strncmp(why, path, strlen(path)) == 0)
			complain("%s", why);
		else
			complain("%s: %s", path, why);
		goto fail;
	}
	capture->link_type = pcap_datalink(capture->pcap);
	err = check_link(path, capture->link_type);
	if (err)
		goto fail;
	capture->source.name = strcmp(path, "-") == 0 ? "standard input" : path;
	capture->source.next = next;
	capture->source.close = close_capture;
	*ret = &capture->source;
	return 0;
fail:
	if (capture && capture->pcap)
		pcap_close(capture->pcap);
	free(capture);
	return err;
}
