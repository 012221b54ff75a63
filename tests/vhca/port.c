// SPDX-License-Identifier: GPL-2.0-only
/* The port: its state, its tables, and the events that their changes raise. */
#include "internal.h"

/*
 * port->lock is held. Before registration and after its end the core must not
 * see an event: its caches do not exist.
 */
static void vhca_port_event(struct vhca_port *port, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &port->dev->ibdev,
		.event = type,
		.element.port_num = VHCA_PORT_NUM,
	};

	if (port->registered)
		ib_dispatch_event(&event);
}

static void vhca_port_enter(struct vhca_port *port, enum ib_port_state state)
{
	enum ib_port_state old = port->state;

	WRITE_ONCE(port->state, state);
	if (old != IB_PORT_ACTIVE && state == IB_PORT_ACTIVE)
		vhca_port_event(port, IB_EVENT_PORT_ACTIVE);
	else if (old == IB_PORT_ACTIVE && state != IB_PORT_ACTIVE)
		vhca_port_event(port, IB_EVENT_PORT_ERR);
}

/*
 * Makes the link follow what the port, the cable and the switch want; @bounce:
 * takes it down first. link_lock keeps the switch's view in step.
 */
static void vhca_port_relink(struct vhca_port *port, bool bounce)
{
	bool down = false, up = false, want, was;
	unsigned long flags;

	spin_lock_irqsave(&port->link_lock, flags);
	spin_lock(&port->lock);
	want = port->cable && port->peer && port->on_switch &&
	       port->phys_admin == IB_PORT_PHYS_STATE_POLLING;
	was = port->phys_state == IB_PORT_PHYS_STATE_LINK_UP;
	if (was && (!want || bounce)) {
		down = true;
		vhca_port_enter(port, IB_PORT_DOWN);
	}
	WRITE_ONCE(port->phys_state,
		   want ? IB_PORT_PHYS_STATE_LINK_UP : port->phys_admin);
	if (want && (!was || bounce)) {
		up = true;
		vhca_port_enter(port, vhca_managed ? IB_PORT_ACTIVE :
						     IB_PORT_INIT);
	}
	spin_unlock(&port->lock);
	if (down)
		vhca_switch_link(port, false);
	if (up)
		vhca_switch_link(port, true);
	spin_unlock_irqrestore(&port->link_lock, flags);
}

int vhca_port_set_state(struct vhca_port *port, enum ib_port_state state)
{
	unsigned long flags;
	int ret = 0;

	if (state == IB_PORT_DOWN) {
		vhca_port_relink(port, true);
		return 0;
	}
	spin_lock_irqsave(&port->lock, flags);
	if (state == IB_PORT_ARMED &&
	    (port->state == IB_PORT_INIT || port->state == IB_PORT_ARMED))
		vhca_port_enter(port, state);
	else if (state == IB_PORT_ACTIVE &&
		 (port->state == IB_PORT_ARMED || port->state == IB_PORT_ACTIVE))
		vhca_port_enter(port, state);
	else
		ret = -EINVAL;
	spin_unlock_irqrestore(&port->lock, flags);
	return ret;
}

int vhca_port_set_phys(struct vhca_port *port, enum ib_port_phys_state phys)
{
	unsigned long flags;

	if (phys != IB_PORT_PHYS_STATE_SLEEP &&
	    phys != IB_PORT_PHYS_STATE_POLLING &&
	    phys != IB_PORT_PHYS_STATE_DISABLED)
		return -EINVAL;
	spin_lock_irqsave(&port->lock, flags);
	port->phys_admin = phys;
	spin_unlock_irqrestore(&port->lock, flags);
	vhca_port_relink(port, false);
	return 0;
}

void vhca_port_set_cable(struct vhca_port *port, bool plugged)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	port->cable = plugged;
	spin_unlock_irqrestore(&port->lock, flags);
	vhca_port_relink(port, false);
}

void vhca_port_set_peer(struct vhca_port *port, bool enabled)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	port->peer = enabled;
	spin_unlock_irqrestore(&port->lock, flags);
	vhca_port_relink(port, false);
}

void vhca_port_retrain(struct vhca_port *port)
{
	vhca_port_relink(port, true);
}

void vhca_port_set_lid(struct vhca_port *port, u16 lid, u8 lmc)
{
	unsigned long flags;
	u16 old_lid;
	u8 old_lmc;

	spin_lock_irqsave(&port->lock, flags);
	old_lid = port->lid;
	old_lmc = port->lmc;
	if (old_lid != lid || old_lmc != lmc) {
		WRITE_ONCE(port->lid, lid);
		WRITE_ONCE(port->lmc, lmc);
		vhca_registry_move_lid(port, old_lid, old_lmc);
		vhca_port_event(port, IB_EVENT_LID_CHANGE);
	}
	spin_unlock_irqrestore(&port->lock, flags);
}

