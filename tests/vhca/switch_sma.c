// SPDX-License-Identifier: GPL-2.0-only
/* Subnet management agent of the virtual switch (IBA 14.2.5). */
#include <linux/unaligned.h>

#include "switch.h"

#define SW_LFT_BLOCKS		(VHCA_UNICAST_LIDS / SW_LFT_BLOCK)
#define SW_MFT_BLOCKS		(SW_NUM_MLIDS / SW_MFT_BLOCK)
#define SW_PKEY_BLOCKS		(VHCA_NUM_PKEYS / VHCA_PKEY_BLOCK)
#define SW_CAP_MASK		(IB_PORT_TRAP_SUP | IB_PORT_SL_MAP_SUP | \
				 IB_PORT_SYS_IMAGE_GUID_SUP)

static const char description[IB_DEVICE_NODE_DESC_MAX] = "vhca virtual switch";

/* SwitchInfo (IBA 14.2.5.4). */
struct switch_info {
	__be16 linear_cap;
	__be16 random_cap;
	__be16 mcast_cap;
	__be16 linear_top;
	u8 default_port;
	u8 mcast_primary_port;
	u8 mcast_other_port;
	u8 life_psc_opt;	/* 5 bits life time, PortStateChange, 2 bits */
	__be16 lids_per_port;
	__be16 enforcement_cap;
	u8 flags;		/* no enforcement, a base port 0 */
	u8 resv;
	__be16 mcast_top;
};

#define PORT_STATE_CHANGE	0x04

void vhca_switch_get_nodeinfo(unsigned int in_port, struct ib_node_info *ni)
{
	memset(ni, 0, sizeof(*ni));
	ni->base_version = IB_MGMT_BASE_VERSION;
	ni->class_version = 1;
	ni->node_type = RDMA_NODE_IB_SWITCH;
	ni->num_ports = vhca_sw.num_ports;
	ni->sys_guid = vhca_sw.guid;
	ni->node_guid = vhca_sw.guid;
	ni->port_guid = vhca_sw.guid;
	ni->partition_cap = cpu_to_be16(VHCA_NUM_PKEYS);
	ni->local_port_num = in_port;
	ni->device_id = cpu_to_be16(VHCA_SWITCH_PART_ID);
	ni->revision = cpu_to_be32(1);
	ni->vendor_id[0] = vhca_oui >> 16;
	ni->vendor_id[1] = (vhca_oui >> 8) & 0xff;
	ni->vendor_id[2] = vhca_oui & 0xff;
}

const char *vhca_switch_node_desc(void)
{
	return description;
}

/* Highest LID that the table leads to; fabric lock held for reading. */
static u16 linear_top(void)
{
	struct vhca_port *port;
	u16 top = vhca_sw.lid;
	unsigned int i;

	if (!vhca_managed)
		return vhca_sw.linear_top;
	vhca_for_each_port(i, port)
		top = max(top, READ_ONCE(port->lid));
	return top;
}

static u16 switch_info(struct ib_smp *smp, bool set)
{
	struct switch_info *si = (struct switch_info *)smp->data;
	struct vhca_sw *sw = &vhca_sw;
	unsigned long flags;

	if (set && be16_to_cpu(si->linear_top) >= VHCA_UNICAST_LIDS)
		return VHCA_MAD_BAD_VALUE;
	spin_lock_irqsave(&sw->lock, flags);
	if (set) {
		sw->linear_top = be16_to_cpu(si->linear_top);
		sw->mcast_top = be16_to_cpu(si->mcast_top);
		sw->default_port = si->default_port;
		sw->mcast_primary_port = si->mcast_primary_port;
		sw->mcast_other_port = si->mcast_other_port;
		sw->life_time = si->life_psc_opt >> 3;
		/* Writing 1 clears it, writing 0 does nothing. */
		if (si->life_psc_opt & PORT_STATE_CHANGE)
			sw->port_state_change = false;
	}
	memset(smp->data, 0, sizeof(smp->data));
	si->linear_cap = cpu_to_be16(VHCA_UNICAST_LIDS);
	si->mcast_cap = cpu_to_be16(SW_NUM_MLIDS);
	si->linear_top = cpu_to_be16(linear_top());
	si->default_port = sw->default_port;
	si->mcast_primary_port = sw->mcast_primary_port;
	si->mcast_other_port = sw->mcast_other_port;
	si->life_psc_opt = sw->life_time << 3 |
			   (sw->port_state_change ? PORT_STATE_CHANGE : 0);
	si->mcast_top = cpu_to_be16(sw->mcast_top);
	spin_unlock_irqrestore(&sw->lock, flags);
	return VHCA_MAD_OK;
}

/* A base switch port 0 has a GUIDInfo block with its one GUID. */
static u16 guid_info(struct ib_smp *smp)
{
	if (smp->attr_mod)
		return VHCA_MAD_BAD_VALUE;
	memcpy(smp->data, &vhca_sw.guid, sizeof(vhca_sw.guid));
	return VHCA_MAD_OK;
}

