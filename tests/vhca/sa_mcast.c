// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups of the managed mode: MCMemberRecord (IBA 15.2.5.17), and the
 * switch's multicast table, which follows the memberships. A membership is a
 * (port GID, group) with JoinState bits; a Set adds bits, a Delete takes bits
 * away (IBA 15.2.5.17.2: the SA counts no references). A group ends with its
 * last full member, send-only full members included, except the broadcast
 * groups of IPoIB (RFC 4391, 5.): those are there for every P_Key.
 */
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "sa.h"

#define JOIN_FULL		BIT(FULLMEMBER_JOIN)
#define JOIN_NON		BIT(NONMEMBER_JOIN)
#define JOIN_SENDONLY_NON	BIT(SENDONLY_NONMEBER_JOIN)
#define JOIN_SENDONLY_FULL	BIT(SENDONLY_FULLMEMBER_JOIN)
#define JOIN_ALL		0xf
#define JOIN_KEEPS_GROUP	(JOIN_FULL | JOIN_SENDONLY_FULL)
#define JOIN_RECEIVES		(JOIN_FULL | JOIN_NON)

#define MAX_GROUPS		1024
#define BROADCAST_QKEY		0x00000b1b
#define IPOIB_IPV4_SIGNATURE	0x401b
#define SA_MGID_SIGNATURE	0xa01b	/* MGIDs that the SA made up */
#define SCOPE_LINK_LOCAL	2

/* MCMemberRecord, wire order. */
struct mcmember_record {
	union ib_gid mgid;
	union ib_gid port_gid;
	__be32 qkey;
	__be16 mlid;
	u8 mtu;			/* selector, value */
	u8 tclass;
	__be16 pkey;
	u8 rate;
	u8 life;
	__be32 sl_flow_hop;	/* 4, 20, 8 bits */
	u8 scope_join;		/* 4, 4 bits */
	u8 proxy;		/* top bit */
	u8 resv[6];
} __packed;

#define REC(field)	IB_SA_MCMEMBER_REC_##field
#define REQUIRED_JOIN	(REC(MGID) | REC(PORT_GID) | REC(JOIN_STATE))
/* IBA 15.2.5.17.2, table "required to create". */
#define REQUIRED_CREATE	(REC(QKEY) | REC(TRAFFIC_CLASS) | REC(PKEY) | \
			 REC(FLOW_LABEL) | REC(SL))

struct member {
	struct list_head node;
	unsigned int hca;
	union ib_gid port_gid;
	u8 join;		/* JOIN_ bits, never 0 */
	bool proxy;		/* another port joined for this one */
};

struct group {
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

/* Guards all below; the switch's and a port's lock are taken inside. */
static DEFINE_SPINLOCK(sa_lock);
static LIST_HEAD(groups);
static DECLARE_BITMAP(mlids, MAX_GROUPS);
static u64 mgids_made;

static struct group *find_group(const union ib_gid *mgid)
{
	struct group *group;

	list_for_each_entry(group, &groups, node)
		if (!memcmp(&group->mgid, mgid, sizeof(*mgid)))
			return group;
	return NULL;
}

static struct member *find_member(struct group *group, const union ib_gid *gid)
{
	struct member *member;