void vhca_port_set_sm(struct vhca_port *port, u16 sm_lid, u8 sm_sl)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	if (port->sm_lid != sm_lid || port->sm_sl != sm_sl) {
		port->sm_lid = sm_lid;
		port->sm_sl = sm_sl;
		vhca_port_event(port, IB_EVENT_SM_CHANGE);
	}
	spin_unlock_irqrestore(&port->lock, flags);
}

void vhca_port_set_gid_prefix(struct vhca_port *port, __be64 prefix)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	if (port->gid_prefix != prefix) {
		port->gid_prefix = prefix;
		vhca_port_event(port, IB_EVENT_GID_CHANGE);
	}
	spin_unlock_irqrestore(&port->lock, flags);
}

int vhca_port_set_guid(struct vhca_port *port, unsigned int index, __be64 guid)
{
	unsigned long flags;

	if (!index || index >= VHCA_NUM_GUIDS)
		return -EINVAL;
	spin_lock_irqsave(&port->lock, flags);
	if (port->guids[index] != guid) {
		port->guids[index] = guid;
		vhca_port_event(port, IB_EVENT_GID_CHANGE);
	}
	spin_unlock_irqrestore(&port->lock, flags);
	return 0;
}

int vhca_port_set_pkeys(struct vhca_port *port, unsigned int first,
			const u16 *pkeys, unsigned int n)
{
	bool changed = false;
	unsigned long flags;
	unsigned int i;

	if (n > VHCA_NUM_PKEYS || first > VHCA_NUM_PKEYS - n)
		return -EINVAL;
	spin_lock_irqsave(&port->lock, flags);
	for (i = 0; i < n; i++) {
		changed |= port->pkeys[first + i] != pkeys[i];
		WRITE_ONCE(port->pkeys[first + i], pkeys[i]);
	}
	if (changed)
		vhca_port_event(port, IB_EVENT_PKEY_CHANGE);
	spin_unlock_irqrestore(&port->lock, flags);
	return 0;
}

void vhca_port_set_mtu(struct vhca_port *port, enum ib_mtu mtu)
{
	WRITE_ONCE(port->active_mtu, min(mtu, vhca_mtu_enum()));
}

void vhca_port_set_subnet_timeout(struct vhca_port *port, u8 timeout)
{
	WRITE_ONCE(port->subnet_timeout, timeout);
}

void vhca_port_reregister(struct vhca_port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	vhca_port_event(port, IB_EVENT_CLIENT_REREGISTER);
	spin_unlock_irqrestore(&port->lock, flags);
}

int vhca_port_gid(struct vhca_port *port, unsigned int index, union ib_gid *gid)
{
	unsigned long flags;

	if (index >= VHCA_NUM_GUIDS)
		return -EINVAL;
	spin_lock_irqsave(&port->lock, flags);
	gid->global.subnet_prefix = port->gid_prefix;
	gid->global.interface_id = port->guids[index];
	spin_unlock_irqrestore(&port->lock, flags);
	return 0;
}

bool vhca_pkey_match(u16 a, u16 b)
{
	return (a & 0x7fff) && !((a ^ b) & 0x7fff) && ((a | b) & 0x8000);
}

int vhca_port_find_pkey(struct vhca_port *port, u16 pkey)
{
	int i;

	for (i = 0; i < VHCA_NUM_PKEYS; i++)
		if (vhca_pkey_match(READ_ONCE(port->pkeys[i]), pkey))
			return i;
	return -1;
}

/* A port that no subnet manager has seen yet (IBA 14.2.5.6, 14.2.5.7). */
void vhca_port_init(struct vhca_port *port, struct vhca_dev *dev)
{
	unsigned int i;

	port->dev = dev;
	spin_lock_init(&port->lock);
	spin_lock_init(&port->link_lock);
	port->state = IB_PORT_DOWN;
	port->phys_state = IB_PORT_PHYS_STATE_POLLING;
	port->phys_admin = IB_PORT_PHYS_STATE_POLLING;
	port->cable = true;
	port->peer = true;
	port->active_mtu = vhca_mtu_enum();
	port->subnet_timeout = 18;
	port->gid_prefix = cpu_to_be64(0xfe80000000000000ULL);
	port->guids[0] = vhca_guid(dev->index, VHCA_GUID_PORT);
	port->pkeys[0] = 0xffff;
	port->cap_mask = IB_PORT_TRAP_SUP | IB_PORT_SL_MAP_SUP |
			 IB_PORT_SYS_IMAGE_GUID_SUP |
			 IB_PORT_CAP_MASK_NOTICE_SUP | IB_PORT_CLIENT_REG_SUP |
			 IB_PORT_OTHER_LOCAL_CHANGES_SUP;
	if (!vhca_managed)
		return;
	port->lid = VHCA_MANAGED_LID + dev->index;
	port->sm_lid = port->lid;
	for (i = 0; i < vhca_num_pkeys; i++)
		port->pkeys[i] = vhca_pkeys[i];
}

