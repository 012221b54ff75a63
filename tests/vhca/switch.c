// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual switch: its ports, and the way of a packet through it. Unicast
 * goes by the linear forwarding table, multicast by the multicast forwarding
 * table, which a subnet manager programs. In managed mode there is none: LIDs
 * are looked up in the registry, and the SA writes the multicast table.
 */
#include "switch.h"

struct vhca_sw vhca_sw;

static struct vhca_sw_port *sw_port(const struct vhca_port *hca)
{
	return &vhca_sw.port[hca->dev->index + 1];
}

int vhca_switch_init(void)
{
	struct vhca_sw *sw = &vhca_sw;
	unsigned int i;

	memset(sw, 0, sizeof(*sw));
	spin_lock_init(&sw->lock);
	sw->num_ports = vhca_hcas;
	sw->guid = vhca_guid(VHCA_MAX_HCAS, VHCA_GUID_NODE);
	sw->gid_prefix = cpu_to_be64(VHCA_DEFAULT_GID_PREFIX);
	sw->pkeys[0] = IB_DEFAULT_PKEY_FULL;
	sw->lid = vhca_managed ? VHCA_SWITCH_LID : 0;
	sw->default_port = SW_NO_PORT;
	sw->mcast_primary_port = SW_NO_PORT;
	sw->mcast_other_port = SW_NO_PORT;
	memset(sw->lft, SW_NO_PORT, sizeof(sw->lft));
	for (i = 0; i <= sw->num_ports; i++) {
		struct vhca_sw_port *p = &sw->port[i];

		vhca_sma_reset(&p->sma);
		p->state = i ? IB_PORT_DOWN : IB_PORT_ACTIVE;
		p->phys = i ? IB_PORT_PHYS_STATE_POLLING :
			      IB_PORT_PHYS_STATE_LINK_UP;
		p->phys_admin = IB_PORT_PHYS_STATE_POLLING;
		p->mtu = vhca_mtu_enum();
	}
	return vhca_trap_init();
}

void vhca_switch_exit(void)
{
	vhca_trap_exit();
}

int vhca_switch_attach(struct vhca_dev *dev)
{
	if (dev->index >= vhca_sw.num_ports)
		return -ENOSPC;
	if (sw_port(&dev->port)->hca)
		return -EBUSY;
	WRITE_ONCE(sw_port(&dev->port)->hca, &dev->port);
	return 0;
}

void vhca_switch_detach(struct vhca_dev *dev)
{
	struct vhca_sw_port *p = sw_port(&dev->port);

	vhca_switch_link(&dev->port, false);
	vhca_trap_forget(&dev->port);
	WRITE_ONCE(p->hca, NULL);
}

u16 vhca_switch_lid(void)
{
	return READ_ONCE(vhca_sw.lid);
}

u16 vhca_switch_sm_lid(__be64 *m_key)
{
	*m_key = vhca_sw.port[0].sma.m_key;
	return READ_ONCE(vhca_sw.sm_lid);
}

void vhca_switch_gid(union ib_gid *gid)
{
	gid->global.subnet_prefix = READ_ONCE(vhca_sw.gid_prefix);
	gid->global.interface_id = vhca_sw.guid;
}

const u16 *vhca_switch_pkeys(void)
{
	return vhca_sw.pkeys;
}

unsigned int vhca_switch_num_ports(void)
{
	return vhca_sw.num_ports;
}

u32 vhca_switch_link_downed(struct vhca_port *port)
{
	return READ_ONCE(sw_port(port)->link_downed);
}

void vhca_switch_link(struct vhca_port *port, bool up)
{
	struct vhca_sw_port *p = sw_port(port);
	unsigned long flags;
	bool changed;

	spin_lock_irqsave(&vhca_sw.lock, flags);
	changed = up != (p->phys == IB_PORT_PHYS_STATE_LINK_UP);
	if (changed) {
		WRITE_ONCE(p->phys, up ? IB_PORT_PHYS_STATE_LINK_UP :
					 p->phys_admin);
		if (!up) {
			WRITE_ONCE(p->state, IB_PORT_DOWN);
			WRITE_ONCE(p->link_downed, p->link_downed + 1);
		} else {
			WRITE_ONCE(p->state, vhca_managed ? IB_PORT_ACTIVE :
							    IB_PORT_INIT);
		}
		vhca_sw.port_state_change = true;
	}
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	if (!changed)
		return;
	if (!vhca_managed)
		vhca_trap_link_state();
	else if (!up)
		vhca_sa_forget_port(port);
}

/*
 * A data packet may come in on a port that is ARMED: it says that the other end
 * is ACTIVE already, and makes this end ACTIVE too (IBA 7.2.7, the
 * ActiveEnable and ActiveTrigger of the link state machine).
 */
