/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a capture into memory.
 */
#include "tools/purecm/story.h"

#include <errno.h>
#include <stdlib.h>

#include "tools/purecm/show.h"

static int tell(struct story *story, const struct sighting *sighting, const struct cm_msg *msg,
		const struct flow_step *step)
{
	if (story->count == STORY_MAX) {
		story->is_cut = true;
		return 0;
	}
	story->told[story->count++] = (struct told){ .time_ns = sighting->time_ns,
						     .step = *step,
						     .attr = (enum cm_attr)msg->hdr.attr_id,
						     .brief = show_brief(msg) };
	return 0;
}

static int take(void *arg, const struct sighting *sighting)
{
	struct story *story = arg;
	struct flow_step step;
	struct cm_msg msg;
	int err;

	if (!sighting_is_cm(sighting) || cm_msg_decode(sighting->mad, MAD_BYTES, &msg))
		return 0;
	err = flows_take(story->flows, sighting, &msg, &step);
	if (err)
		return err;
	story->end_ns = sighting->time_ns;
	if (step.is_copy || !filter_takes_flow(story->filter, step.flow) ||
	    !filter_takes_message(story->filter, &msg))
		return 0;
	return tell(story, sighting, &msg, &step);
}

/* Now that it is known how the flows ended. */
static void drop_other_outcomes(struct story *story)
{
	uint32_t i, kept = 0;

	for (i = 0; i < story->count; i++) {
		if (filter_takes_outcome(story->filter, story->told[i].step.flow->outcome))
			story->told[kept++] = story->told[i];
		else
			free(story->told[i].brief);
	}
	story->count = kept;
}

int story_read(const struct reading *reading, const struct filter *filter, struct story *ret)
{
	struct story story = { .filter = filter };
	int err = -ENOMEM;

	story.flows = flows_new(FLOWS_MAX, false);
	story.told = calloc(STORY_MAX, sizeof(*story.told));
	if (story.flows && story.told)
		err = reading_run(reading, take, &story);
	if (err && err != SOURCE_CUT) {
		story_fini(&story);
		return err;
	}
	drop_other_outcomes(&story);
	*ret = story;
	return err;
}

void story_fini(struct story *story)
{
	uint32_t i;

	for (i = 0; i < story->count; i++)
		free(story->told[i].brief);
	free(story->told);
	flows_free(story->flows);
}