/* The HCA is on the switch and known to the core: events may flow. */
void vhca_port_start(struct vhca_port *port)
{
	spin_lock_irq(&port->lock);
	port->registered = true;
	port->on_switch = true;
	spin_unlock_irq(&port->lock);
	vhca_port_relink(port, false);
}

/* The HCA will be removed: nobody gets an answer from its agents any more. */
void vhca_port_leave(struct vhca_port *port)
{
	WRITE_ONCE(port->leaving, true);
}

/* The core is about to forget the HCA: no event after this. */
void vhca_port_mute(struct vhca_port *port)
{
	spin_lock_irq(&port->lock);
	port->registered = false;
	spin_unlock_irq(&port->lock);
}

/* Before the HCA leaves the switch. */
void vhca_port_stop(struct vhca_port *port)
{
	spin_lock_irq(&port->lock);
	port->on_switch = false;
	spin_unlock_irq(&port->lock);
	vhca_port_relink(port, false);
}

int vhca_query_port(struct ib_device *ibdev, u32 port_num,
		    struct ib_port_attr *attr)
{
	struct vhca_port *port = &to_vdev(ibdev)->port;
	unsigned long flags;

	if (port_num != VHCA_PORT_NUM)
		return -EINVAL;
	spin_lock_irqsave(&port->lock, flags);
	attr->subnet_prefix = be64_to_cpu(port->gid_prefix);
	attr->state = port->state;
	attr->phys_state = port->phys_state;
	attr->lid = port->lid;
	attr->lmc = port->lmc;
	attr->sm_lid = port->sm_lid;
	attr->sm_sl = port->sm_sl;
	attr->active_mtu = port->active_mtu;
	attr->subnet_timeout = port->subnet_timeout;
	attr->port_cap_flags = port->cap_mask;
	attr->bad_pkey_cntr = port->pkey_violations;
	attr->qkey_viol_cntr = port->qkey_violations;
	spin_unlock_irqrestore(&port->lock, flags);
	attr->max_mtu = vhca_mtu_enum();
	attr->gid_tbl_len = VHCA_NUM_GUIDS;
	attr->pkey_tbl_len = VHCA_NUM_PKEYS;
	attr->max_msg_sz = VHCA_MAX_MSG;
	attr->max_vl_num = VHCA_NUM_VLS;
	attr->active_width = VHCA_LINK_WIDTH;
	attr->active_speed = VHCA_LINK_SPEED;
	return 0;
}

int vhca_query_gid(struct ib_device *ibdev, u32 port_num, int index,
		   union ib_gid *gid)
{
	if (port_num != VHCA_PORT_NUM || index < 0)
		return -EINVAL;
	return vhca_port_gid(&to_vdev(ibdev)->port, index, gid);
}

int vhca_query_pkey(struct ib_device *ibdev, u32 port_num, u16 index, u16 *pkey)
{
	if (port_num != VHCA_PORT_NUM || index >= VHCA_NUM_PKEYS)
		return -EINVAL;
	*pkey = READ_ONCE(to_vdev(ibdev)->port.pkeys[index]);
	return 0;
}

/* IsSM is set here, by ib_umad when a subnet manager opens issmN. */
int vhca_modify_port(struct ib_device *ibdev, u32 port_num, int mask,
		     struct ib_port_modify *modify)
{
	struct vhca_port *port = &to_vdev(ibdev)->port;
	unsigned long flags;
	u32 old;

	if (port_num != VHCA_PORT_NUM)
		return -EINVAL;
	if (mask & ~(IB_PORT_SHUTDOWN | IB_PORT_INIT_TYPE |
		     IB_PORT_RESET_QKEY_CNTR))
		return -EOPNOTSUPP;
	spin_lock_irqsave(&port->lock, flags);
	if (mask & IB_PORT_RESET_QKEY_CNTR)
		port->qkey_violations = 0;
	old = port->cap_mask;
	port->cap_mask |= modify->set_port_cap_mask;
	port->cap_mask &= ~modify->clr_port_cap_mask;
	old ^= port->cap_mask;
	spin_unlock_irqrestore(&port->lock, flags);
	if (old)
		vhca_sma_local_change(port, 0);
	if (mask & IB_PORT_SHUTDOWN)
		return vhca_port_set_phys(port, IB_PORT_PHYS_STATE_DISABLED);
	return 0;
}
