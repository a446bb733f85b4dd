/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MCMemberRecord, IBTA vol. 1, 15.2.5.17: groups and their member ports. The first full member
 * creates a group, and the group ends with its last full member; only the broadcast group of IP
 * over InfiniBand is permanent, as with OpenSM. Each member has a file, joined/MGID/HOST.PORT,
 * which receivers of the group's packets check.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/fabric/host/sa.h"

#define MEMBERS_MAX  256
#define MLID_FIRST   0xc000
#define PKEY_AT	     4	   /* of an IP group's MGID */
#define QKEY_ALL     0xb1b /* as in OpenSM */
#define MLID_LAST    0xfffe
#define FULL_MEMBER  1
#define JOIN_MASK    0x0f
#define EXACTLY	     (UMAD_SA_SELECTOR_EXACTLY << UMAD_SA_SELECTOR_SHIFT)
#define RECORD_BYTES 52
#define RECORD_ROOM  56 /* a multiple of 8 */
#define SCOPE_SHIFT  4

/* Components required to create a group, 15.2.5.17.2. */
#define CREATES                                                                               \
	(UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_PKEY | UMAD_SA_MCM_COMP_MASK_SL | \
	 UMAD_SA_MCM_COMP_MASK_FLOW_LABEL | UMAD_SA_MCM_COMP_MASK_TCLASS)
#define JOINS                                                          \
	(UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID | \
	 UMAD_SA_MCM_COMP_MASK_JOIN_STATE)

struct member {
	union ibv_gid gid;
	uint8_t join_state;
};

struct group {
	struct list link;
	struct umad_sa_mcmember_record record;
	struct member member[MEMBERS_MAX];
	unsigned int n_members;
	bool is_permanent;
};

static struct group *find_group(struct host *host, const uint8_t mgid[16])
{
	struct group *group;

	list_for_each_entry (group, &host->groups, link) {
		if (memcmp(group->record.mgid, mgid, 16) == 0)
			return group;
	}
	return NULL;
}

static struct member *find_member(struct group *group, const uint8_t gid[16])
{
	unsigned int i;

	for (i = 0; i < group->n_members; i++)
		if (memcmp(&group->member[i].gid, gid, 16) == 0)
			return &group->member[i];
	return NULL;
}

/* Return: the first that is free, or 0. */
static uint16_t take_mlid(const struct host *host)
{
	static bool is_taken[MLID_LAST - MLID_FIRST + 1]; /* the loop has one thread */
	const struct group *group;
	uint16_t i = 0;

	memset(is_taken, 0, sizeof(is_taken));
	list_for_each_entry (group, &host->groups, link)
		is_taken[ntohs(group->record.mlid) - MLID_FIRST] = true;
	while (i < sizeof(is_taken) && is_taken[i])
		i++;
	return i < sizeof(is_taken) ? MLID_FIRST + i : 0;
}

/* --- files --------------------------------------------------------------- */

static bool joined_path(const struct host *host, const struct group *group,
			const union ibv_gid *member, char ret[FAB_PATH_BYTES])
{
	struct fab_owner owner;
	union ibv_gid mgid;

	memcpy(&mgid, group->record.mgid, sizeof(mgid));
	if (fab_folder_owner_of(&host->folder, member, &owner))
		return false;
	fab_folder_joined(&host->folder, &mgid, &owner, ret);
	return true;
}

