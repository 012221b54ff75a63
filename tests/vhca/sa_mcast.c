// SPDX-License-Identifier: GPL-2.0-only
/* Requests for MCMemberRecord of the managed mode (IBA 15.2.5.17). */
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "sa_group.h"

#define SA_MGID_SIGNATURE	0xa01b	/* MGIDs that the SA made up */

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

static u64 mgids_made;	/* under sa_lock */

/* With no @member the record is the group's own. */
static void fill_record(struct mcmember_record *rec, const struct sa_group *group,
			const struct sa_member *member, u8 join)
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
			  const struct sa_group *group)
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
		       const struct sa_group *group, const struct sa_member *member)
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
	return (mgid->raw[1] & 0xf) != SA_SCOPE_LINK_LOCAL ||
	       get_unaligned_be16(mgid->raw + 2) != SA_MGID_SIGNATURE;
}

static bool holds_pkey(const struct sa_request *req, struct vhca_port *port,
		       u16 pkey)
{
	return vhca_port_find_pkey(port, pkey) >= 0 &&
	       (port == req->from || vhca_port_find_pkey(req->from, pkey) >= 0);
}

/* The request asks for a group that does not exist. */
static struct sa_group *create(const struct sa_request *req,
			       const struct mcmember_record *want,
			       struct vhca_port *port, u16 *status)
{
	u8 mtu = READ_ONCE(port->active_mtu), rate = VHCA_LINK_RATE;
	u16 pkey = be16_to_cpu(want->pkey);
	union ib_gid mgid = want->mgid;
	struct sa_group *group;

	*status = SA_ERR_REQ_INVALID;
	if (!(want->scope_join & SA_JOIN_KEEPS_GROUP))
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
			want->scope_join >> 4 : SA_SCOPE_LINK_LOCAL);
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
	group = sa_group_new(&mgid);
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
	struct sa_member *member;
	struct sa_group *group;
	u16 status;

	group = sa_group_get(&rec->mgid);
	if (!group) {
		group = create(req, rec, port, &status);
		if (!group)
			return status;
	} else if (!group_matches(req, rec, group) ||
		   READ_ONCE(port->active_mtu) < group->mtu ||
		   !holds_pkey(req, port, group->pkey)) {
		return SA_ERR_REQ_INVALID;
	}
	member = sa_member_find(group, &rec->port_gid);
	if (!member) {
		member = kzalloc(sizeof(*member), GFP_ATOMIC);
		if (!member) {
			sa_group_end_if_unused(group);
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
	sa_group_route(group, port->dev->index);
	fill_record(rec, group, member, member->join);
	return VHCA_MAD_OK;
}

static u16 leave_locked(const struct sa_request *req, struct vhca_port *port,
			struct mcmember_record *rec)
{
	struct sa_group *group = sa_group_find(&rec->mgid);
	u8 join = rec->scope_join & 0xf;
	struct sa_member *member;

	member = group ? sa_member_find(group, &rec->port_gid) : NULL;
	/* Only what was joined can be left. */
	if (!member || join & ~member->join ||
	    !may_change(req, port, group, member))
		return SA_ERR_REQ_INVALID;
	fill_record(rec, group, member, member->join & ~join);
	sa_member_remove(group, member, join);
	sa_group_end_if_unused(group);
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
	if (!(rec.scope_join & SA_JOIN_ALL))
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
	struct sa_member *member;
	struct sa_group *group;

	list_for_each_entry(group, &sa_groups, node) {
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
	struct sa_member *member;
	struct sa_group *group;

	list_for_each_entry(group, &sa_groups, node) {
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
