// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups of the managed mode and their members. A membership is a
 * (port GID, group) with JoinState bits; a Set adds bits, a Delete takes bits
 * away (IBA 15.2.5.17.2: the SA counts no references). A group ends with its
 * last full member, send-only full members included, except the broadcast
 * groups of IPoIB (RFC 4391, 5.): those are there for every P_Key. The switch's
 * multicast table follows the memberships.
 */
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "sa_group.h"

#define MAX_GROUPS		1024
#define BROADCAST_QKEY		0x00000b1b
#define IPOIB_IPV4_SIGNATURE	0x401b

DEFINE_SPINLOCK(sa_lock);
LIST_HEAD(sa_groups);
static DECLARE_BITMAP(mlids, MAX_GROUPS);

struct sa_group *sa_group_find(const union ib_gid *mgid)
{
	struct sa_group *group;

	list_for_each_entry(group, &sa_groups, node)
		if (!memcmp(&group->mgid, mgid, sizeof(*mgid)))
			return group;
	return NULL;
}

struct sa_member *sa_member_find(struct sa_group *group, const union ib_gid *gid)
{
	struct sa_member *member;

	list_for_each_entry(member, &group->members, node)
		if (!memcmp(&member->port_gid, gid, sizeof(*gid)))
			return member;
	return NULL;
}

struct sa_group *sa_group_new(const union ib_gid *mgid)
{
	unsigned int n = find_first_zero_bit(mlids, MAX_GROUPS);
	struct sa_group *group;

	if (n == MAX_GROUPS)
		return NULL;
	group = kzalloc(sizeof(*group), GFP_ATOMIC);
	if (!group)
		return NULL;
	__set_bit(n, mlids);
	INIT_LIST_HEAD(&group->members);
	group->mgid = *mgid;
	group->mlid = VHCA_UNICAST_LIDS + n;
	group->mtu = vhca_mtu_enum();
	group->rate = VHCA_LINK_RATE;
	group->life = SA_PACKET_LIFE;
	list_add_tail(&group->node, &sa_groups);
	return group;
}

static void free_group(struct sa_group *group)
{
	WARN_ON(!list_empty(&group->members));
	list_del(&group->node);
	__clear_bit(group->mlid - VHCA_UNICAST_LIDS, mlids);
	kfree(group);
}

void sa_group_route(struct sa_group *group, unsigned int hca)
{
	struct sa_member *member;
	bool receives = false;

	list_for_each_entry(member, &group->members, node)
		if (member->hca == hca)
			receives |= member->join & SA_JOIN_RECEIVES;
	vhca_switch_set_mcast(group->mlid, hca, receives);
}

void sa_member_remove(struct sa_group *group, struct sa_member *member, u8 bits)
{
	unsigned int hca = member->hca;

	member->join &= ~bits;
	if (!member->join) {
		list_del(&member->node);
		kfree(member);
	}
	sa_group_route(group, hca);
}

void sa_group_end_if_unused(struct sa_group *group)
{
	struct sa_member *member, *next;

	if (group->permanent)
		return;
	list_for_each_entry(member, &group->members, node)
		if (member->join & SA_JOIN_KEEPS_GROUP)
			return;
	list_for_each_entry_safe(member, next, &group->members, node)
		sa_member_remove(group, member, SA_JOIN_ALL);
	free_group(group);
}

/* ---- broadcast groups of IPoIB ------------------------------------------------ */

/* ff1s:401b:PPPP:0:0:0:ffff:ffff (RFC 4391, 4.). */
static bool is_broadcast(const union ib_gid *mgid)
{
	static const u8 tail[10] = { [6 ... 9] = 0xff };

	return mgid->raw[0] == 0xff && mgid->raw[1] >> 4 == 1 &&
	       get_unaligned_be16(mgid->raw + 2) == IPOIB_IPV4_SIGNATURE &&
	       get_unaligned_be16(mgid->raw + 4) & 0x7fff &&
	       !memcmp(mgid->raw + 6, tail, sizeof(tail));
}

static struct sa_group *new_broadcast(const union ib_gid *mgid)
{
	struct sa_group *group = sa_group_new(mgid);

	if (!group)
		return NULL;
	group->pkey = get_unaligned_be16(mgid->raw + 4) | 0x8000;
	group->qkey = cpu_to_be32(BROADCAST_QKEY);
	group->permanent = true;
	return group;
}

struct sa_group *sa_group_get(const union ib_gid *mgid)
{
	struct sa_group *group = sa_group_find(mgid);

	return group || !is_broadcast(mgid) ? group : new_broadcast(mgid);
}

int sa_mcast_init(void)
{
	union ib_gid mgid = {
		.raw = { 0xff, 0x10 | SA_SCOPE_LINK_LOCAL,
			 IPOIB_IPV4_SIGNATURE >> 8, IPOIB_IPV4_SIGNATURE & 0xff,
			 [12 ... 15] = 0xff },
	};
	struct sa_group *group = NULL;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&sa_lock, flags);
	for (i = 0; i < vhca_num_pkeys; i++) {
		if (!(vhca_pkeys[i] & 0x7fff))
			continue;
		put_unaligned_be16(vhca_pkeys[i] | 0x8000, mgid.raw + 4);
		group = sa_group_get(&mgid);
		if (!group)
			break;
	}
	spin_unlock_irqrestore(&sa_lock, flags);
	if (i < vhca_num_pkeys) {
		sa_mcast_exit();
		return -ENOMEM;
	}
	return 0;
}

/* All HCAs have left, so no group has a member. */
void sa_mcast_exit(void)
{
	struct sa_group *group, *next;

	list_for_each_entry_safe(group, next, &sa_groups, node)
		free_group(group);
}

void vhca_sa_forget_port(struct vhca_port *port)
{
	struct sa_group *group, *next_group;
	struct sa_member *member, *next;
	unsigned long flags;

	spin_lock_irqsave(&sa_lock, flags);
	list_for_each_entry_safe(group, next_group, &sa_groups, node) {
		bool left = false;

		list_for_each_entry_safe(member, next, &group->members, node) {
			if (member->hca != port->dev->index)
				continue;
			sa_member_remove(group, member, SA_JOIN_ALL);
			left = true;
		}
		if (left)
			sa_group_end_if_unused(group);
	}
	spin_unlock_irqrestore(&sa_lock, flags);
}