static void note_joined(const struct host *host, const struct group *group,
			const union ibv_gid *member, bool joined)
{
	char path[FAB_PATH_BYTES];
	int fd;

	if (!joined_path(host, group, member, path))
		return;
	if (!joined) {
		unlink(path);
		return;
	}
	*strrchr(path, '/') = '\0';
	if (mkdir(path, 0700) && errno != EEXIST)
		return;
	joined_path(host, group, member, path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

/* --- joining and leaving ------------------------------------------------- */

static struct group *create_group(struct host *host, const struct umad_sa_mcmember_record *record)
{
	uint16_t mlid = take_mlid(host);
	struct group *group = mlid ? calloc(1, sizeof(*group)) : NULL;

	if (!group)
		return NULL;
	group->record = *record;
	group->record.mlid = htons(mlid);
	group->record.mtu = EXACTLY | SA_MTU;
	group->record.rate = EXACTLY | SA_RATE;
	group->record.pkt_life = EXACTLY | SA_LIFE_TIME;
	group->record.scope_state = (uint8_t)((record->mgid[1] & 0xf) << SCOPE_SHIFT);
	list_append(&host->groups, &group->link);
	return group;
}

/* A join is refused if a component in it differs from the group's. */
static bool group_agrees(const struct group *group, const struct umad_sa_mcmember_record *record,
			 uint64_t mask)
{
	const struct umad_sa_mcmember_record *is = &group->record;

	if (mask & UMAD_SA_MCM_COMP_MASK_QKEY && record->qkey != is->qkey)
		return false;
	if (mask & UMAD_SA_MCM_COMP_MASK_PKEY && record->pkey != is->pkey)
		return false;
	if (mask & UMAD_SA_MCM_COMP_MASK_MTU_SEL && mask & UMAD_SA_MCM_COMP_MASK_MTU &&
	    !sa_selects(record->mtu, SA_MTU))
		return false;
	return !(mask & UMAD_SA_MCM_COMP_MASK_RATE_SEL && mask & UMAD_SA_MCM_COMP_MASK_RATE) ||
	       sa_selects(record->rate, SA_RATE);
}

/* @member is NULL for the group itself. */
static void add_record(const struct group *group, const struct member *member,
		       struct sa_answer *answer)
{
	struct umad_sa_mcmember_record record = group->record;
	uint8_t padded[RECORD_ROOM] = { 0 };

	if (member) {
		memcpy(record.portgid, &member->gid, sizeof(record.portgid));
		record.scope_state |= member->join_state;
	}
	memcpy(padded, &record, RECORD_BYTES);
	sa_answer_add(answer, padded);
}

static void drop_members(struct host *host, struct group *group)
{
	while (group->n_members)
		note_joined(host, group, &group->member[--group->n_members].gid, false);
}

static void drop_if_empty(struct host *host, struct group *group)
{
	unsigned int i;

	for (i = 0; i < group->n_members; i++)
		if (group->member[i].join_state & FULL_MEMBER)
			return;
	if (group->is_permanent)
		return;
	drop_members(host, group);
	list_remove(&group->link);
	free(group);
}

/* A port outside of the group's partition would receive nothing. IBTA vol. 1, 15.2.5.17.2. */
static bool is_in_partition(const struct host *host, const struct umad_sa_mcmember_record *record,
			    __be16 pkey)
{
	struct fab_port port;
	union ibv_gid gid;

	memcpy(&gid, record->portgid, sizeof(gid));
	return sa_find_gid(host, &gid, &port) && sa_has_pkey(&port, ntohs(pkey));
}

static unsigned int join_group(struct host *host, uint64_t mask,
			       const struct umad_sa_mcmember_record *record,
			       struct sa_answer *answer)
{
	struct group *group = find_group(host, record->mgid);
	struct member *member;

	if ((mask & JOINS) != JOINS || !(record->scope_state & JOIN_MASK))
		return UMAD_SA_STATUS_INSUF_COMPS;
	if (record->mgid[0] != 0xff)
		return UMAD_SA_STATUS_INVALID_GID;
	if (!group && !(record->scope_state & FULL_MEMBER))
		return UMAD_SA_STATUS_REQ_INVALID;
	if (!group && (mask & CREATES) != CREATES)
		return UMAD_SA_STATUS_INSUF_COMPS;
	if (group && !group_agrees(group, record, mask))
		return UMAD_SA_STATUS_REQ_INVALID;
	if (!is_in_partition(host, record, group ? group->record.pkey : record->pkey))
		return UMAD_SA_STATUS_REQ_INVALID;
	if (!group)
		group = create_group(host, record);
	member = group ? find_member(group, record->portgid) : NULL;
	if (!member && group && group->n_members < MEMBERS_MAX) {
		member = &group->member[group->n_members++];
		memcpy(&member->gid, record->portgid, sizeof(member->gid));
	}
	if (!member)
		return UMAD_SA_STATUS_NO_RESOURCES;
	member->join_state |= record->scope_state & JOIN_MASK;
	note_joined(host, group, &member->gid, true);
	add_record(group, member, answer);
	return UMAD_SA_STATUS_SUCCESS;
}

static unsigned int leave_group(struct host *host, const struct umad_sa_mcmember_record *record,
				struct sa_answer *answer)
{
	struct group *group = find_group(host, record->mgid);
	struct member *member = group ? find_member(group, record->portgid) : NULL;
	uint8_t left = record->scope_state & JOIN_MASK;

	if (!member || !(member->join_state & left))
		return UMAD_SA_STATUS_REQ_INVALID;
	add_record(group, member, answer);
	member->join_state &= (uint8_t)~left;
	if (!member->join_state) {
		note_joined(host, group, &member->gid, false);
		*member = group->member[--group->n_members];
	}
	drop_if_empty(host, group);
	return UMAD_SA_STATUS_SUCCESS;
}

static unsigned int get_group(struct host *host, uint64_t mask,
			      const struct umad_sa_mcmember_record *record,
			      struct sa_answer *answer)
{
	struct group *group = find_group(host, record->mgid);
	struct member *member = group ? find_member(group, record->portgid) : NULL;

	if (!(mask & UMAD_SA_MCM_COMP_MASK_MGID))
		return UMAD_SA_STATUS_INSUF_COMPS;
	if (!group || (mask & UMAD_SA_MCM_COMP_MASK_PORT_GID && !member))
		return UMAD_SA_STATUS_NO_RECORDS;
	if (!member && group->n_members)
		member = &group->member[0];
	add_record(group, member, answer);
	return UMAD_SA_STATUS_SUCCESS;
}

static const struct sa_component components[] = {
	{ UMAD_SA_MCM_COMP_MASK_MGID, offsetof(struct umad_sa_mcmember_record, mgid), 16 },
	{ UMAD_SA_MCM_COMP_MASK_QKEY, offsetof(struct umad_sa_mcmember_record, qkey), 4 },
	{ UMAD_SA_MCM_COMP_MASK_MLID, offsetof(struct umad_sa_mcmember_record, mlid), 2 },
	{ UMAD_SA_MCM_COMP_MASK_PKEY, offsetof(struct umad_sa_mcmember_record, pkey), 2 },
	{ 0, 0, 0 },
};

/* Lists groups; their members are shown only to trusted requesters. */
static void add_members(const struct group *group, uint64_t mask,
			const struct umad_sa_mcmember_record *asked, bool is_trusted,
			struct sa_answer *answer)
{
	const struct member *member;
	unsigned int i;

	if (!sa_suits(components, mask, (const uint8_t *)asked, (const uint8_t *)&group->record))
		return;
	if (!(mask & UMAD_SA_MCM_COMP_MASK_PORT_GID) && (!is_trusted || !group->n_members))
		add_record(group, NULL, answer);
	for (i = 0; i < group->n_members; i++) {
		member = &group->member[i];
		if (mask & UMAD_SA_MCM_COMP_MASK_PORT_GID
			    ? memcmp(&member->gid, asked->portgid, sizeof(member->gid)) == 0
			    : is_trusted)
			add_record(group, member, answer);
	}
}

unsigned int sa_group(struct host *host, const struct umad_sa_packet *request,
		      struct sa_answer *answer)
{
	struct umad_sa_mcmember_record record = { .qkey = 0 };
	uint64_t mask = be64toh(request->comp_mask);
	struct group *group;

	memcpy(&record, request->data, RECORD_BYTES);
	if (request->mad_hdr.method == UMAD_METHOD_SET)
		return join_group(host, mask, &record, answer);
	if (request->mad_hdr.method == UMAD_SA_METHOD_DELETE)
		return leave_group(host, &record, answer);
	if (request->mad_hdr.method == UMAD_METHOD_GET)
		return get_group(host, mask, &record, answer);
	list_for_each_entry (group, &host->groups, link)
		add_members(group, mask, &record, sa_is_trusted(request), answer);
	return UMAD_SA_STATUS_SUCCESS;
}

/* RFC 4391, 4: ff12:401b:<P_Key>::ffff:ffff */
static int create_broadcast(struct host *host, uint16_t pkey)
{
	static const uint8_t all[16] = {
		0xff, 0x12, 0x40, 0x1b, 0, 0, [12] = 0xff, 0xff, 0xff, 0xff
	};
	struct umad_sa_mcmember_record record = { .qkey = htonl(QKEY_ALL) };
	struct group *group;

	pkey |= SA_FULL_MEMBER;
	record.pkey = htons(pkey);
	memcpy(record.mgid, all, sizeof(record.mgid));
	record.mgid[PKEY_AT] = (uint8_t)(pkey >> 8);
	record.mgid[PKEY_AT + 1] = (uint8_t)pkey;
	group = create_group(host, &record);
	if (!group)
		return -ENOMEM;
	group->is_permanent = true;
	return 0;
}

int sa_groups_init(struct host *host)
{
	unsigned int i;
	int err;

	list_init(&host->groups);
	err = create_broadcast(host, FAB_PKEY_DEFAULT);
	for (i = 0; !err && i < host->n_pkeys; i++)
		err = create_broadcast(host, host->pkey[i]);
	return err;
}

void sa_groups_free(struct host *host)
{
	struct group *group;

	list_for_each_entry_safe (group, &host->groups, link)
		free(group);
	list_init(&host->groups);
}

void sa_groups_forget(struct host *host)
{
	struct group *group;

	list_for_each_entry_safe (group, &host->groups, link) {
		drop_members(host, group);
		drop_if_empty(host, group);
	}
}
