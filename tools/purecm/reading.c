/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading sources to their end.
 */
#include "tools/purecm/reading.h"

#include <errno.h>
#include <string.h>

#include "tools/purecm/command.h"

static void complain_of_counts(const struct source *source)
{
	const struct source_counts *counts = &source->counts;

	if (counts->cut)
		complain("%s: %llu messages were not captured to their end (with tcpdump, -s 0 "
			 "does)",
			 source->name, (unsigned long long)counts->cut);
	if (!counts->mads)
		complain("%s: none of its %llu packets bears a message of a connection manager",
			 source->name, (unsigned long long)counts->packets);
}

int reading_source(struct source *source, reading_take *take, void *arg)
{
	struct sighting sighting;
	int got, err = 0;

	while (!err && (got = source->next(source, &sighting)) == 1)
		err = take(arg, &sighting);
	if (err) {
		complain("%s: at packet %llu: %s", source->name,
			 (unsigned long long)source->counts.packets,
			 err == -ENOBUFS ? "too many connections" : strerror(-err));
		return err;
	}
	complain_of_counts(source);
	return got;
}

int reading_file(const char *path, reading_take *take, void *arg)
{
	struct source *source;
	int err = capture_open(path, &source);

	if (err)
		return err;
	err = reading_source(source, take, arg);
	source->close(source);
	return err;
}

static int take_flow(void *arg, const struct sighting *sighting)
{
	struct flow_step step;
	struct cm_msg msg;

	if (!sighting_is_cm(sighting) || cm_msg_decode(sighting->mad, MAD_BYTES, &msg))
		return 0;
	return flows_take(arg, sighting, &msg, &step);
}

int reading_flows(const char *path, struct flows **ret)
{
	struct flows *flows = flows_new(FLOWS_MAX, false);
	int err = flows ? reading_file(path, take_flow, flows) : -ENOMEM;

	if (err)
		flows_free(flows);
	else
		*ret = flows;
	return err;
}