void vhca_switch_get_portinfo(unsigned int n, unsigned int in_port,
			      struct ib_port_info *pi)
{
	struct vhca_sw_port *p = &vhca_sw.port[n];
	unsigned long flags;

	memset(pi, 0, sizeof(*pi));
	spin_lock_irqsave(&vhca_sw.lock, flags);
	pi->local_port_num = in_port;
	if (!n) {
		pi->gid_prefix = vhca_sw.gid_prefix;
		pi->lid = cpu_to_be16(vhca_sw.lid);
		pi->sm_lid = cpu_to_be16(vhca_sw.sm_lid);
		pi->cap_mask = cpu_to_be32(SW_CAP_MASK);
		pi->neighbormtu_mastersmsl = vhca_sw.sm_sl;
		pi->guid_cap = 1;
		pi->resv_resptimevalue = VHCA_RESP_TIME;
	}
	vhca_portinfo_fill(pi, &p->sma, n ? VHCA_PORT_SWITCH_EXT :
					    VHCA_PORT_SWITCH_0,
			   p->state, p->phys, p->mtu);
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
}

/* What a Set asks of the link itself happens at both ends, through the HCA. */
static void apply_link(struct vhca_sw_port *p,
		       const struct vhca_portinfo_set *set)
{
	struct vhca_port *hca = READ_ONCE(p->hca);

	if (!hca)
		return;
	if (set->phys)
		vhca_port_set_peer(hca,
				   set->phys == IB_PORT_PHYS_STATE_POLLING);
	if (set->state == IB_PORT_DOWN && !set->phys)
		vhca_port_retrain(hca);
}

static u16 port_info_set(unsigned int n, const struct ib_port_info *pi,
			 bool *reregister)
{
	enum vhca_port_kind kind = n ? VHCA_PORT_SWITCH_EXT :
				       VHCA_PORT_SWITCH_0;
	struct vhca_sw_port *p = &vhca_sw.port[n];
	struct vhca_portinfo_set set;
	unsigned long flags;
	u16 status;

	spin_lock_irqsave(&vhca_sw.lock, flags);
	set.state = p->state;
	set.lid = vhca_sw.lid;
	set.sm_lid = vhca_sw.sm_lid;
	status = vhca_portinfo_parse(pi, kind, &set);
	if (!status) {
		vhca_portinfo_store(&p->sma, pi, kind);
		if (!n) {
			WRITE_ONCE(vhca_sw.lid, set.lid);
			WRITE_ONCE(vhca_sw.sm_lid, set.sm_lid);
			vhca_sw.sm_sl = set.sm_sl;
			vhca_sw.gid_prefix = pi->gid_prefix;
		} else {
			p->mtu = set.mtu;
			if (set.phys) {
				p->phys_admin = set.phys;
				if (p->phys != IB_PORT_PHYS_STATE_LINK_UP)
					WRITE_ONCE(p->phys, set.phys);
			}
			if (set.state == IB_PORT_ARMED ||
			    set.state == IB_PORT_ACTIVE)
				WRITE_ONCE(p->state, set.state);
		}
	}
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	if (!status && n)
		apply_link(p, &set);
	*reregister = set.reregister;
	return status;
}

static u16 port_info(struct ib_smp *smp, bool set, u8 in_port)
{
	struct ib_port_info *pi = (struct ib_port_info *)smp->data;
	u32 n = be32_to_cpu(smp->attr_mod);
	bool reregister = false;
	u16 status;

	if (n > vhca_sw.num_ports)
		return VHCA_MAD_BAD_VALUE;
	if (set) {
		status = port_info_set(n, pi, &reregister);
		if (status)
			return status;
	}
	vhca_switch_get_portinfo(n, in_port, pi);
	if (reregister)
		pi->clientrereg_resv_subnetto |= 0x80;
	return VHCA_MAD_OK;
}

/* External ports have no table: the switch does not enforce partitions. */
static u16 pkey_table(struct ib_smp *smp, bool set)
{
	u32 port = be32_to_cpu(smp->attr_mod) >> 16;
	u32 block = be32_to_cpu(smp->attr_mod) & 0xffff;
	unsigned long flags;

	if (port || block >= SW_PKEY_BLOCKS)
		return VHCA_MAD_BAD_VALUE;
	spin_lock_irqsave(&vhca_sw.lock, flags);
	if (set)
		vhca_pkey_block_set(vhca_sw.pkeys, block, smp->data);
	vhca_pkey_block_get(vhca_sw.pkeys, block, smp->data);
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	return VHCA_MAD_OK;
}

static u16 vl_table(struct ib_smp *smp, bool set)
{
	u32 mod = be32_to_cpu(smp->attr_mod);
	u8 in = mod >> 8, out = mod;
	unsigned long flags;
	u16 status;

	if (smp->attr_id == IB_SMP_ATTR_VL_ARB_TABLE)
		in = 0;
	if (in > vhca_sw.num_ports || out > vhca_sw.num_ports)
		return VHCA_MAD_BAD_VALUE;
	spin_lock_irqsave(&vhca_sw.lock, flags);
	if (smp->attr_id == IB_SMP_ATTR_VL_ARB_TABLE)
		status = vhca_sma_vl_arb(&vhca_sw.port[out].sma, smp, set);
	else
		status = vhca_sma_sl_to_vl(vhca_sw.port[in].sl_to_vl[out], smp,
					   set);
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	return status;
}