	list_for_each_entry(member, &group->members, node)
		if (!memcmp(&member->port_gid, gid, sizeof(*gid)))
			return member;
	return NULL;
}

static struct group *new_group(const union ib_gid *mgid)
{
	unsigned int n = find_first_zero_bit(mlids, MAX_GROUPS);
	struct group *group;

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
	list_add_tail(&group->node, &groups);
	return group;
}

static void free_group(struct group *group)
{
	WARN_ON(!list_empty(&group->members));
	list_del(&group->node);
	__clear_bit(group->mlid - VHCA_UNICAST_LIDS, mlids);
	kfree(group);
}

/* Brings the switch's table in line for an HCA: it may have several GIDs. */
static void route(struct group *group, unsigned int hca)
{
	struct member *member;
	bool receives = false;

	list_for_each_entry(member, &group->members, node)
		if (member->hca == hca)
			receives |= member->join & JOIN_RECEIVES;
	vhca_switch_set_mcast(group->mlid, hca, receives);
}

/* Takes @bits of a membership away, with what hangs on them. */
static void remove_bits(struct group *group, struct member *member, u8 bits)
{
	unsigned int hca = member->hca;

	member->join &= ~bits;
	if (!member->join) {
		list_del(&member->node);
		kfree(member);
	}
	route(group, hca);
}

/* Ends a group that no full member keeps; its other members go with it. */
static void end_if_unused(struct group *group)
{
	struct member *member, *next;

	if (group->permanent)
		return;
	list_for_each_entry(member, &group->members, node)
		if (member->join & JOIN_KEEPS_GROUP)
			return;
	list_for_each_entry_safe(member, next, &group->members, node)
		remove_bits(group, member, JOIN_ALL);
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

static struct group *new_broadcast(const union ib_gid *mgid)
{
	struct group *group = new_group(mgid);

	if (!group)
		return NULL;
	group->pkey = get_unaligned_be16(mgid->raw + 4) | 0x8000;
	group->qkey = cpu_to_be32(BROADCAST_QKEY);
	group->permanent = true;
	return group;
}

/*
 * P_Keys may come later than the module's parameters, by the SMA or a fault: a
 * broadcast group is there as soon as somebody asks for it.
 */
static struct group *find_or_broadcast(const union ib_gid *mgid)
{
	struct group *group = find_group(mgid);

	return group || !is_broadcast(mgid) ? group : new_broadcast(mgid);
}

int sa_mcast_init(void)
{
	union ib_gid mgid = {
		.raw = { 0xff, 0x10 | SCOPE_LINK_LOCAL,
			 IPOIB_IPV4_SIGNATURE >> 8, IPOIB_IPV4_SIGNATURE & 0xff,
			 [12 ... 15] = 0xff },
	};
	struct group *group = NULL;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&sa_lock, flags);
	for (i = 0; i < vhca_num_pkeys; i++) {
		if (!(vhca_pkeys[i] & 0x7fff))
			continue;
		put_unaligned_be16(vhca_pkeys[i] | 0x8000, mgid.raw + 4);
		group = find_or_broadcast(&mgid);
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
	struct group *group, *next;

	list_for_each_entry_safe(group, next, &groups, node)
		free_group(group);
}

void vhca_sa_forget_port(struct vhca_port *port)
{
	struct group *group, *next_group;
	struct member *member, *next;
	unsigned long flags;

	spin_lock_irqsave(&sa_lock, flags);
	list_for_each_entry_safe(group, next_group, &groups, node) {
		bool left = false;

		list_for_each_entry_safe(member, next, &group->members, node) {
			if (member->hca != port->dev->index)
				continue;
			remove_bits(group, member, JOIN_ALL);
			left = true;
		}
		if (left)
			end_if_unused(group);
	}
	spin_unlock_irqrestore(&sa_lock, flags);
}

/* ---- requests ------------------------------------------------------------------- */

/* With no @member the record is the group's own. */
static void fill_record(struct mcmember_record *rec, const struct group *group,
			const struct member *member, u8 join)
{
	memset(rec, 0, sizeof(*rec));
	rec->mgid = group->mgid;
	if (member) {
		rec->port_gid = member->port_gid;
		rec->proxy = member->proxy << 7;
	}
	rec->qkey = group->qkey;
	rec->mlid = cpu_to_be16(group->mlid);
	rec->mtu = IB_SA_EQ << 6 | group->mtu;
	rec->tclass = group->tclass;
	rec->pkey = cpu_to_be16(group->pkey);
	rec->rate = IB_SA_EQ << 6 | group->rate;
	rec->life = IB_SA_EQ << 6 | group->life;
	rec->sl_flow_hop = group->sl_flow_hop;
	rec->scope_join = (group->mgid.raw[1] & 0xf) << 4 | join;
}

/* Bits of sl_flow_hop that the request names. */
static __be32 flow_mask(const struct sa_request *req)
{
	u32 mask = 0;

	if (sa_has(req, REC(SL)))
		mask |= 0xf0000000;
	if (sa_has(req, REC(FLOW_LABEL)))
		mask |= 0x0fffff00;
	if (sa_has(req, REC(HOP_LIMIT)))
		mask |= 0x000000ff;
	return cpu_to_be32(mask);
}

/* Does @group have what the request's components say? */
static bool group_matches(const struct sa_request *req,
			  const struct mcmember_record *want,
			  const struct group *group)
{
	if (sa_has(req, REC(MGID)) &&
	    memcmp(&want->mgid, &group->mgid, sizeof(group->mgid)))
		return false;
	if (sa_has(req, REC(QKEY)) && want->qkey != group->qkey)
		return false;
	if (sa_has(req, REC(MLID)) && be16_to_cpu(want->mlid) != group->mlid)
		return false;
	if (sa_has(req, REC(PKEY)) &&
	    (be16_to_cpu(want->pkey) ^ group->pkey) & 0x7fff)
		return false;
	if (sa_has(req, REC(TRAFFIC_CLASS)) && want->tclass != group->tclass)
		return false;
	if (sa_has(req, REC(SCOPE)) &&
	    want->scope_join >> 4 != (group->mgid.raw[1] & 0xf))
		return false;
	if (sa_has(req, REC(MTU_SELECTOR) | REC(MTU)) &&
	    !sa_selector_matches(want->mtu, group->mtu))
		return false;
	if (sa_has(req, REC(RATE_SELECTOR) | REC(RATE)) &&
	    !sa_rate_matches(want->rate, group->rate))
		return false;
	if (sa_has(req, REC(PACKET_LIFE_TIME_SELECTOR) |
			REC(PACKET_LIFE_TIME)) &&
	    !sa_selector_matches(want->life, group->life))
		return false;
	return !((want->sl_flow_hop ^ group->sl_flow_hop) & flow_mask(req));
}

/* The port that is to join or leave; NULL if there is none. */
static struct vhca_port *subject(const struct mcmember_record *want)
{
	struct vhca_port *port;

	port = vhca_port_by_guid(want->port_gid.global.interface_id);
	if (!port || want->port_gid.global.subnet_prefix !=
			     READ_ONCE(port->gid_prefix))
		return NULL;
	return port;
}

/*
 * A port changes its own membership; one that was made by proxy, any port that
 * has the group's P_Key (IBA 15.2.5.17.2, ProxyJoin).
 */
static bool may_change(const struct sa_request *req, struct vhca_port *port,
		       const struct group *group, const struct member *member)
{
	return member->proxy ? vhca_port_find_pkey(req->from, group->pkey) >= 0 :
			       port == req->from;
}

/*
 * IBA 4.1.1; three of the flags are reserved, and only the SA itself makes
 * MGIDs of its own signature with link-local scope.
 */
static bool mgid_ok(const union ib_gid *mgid)
{
	if (mgid->raw[0] != 0xff || mgid->raw[1] & 0xe0)
		return false;
	return (mgid->raw[1] & 0xf) != SCOPE_LINK_LOCAL ||
	       get_unaligned_be16(mgid->raw + 2) != SA_MGID_SIGNATURE;
}

static bool holds_pkey(const struct sa_request *req, struct vhca_port *port,
		       u16 pkey)
{
	return vhca_port_find_pkey(port, pkey) >= 0 &&
	       (port == req->from || vhca_port_find_pkey(req->from, pkey) >= 0);
}

/* The request asks for a group that does not exist. */
static struct group *create(const struct sa_request *req,
			    const struct mcmember_record *want,
			    struct vhca_port *port, u16 *status)
{
	u8 mtu = READ_ONCE(port->active_mtu), rate = VHCA_LINK_RATE;
	u16 pkey = be16_to_cpu(want->pkey);
	union ib_gid mgid = want->mgid;
	struct group *group;

	*status = SA_ERR_REQ_INVALID;
	if (!(want->scope_join & JOIN_KEEPS_GROUP))
		return NULL;
	*status = SA_ERR_INSUFFICIENT;
	if (!sa_has(req, REQUIRED_CREATE))
		return NULL;
	*status = SA_ERR_REQ_INVALID;
	if (!(pkey & 0x7fff) || !holds_pkey(req, port, pkey | 0x8000))
		return NULL;
	if (!memchr_inv(mgid.raw, 0, sizeof(mgid.raw))) {
		mgid.raw[0] = 0xff;
		mgid.raw[1] = 0x10 | (sa_has(req, REC(SCOPE)) ?
			want->scope_join >> 4 : SCOPE_LINK_LOCAL);
		put_unaligned_be16(SA_MGID_SIGNATURE, mgid.raw + 2);
		put_unaligned_be64(++mgids_made, mgid.raw + 8);
	} else if (!mgid_ok(&mgid)) {
		return NULL;
	}
	if (sa_has(req, REC(MTU_SELECTOR) | REC(MTU)))
		mtu = sa_choose_mtu(want->mtu, mtu);
	if (sa_has(req, REC(RATE_SELECTOR) | REC(RATE)))
		rate = sa_choose_rate(want->rate, rate);
	if (!mtu || !rate)
		return NULL;
	*status = SA_ERR_NO_RESOURCES;
	group = new_group(&mgid);
	if (!group)
		return NULL;
	group->qkey = want->qkey;
	group->pkey = pkey | 0x8000;
	group->mtu = mtu;
	group->rate = rate;
	group->tclass = want->tclass;
	group->sl_flow_hop = want->sl_flow_hop & flow_mask(req);
	*status = VHCA_MAD_OK;
	return group;
}

static u16 join_locked(const struct sa_request *req, struct vhca_port *port,
		       struct mcmember_record *rec)
{
	u8 join = rec->scope_join & 0xf;
	struct member *member;
	struct group *group;
	u16 status;

	group = find_or_broadcast(&rec->mgid);
	if (!group) {
		group = create(req, rec, port, &status);
		if (!group)
			return status;
	} else if (!group_matches(req, rec, group) ||
		   READ_ONCE(port->active_mtu) < group->mtu ||
		   !holds_pkey(req, port, group->pkey)) {
		return SA_ERR_REQ_INVALID;
	}
	member = find_member(group, &rec->port_gid);
	if (!member) {
		member = kzalloc(sizeof(*member), GFP_ATOMIC);
		if (!member) {
			end_if_unused(group);
			return SA_ERR_NO_RESOURCES;
		}
		member->hca = port->dev->index;
		member->port_gid = rec->port_gid;
		member->proxy = port != req->from;
		list_add_tail(&member->node, &group->members);
	} else if (!may_change(req, port, group, member)) {
		return SA_ERR_REQ_INVALID;
	}
	member->join |= join;
	route(group, port->dev->index);
	fill_record(rec, group, member, member->join);
	return VHCA_MAD_OK;
}

static u16 leave_locked(const struct sa_request *req, struct vhca_port *port,
			struct mcmember_record *rec)
{
	struct group *group = find_group(&rec->mgid);
	u8 join = rec->scope_join & 0xf;
	struct member *member;

	member = group ? find_member(group, &rec->port_gid) : NULL;
	/* Only what was joined can be left. */
	if (!member || join & ~member->join ||
	    !may_change(req, port, group, member))
		return SA_ERR_REQ_INVALID;
	fill_record(rec, group, member, member->join & ~join);
	remove_bits(group, member, join);
	end_if_unused(group);
	return VHCA_MAD_OK;
}

static u16 change(const struct sa_request *req,
		  u16 (*locked)(const struct sa_request *, struct vhca_port *,
				struct mcmember_record *))
{
	struct mcmember_record rec;
	struct vhca_port *port;
	unsigned long flags;
	u16 status;

	BUILD_BUG_ON(sizeof(rec) != SA_MCMEMBER_RECORD_SIZE);
	memcpy(&rec, req->mad->data, sizeof(rec));
	if (!sa_has(req, REQUIRED_JOIN))
		return SA_ERR_INSUFFICIENT;
	if (!(rec.scope_join & JOIN_ALL))
		return SA_ERR_REQ_INVALID;
	port = subject(&rec);
	if (!port)
		return SA_ERR_REQ_INVALID_GID;
	if (!vhca_port_active(port))
		return SA_ERR_REQ_INVALID;
	spin_lock_irqsave(&sa_lock, flags);
	status = locked(req, port, &rec);
	spin_unlock_irqrestore(&sa_lock, flags);
	if (status)
		return status;
	memset(req->mad->data, 0, sizeof(req->mad->data));
	memcpy(req->mad->data, &rec, sizeof(rec));
	req->mad->sa_hdr.attr_offset = cpu_to_be16(sizeof(rec) / 8);
	return VHCA_MAD_OK;
}

u16 sa_join(const struct sa_request *req)
{
	return change(req, join_locked);
}

u16 sa_leave(const struct sa_request *req)
{
	return change(req, leave_locked);
}

/*
 * A trusted requester sees the members, one record each; anybody else the
 * groups, with no member named (IBA 15.4.1.2).
 */
static bool list_locked(const struct sa_request *req, bool trusted,
			struct sa_table *table)
{
	const struct mcmember_record *want = (const void *)req->mad->data;
	struct mcmember_record rec;
	struct member *member;
	struct group *group;

	list_for_each_entry(group, &groups, node) {
		if (!group_matches(req, want, group))
			continue;
		if (!trusted) {
			fill_record(&rec, group, NULL, 0);
			if (!sa_table_append(table, &rec))
				return false;
			continue;
		}
		list_for_each_entry(member, &group->members, node) {
			if (sa_has(req, REC(PORT_GID)) &&
			    memcmp(&want->port_gid, &member->port_gid,
				   sizeof(member->port_gid)))
				continue;
			fill_record(&rec, group, member, member->join);
			if (!sa_table_append(table, &rec))
				return false;
		}
	}
	return true;
}

static size_t count_records(void)
{
	size_t num_groups = 0, num_members = 0;
	struct member *member;
	struct group *group;

	list_for_each_entry(group, &groups, node) {
		num_groups++;
		list_for_each_entry(member, &group->members, node)
			num_members++;
	}
	return max(num_groups, num_members);
}

u16 sa_list_groups(const struct sa_request *req, struct sa_table *table)
{
	bool trusted = req->mad->sa_hdr.sm_key == SA_TRUSTED_KEY;
	unsigned long flags;
	bool done = false;
	size_t records;

	/* No memory under a spinlock: make room, and try again if it grew. */
	while (!done) {
		spin_lock_irqsave(&sa_lock, flags);
		records = count_records();
		spin_unlock_irqrestore(&sa_lock, flags);
		if (!sa_table_reserve(table, records))
			return SA_ERR_NO_RESOURCES;
		table->used = 0;
		spin_lock_irqsave(&sa_lock, flags);
		done = list_locked(req, trusted, table);
		spin_unlock_irqrestore(&sa_lock, flags);
	}
	return VHCA_MAD_OK;
}
