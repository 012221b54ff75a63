// SPDX-License-Identifier: GPL-2.0-only
/*
 * Subnet management agent of a CA (IBA 14.2.5, 14.3). Runs in process_mad: the
 * MAD layer has walked the directed route already, so the SMP is for this port.
 */
#include "vhca.h"

/* SMInfo (IBA 14.2.5.13). */
struct sm_info {
	__be64 guid;
	__be64 sm_key;
	__be32 activity;
	u8 priority_state;	/* 4, 4 bits */
};

#define SM_STATE_MASTER		3
#define NUM_PKEY_BLOCKS		(VHCA_NUM_PKEYS / VHCA_PKEY_BLOCK)

void vhca_sma_init(struct vhca_port *port)
{
	vhca_sma_reset(&port->sma);
}

static u16 node_description(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	if (set)
		return VHCA_MAD_BAD_ATTR;
	memcpy(smp->data, port->dev->ibdev.node_desc, IB_DEVICE_NODE_DESC_MAX);
	return VHCA_MAD_OK;
}

void vhca_sma_get_nodeinfo(struct vhca_port *port, struct ib_node_info *ni)
{
	struct vhca_dev *dev = port->dev;

	memset(ni, 0, sizeof(*ni));
	ni->base_version = IB_MGMT_BASE_VERSION;
	ni->class_version = 1;
	ni->node_type = RDMA_NODE_IB_CA;
	ni->num_ports = 1;
	ni->sys_guid = dev->ibdev.attrs.sys_image_guid;
	ni->node_guid = dev->ibdev.node_guid;
	ni->port_guid = port->guids[0];
	ni->partition_cap = cpu_to_be16(VHCA_NUM_PKEYS);
	ni->device_id = cpu_to_be16(dev->ibdev.attrs.vendor_part_id);
	ni->revision = cpu_to_be32(dev->ibdev.attrs.hw_ver);
	ni->local_port_num = VHCA_PORT_NUM;
	ni->vendor_id[0] = dev->ibdev.attrs.vendor_id >> 16;
	ni->vendor_id[1] = dev->ibdev.attrs.vendor_id >> 8;
	ni->vendor_id[2] = dev->ibdev.attrs.vendor_id;
}

static u16 node_info(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	if (set)
		return VHCA_MAD_BAD_ATTR;
	vhca_sma_get_nodeinfo(port, (struct ib_node_info *)smp->data);
	return VHCA_MAD_OK;
}

static u16 guid_info(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	__be64 *guids = (__be64 *)smp->data;
	unsigned long flags;
	unsigned int i;

	BUILD_BUG_ON(sizeof(port->guids) != sizeof(smp->data));
	if (smp->attr_mod)
		return VHCA_MAD_BAD_VALUE;
	/* Entry 0 is the port GUID: whatever a Set says of it is ignored. */
	if (set)
		for (i = 1; i < VHCA_NUM_GUIDS; i++)
			vhca_port_set_guid(port, i, guids[i]);
	spin_lock_irqsave(&port->lock, flags);
	memcpy(smp->data, port->guids, sizeof(port->guids));
	spin_unlock_irqrestore(&port->lock, flags);
	return VHCA_MAD_OK;
}

void vhca_sma_get_portinfo(struct vhca_port *port, struct ib_port_info *pi)
{
	unsigned long flags;

	memset(pi, 0, sizeof(*pi));
	spin_lock_irqsave(&port->lock, flags);
	pi->gid_prefix = port->gid_prefix;
	pi->lid = cpu_to_be16(port->lid);
	pi->sm_lid = cpu_to_be16(port->sm_lid);
	pi->cap_mask = cpu_to_be32(port->cap_mask);
	pi->local_port_num = VHCA_PORT_NUM;
	pi->mkeyprot_resv_lmc = port->lmc;
	pi->neighbormtu_mastersmsl = port->sm_sl;
	pi->pkey_violations = cpu_to_be16(port->pkey_violations);
	pi->qkey_violations = cpu_to_be16(port->qkey_violations);
	pi->guid_cap = VHCA_NUM_GUIDS;
	pi->clientrereg_resv_subnetto = port->subnet_timeout;
	pi->resv_resptimevalue = VHCA_RESP_TIME;
	vhca_portinfo_fill(pi, &port->sma, VHCA_PORT_CA, port->state,
			   port->phys_state, port->active_mtu);
	spin_unlock_irqrestore(&port->lock, flags);
}

static void apply_portinfo(struct vhca_port *port, const struct ib_port_info *pi,
			   const struct vhca_portinfo_set *set)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	vhca_portinfo_store(&port->sma, pi, VHCA_PORT_CA);
	if (set->clear_pkey_violations)
		port->pkey_violations = 0;
	if (set->clear_qkey_violations)
		port->qkey_violations = 0;
	spin_unlock_irqrestore(&port->lock, flags);

	/* Addresses first: who hears PORT_ACTIVE finds them in place. */
	vhca_port_set_gid_prefix(port, pi->gid_prefix);
	vhca_port_set_lid(port, set->lid, set->lmc);
	vhca_port_set_sm(port, set->sm_lid, set->sm_sl);
	vhca_port_set_mtu(port, set->mtu);
	vhca_port_set_subnet_timeout(port, set->subnet_timeout);
	if (set->phys)
		vhca_port_set_phys(port, set->phys);
	/* Can only fail if the link went down since parse looked: stays down. */
	if (set->state)
		vhca_port_set_state(port, set->state);
	if (set->reregister)
		vhca_port_reregister(port);
}