static bool data_may_enter(struct vhca_sw_port *p)
{
	u8 state = READ_ONCE(p->state);
	unsigned long flags;

	if (likely(state == IB_PORT_ACTIVE))
		return true;
	if (state != IB_PORT_ARMED)
		return false;
	spin_lock_irqsave(&vhca_sw.lock, flags);
	if (p->state == IB_PORT_ARMED)
		WRITE_ONCE(p->state, IB_PORT_ACTIVE);
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
	return true;
}

static struct vhca_port *port_out(struct vhca_sw_port *p, bool vl15)
{
	if (vl15 ? READ_ONCE(p->phys) != IB_PORT_PHYS_STATE_LINK_UP :
		   READ_ONCE(p->state) != IB_PORT_ACTIVE)
		return NULL;
	return READ_ONCE(p->hca);
}

struct vhca_port *vhca_switch_out(u16 dlid, bool vl15)
{
	u8 out;

	if (vhca_managed) {
		struct vhca_port *dst = vhca_port_by_lid(dlid);

		return dst ? port_out(sw_port(dst), vl15) : NULL;
	}
	if (dlid >= VHCA_UNICAST_LIDS)
		return NULL;
	out = READ_ONCE(vhca_sw.lft[dlid]);
	if (!out || out > vhca_sw.num_ports)
		return NULL;
	return port_out(&vhca_sw.port[out], vl15);
}

struct vhca_port *vhca_switch_route(struct vhca_port *src, u16 dlid)
{
	struct vhca_port *dst;

	if (!data_may_enter(sw_port(src)))
		return NULL;
	dst = vhca_switch_out(dlid, false);
	/* An HCA takes no packet that has another's LID. */
	return dst && vhca_port_owns_lid(dst, dlid) ? dst : NULL;
}

unsigned int vhca_switch_send(const struct vhca_pkt *pkt)
{
	struct vhca_port *dst = vhca_switch_out(pkt->dlid, pkt->vl15);

	if (!dst)
		return 0;
	vhca_port_deliver(dst, pkt);
	return 1;
}

void vhca_switch_set_mcast(u16 mlid, unsigned int hca, bool member)
{
	unsigned int n = hca + 1;
	unsigned long flags;
	u16 *word, mask;

	if (mlid < VHCA_UNICAST_LIDS || mlid >= VHCA_UNICAST_LIDS + SW_NUM_MLIDS)
		return;
	word = &vhca_sw.mft[mlid - VHCA_UNICAST_LIDS][n / SW_MFT_PORTS];
	mask = 1U << n % SW_MFT_PORTS;
	spin_lock_irqsave(&vhca_sw.lock, flags);
	WRITE_ONCE(*word, member ? *word | mask : *word & ~mask);
	spin_unlock_irqrestore(&vhca_sw.lock, flags);
}

static unsigned int forward_mcast(struct vhca_port *src,
				  const struct vhca_pkt *pkt)
{
	unsigned int mlid = pkt->dlid - VHCA_UNICAST_LIDS;
	unsigned int position, reached = 0;

	if (mlid >= SW_NUM_MLIDS)
		return 0;
	for (position = 0; position < SW_MFT_POSITIONS; position++) {
		unsigned long ports = READ_ONCE(vhca_sw.mft[mlid][position]);
		unsigned int bit;

		for_each_set_bit(bit, &ports, SW_MFT_PORTS) {
			unsigned int out = position * SW_MFT_PORTS + bit;
			struct vhca_port *dst;

			if (!out || out > vhca_sw.num_ports)
				continue;
			dst = port_out(&vhca_sw.port[out], false);
			if (!dst || dst == src)
				continue;
			vhca_port_deliver(dst, pkt);
			reached++;
		}
	}
	return reached;
}

unsigned int vhca_switch_forward(struct vhca_port *src,
				 const struct vhca_pkt *pkt)
{
	struct vhca_port *dst;

	if (pkt->vl15)
		return vhca_switch_smp(src, pkt);
	if (!data_may_enter(sw_port(src)) || pkt->dlid == VHCA_PERMISSIVE_LID)
		return 0;
	if (vhca_pkt_is_mcast(pkt))
		return forward_mcast(src, pkt);
	if (pkt->dlid == READ_ONCE(vhca_sw.lid))
		return vhca_switch_gmp(src, pkt);
	dst = vhca_switch_out(pkt->dlid, false);
	if (!dst || dst == src || !vhca_port_owns_lid(dst, pkt->dlid))
		return 0;
	vhca_port_deliver(dst, pkt);
	return 1;
}