/* In managed mode the table shows where the registry leads to. */
static u8 lft_entry(u16 lid)
{
	struct vhca_port *dst;

	if (lid && lid == vhca_sw.lid)
		return 0;
	if (!vhca_managed)
		return vhca_sw.lft[lid];
	dst = vhca_port_by_lid(lid);
	return dst ? dst->dev->index + 1 : SW_NO_PORT;
}

static u16 linear_table(struct ib_smp *smp, bool set)
{
	u32 block = be32_to_cpu(smp->attr_mod);
	unsigned long flags;
	unsigned int i;

	if (block >= SW_LFT_BLOCKS)
		return VHCA_MAD_BAD_VALUE;
	spin_lock_irqsave(&vhca_sw.lock, flags);
	for (i = 0; i < SW_LFT_BLOCK; i++) {
		u16 lid = block * SW_LFT_BLOCK + i;

		if (set)
			WRITE_ONCE(vhca_sw.lft[lid], smp->data[i]);
		else
			smp->data[i] = lft_entry(lid);
	}
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	return VHCA_MAD_OK;
}

static u16 mcast_table(struct ib_smp *smp, bool set)
{
	u32 mod = be32_to_cpu(smp->attr_mod);
	unsigned int block = mod & 0x1ff, position = mod >> 28, i;
	unsigned long flags;

	if (block >= SW_MFT_BLOCKS || position >= SW_MFT_POSITIONS)
		return VHCA_MAD_BAD_VALUE;
	spin_lock_irqsave(&vhca_sw.lock, flags);
	for (i = 0; i < SW_MFT_BLOCK; i++) {
		u16 *ports = &vhca_sw.mft[block * SW_MFT_BLOCK + i][position];

		if (set)
			WRITE_ONCE(*ports, get_unaligned_be16(smp->data + 2 * i));
		put_unaligned_be16(*ports, smp->data + 2 * i);
	}
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	return VHCA_MAD_OK;
}

static u16 attribute(struct ib_smp *smp, bool set, u8 in_port)
{
	if (!set)
		memset(smp->data, 0, sizeof(smp->data));
	switch (smp->attr_id) {
	case IB_SMP_ATTR_PORT_INFO:
		return port_info(smp, set, in_port);
	case IB_SMP_ATTR_SWITCH_INFO:
		return switch_info(smp, set);
	case IB_SMP_ATTR_PKEY_TABLE:
		return pkey_table(smp, set);
	case IB_SMP_ATTR_SL_TO_VL_TABLE:
	case IB_SMP_ATTR_VL_ARB_TABLE:
		return vl_table(smp, set);
	case IB_SMP_ATTR_LINEAR_FORWARD_TABLE:
		return linear_table(smp, set);
	case IB_SMP_ATTR_MCAST_FORWARD_TABLE:
		return mcast_table(smp, set);
	}
	if (set)
		return VHCA_MAD_BAD_ATTR;
	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_INFO:
		vhca_switch_get_nodeinfo(in_port,
					 (struct ib_node_info *)smp->data);
		return VHCA_MAD_OK;
	case IB_SMP_ATTR_NODE_DESC:
		memcpy(smp->data, description, sizeof(description));
		return VHCA_MAD_OK;
	case IB_SMP_ATTR_GUID_INFO:
		return guid_info(smp);
	default:
		return VHCA_MAD_BAD_ATTR;
	}
}

static bool mkey_ok(const struct ib_smp *smp, bool *hide)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&vhca_sw.lock, flags);
	ok = vhca_mkey_ok(&vhca_sw.port[0].sma, smp, hide);
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	return ok;
}

bool vhca_switch_sma(struct ib_smp *smp, u8 in_port)
{
	bool set = smp->method == IB_MGMT_METHOD_SET;
	bool hide = false;
	u16 status;

	switch (smp->method) {
	case IB_MGMT_METHOD_GET:
	case IB_MGMT_METHOD_SET:
		if (smp->class_version != 1)
			status = VHCA_MAD_BAD_VERSION;
		else if (!mkey_ok(smp, &hide))
			return false;
		else
			status = attribute(smp, set, in_port);
		break;
	case IB_MGMT_METHOD_TRAP_REPRESS:
		if (mkey_ok(smp, &hide))
			vhca_trap_repress(NULL, smp->tid);
		return false;
	case IB_MGMT_METHOD_TRAP:
	case IB_MGMT_METHOD_REPORT:
		return false;
	default:
		if (smp->method & IB_MGMT_METHOD_RESP)
			return false;
		status = VHCA_MAD_BAD_METHOD;
	}
	if (hide && smp->attr_id == IB_SMP_ATTR_PORT_INFO)
		((struct ib_port_info *)smp->data)->mkey = 0;
	vhca_mad_respond((struct ib_mad_hdr *)smp, status);
	return true;
}
