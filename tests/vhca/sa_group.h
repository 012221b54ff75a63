/* SPDX-License-Identifier: GPL-2.0-only */
/* Multicast groups of the managed mode (sa_group.c, sa_mcast.c). */
#ifndef VHCA_SA_GROUP_H
#define VHCA_SA_GROUP_H

#include "sa.h"

/* JoinState bits. */
#define SA_JOIN_FULL		BIT(FULLMEMBER_JOIN)
#define SA_JOIN_NON		BIT(NONMEMBER_JOIN)
#define SA_JOIN_SENDONLY_FULL	BIT(SENDONLY_FULLMEMBER_JOIN)
#define SA_JOIN_ALL		0xf
#define SA_JOIN_KEEPS_GROUP	(SA_JOIN_FULL | SA_JOIN_SENDONLY_FULL)
#define SA_JOIN_RECEIVES	(SA_JOIN_FULL | SA_JOIN_NON)

#define SA_SCOPE_LINK_LOCAL	2	/* the scope bits of an MGID */

struct sa_member {
	struct list_head node;
	unsigned int hca;
	union ib_gid port_gid;
	u8 join;		/* SA_JOIN_ bits, never 0 */
	bool proxy;		/* another port joined for this one */
};

struct sa_group {
	struct list_head node;
	struct list_head members;
	union ib_gid mgid;
	u16 mlid;
	u16 pkey;
	__be32 qkey;
	u8 mtu;			/* enum ib_mtu */
	u8 rate;		/* enum ib_rate */
	u8 life;
	u8 tclass;
	__be32 sl_flow_hop;
	bool permanent;
};

/*
 * Guards the groups; the switch's and a port's lock are taken inside. All that
 * follows needs it.
 */
extern spinlock_t sa_lock;
extern struct list_head sa_groups;

struct sa_group *sa_group_find(const union ib_gid *mgid);
/*
 * As find, but an IPoIB broadcast group is made if it is not there: P_Keys may
 * come later than the module's parameters, by the SMA or a fault.
 */
struct sa_group *sa_group_get(const union ib_gid *mgid);
/*
 * A group with the lowest free MLID and the fabric's MTU, rate and lifetime;
 * NULL: no MLID or no memory is left.
 */
struct sa_group *sa_group_new(const union ib_gid *mgid);
/* Brings the switch's table in line for an HCA: it may have several GIDs. */
void sa_group_route(struct sa_group *group, unsigned int hca);
/* Ends a group that no full member keeps; its other members go with it. */
void sa_group_end_if_unused(struct sa_group *group);

struct sa_member *sa_member_find(struct sa_group *group,
				 const union ib_gid *gid);
/* Takes @bits of a membership away, with what hangs on them. */
void sa_member_remove(struct sa_group *group, struct sa_member *member,
		      u8 bits);

#endif /* VHCA_SA_GROUP_H */