static u16 port_info(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	struct ib_port_info *pi = (struct ib_port_info *)smp->data;
	u32 port_num = be32_to_cpu(smp->attr_mod);
	struct vhca_portinfo_set values = {
		.state = READ_ONCE(port->state),
		.lid = READ_ONCE(port->lid),
		.sm_lid = READ_ONCE(port->sm_lid),
	};
	u16 status;

	if (port_num && port_num != VHCA_PORT_NUM)
		return VHCA_MAD_BAD_VALUE;
	if (set) {
		status = vhca_portinfo_parse(pi, VHCA_PORT_CA, &values);
		if (status)
			return status;
		apply_portinfo(port, pi, &values);
	}
	vhca_sma_get_portinfo(port, pi);
	if (values.reregister)		/* the response says that it was heard */
		pi->clientrereg_resv_subnetto |= 0x80;
	return VHCA_MAD_OK;
}

static u16 pkey_table(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	u32 block = be32_to_cpu(smp->attr_mod) & 0xffff;
	u16 pkeys[VHCA_NUM_PKEYS];
	unsigned long flags;

	if (block >= NUM_PKEY_BLOCKS)
		return VHCA_MAD_BAD_VALUE;
	if (set) {
		vhca_pkey_block_set(pkeys, block, smp->data);
		if (vhca_port_set_pkeys(port, block * VHCA_PKEY_BLOCK,
					pkeys + block * VHCA_PKEY_BLOCK,
					VHCA_PKEY_BLOCK))
			return VHCA_MAD_BAD_VALUE;
	}
	spin_lock_irqsave(&port->lock, flags);
	vhca_pkey_block_get(port->pkeys, block, smp->data);
	spin_unlock_irqrestore(&port->lock, flags);
	return VHCA_MAD_OK;
}

static u16 vl_table(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	unsigned long flags;
	u16 status;

	spin_lock_irqsave(&port->lock, flags);
	if (smp->attr_id == IB_SMP_ATTR_SL_TO_VL_TABLE)
		status = vhca_sma_sl_to_vl(port->sma.sl_to_vl, smp, set);
	else
		status = vhca_sma_vl_arb(&port->sma, smp, set);
	spin_unlock_irqrestore(&port->lock, flags);
	return status;
}

/*
 * In managed mode each port is its own subnet manager (sa.c), always master.
 * Otherwise this is only asked when no manager runs here.
 */
static u16 sm_info(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	struct sm_info *info = (struct sm_info *)smp->data;

	if (!vhca_managed || set)
		return VHCA_MAD_BAD_ATTR;
	info->guid = port->guids[0];
	info->activity = cpu_to_be32(jiffies);
	info->priority_state = SM_STATE_MASTER;
	return VHCA_MAD_OK;
}

static u16 attribute(struct vhca_port *port, struct ib_smp *smp, bool set)
{
	if (!set)
		memset(smp->data, 0, sizeof(smp->data));
	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		return node_description(port, smp, set);
	case IB_SMP_ATTR_NODE_INFO:
		return node_info(port, smp, set);
	case IB_SMP_ATTR_GUID_INFO:
		return guid_info(port, smp, set);
	case IB_SMP_ATTR_PORT_INFO:
		return port_info(port, smp, set);
	case IB_SMP_ATTR_PKEY_TABLE:
		return pkey_table(port, smp, set);
	case IB_SMP_ATTR_SL_TO_VL_TABLE:
	case IB_SMP_ATTR_VL_ARB_TABLE:
		return vl_table(port, smp, set);
	case IB_SMP_ATTR_SM_INFO:
		return sm_info(port, smp, set);
	default:
		return VHCA_MAD_BAD_ATTR;
	}
}

static bool mkey_ok(struct vhca_port *port, const struct ib_smp *smp, bool *hide)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&port->lock, flags);
	ok = vhca_mkey_ok(&port->sma, smp, hide);
	spin_unlock_irqrestore(&port->lock, flags);
	return ok;
}

int vhca_sma_process(struct vhca_port *port, struct ib_smp *smp)
{
	bool set = smp->method == IB_MGMT_METHOD_SET;
	bool hide = false;
	u16 status;

	switch (smp->method) {
	case IB_MGMT_METHOD_GET:
	case IB_MGMT_METHOD_SET:
		/* The subnet manager on this port answers SMInfo itself. */
		if (smp->attr_id == IB_SMP_ATTR_SM_INFO &&
		    READ_ONCE(port->cap_mask) & IB_PORT_SM)
			return IB_MAD_RESULT_SUCCESS;
		if (smp->class_version != 1)
			status = VHCA_MAD_BAD_VERSION;
		else if (!mkey_ok(port, smp, &hide))
			return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
		else
			status = attribute(port, smp, set);
		break;
	case IB_MGMT_METHOD_TRAP_REPRESS:
		if (mkey_ok(port, smp, &hide))
			vhca_trap_repress(port, smp->tid);
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	case IB_MGMT_METHOD_TRAP:	/* for the subnet manager */
	case IB_MGMT_METHOD_REPORT:
		return IB_MAD_RESULT_SUCCESS;
	default:
		if (smp->method & IB_MGMT_METHOD_RESP)	/* for who asked */
			return IB_MAD_RESULT_SUCCESS;
		status = VHCA_MAD_BAD_METHOD;
	}
	if (hide && smp->attr_id == IB_SMP_ATTR_PORT_INFO)
		((struct ib_port_info *)smp->data)->mkey = 0;
	vhca_mad_respond((struct ib_mad_hdr *)smp, status);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
