// SPDX-License-Identifier: GPL-2.0-only
/* The HCAs on the fabric: found by number, by LID, by GUID. */
#include "internal.h"

/* Not a static one: only percpu_free_rwsem() waits for its RCU callback. */
struct percpu_rw_semaphore vhca_fabric_rwsem;

static struct vhca_dev *vhca_devs[VHCA_MAX_HCAS];

/*
 * Number of the HCA that was given a LID, plus one. A hint: what is found is
 * checked against the port. Written under lid_lock, read by anyone.
 */
static DEFINE_SPINLOCK(vhca_lid_lock);
static u8 vhca_lid_owner[VHCA_UNICAST_LIDS];

int vhca_registry_init(void)
{
	return percpu_init_rwsem(&vhca_fabric_rwsem);
}

void vhca_registry_exit(void)
{
	percpu_free_rwsem(&vhca_fabric_rwsem);
}

struct vhca_port *vhca_port_by_index(unsigned int index)
{
	return vhca_devs[index] ? &vhca_devs[index]->port : NULL;
}

struct vhca_port *vhca_port_by_lid(u16 lid)
{
	struct vhca_port *port;
	u8 owner;

	if (!lid || lid >= VHCA_UNICAST_LIDS)
		return NULL;
	owner = READ_ONCE(vhca_lid_owner[lid]);
	if (!owner || !vhca_devs[owner - 1])
		return NULL;
	port = &vhca_devs[owner - 1]->port;
	return vhca_port_owns_lid(port, lid) ? port : NULL;
}

bool vhca_port_has_guid(struct vhca_port *port, __be64 guid)
{
	unsigned long flags;
	bool found = false;
	int i;

	if (!guid)
		return false;
	spin_lock_irqsave(&port->lock, flags);
	for (i = 0; i < VHCA_NUM_GUIDS; i++)
		found |= port->guids[i] == guid;
	spin_unlock_irqrestore(&port->lock, flags);
	return found;
}

struct vhca_port *vhca_port_by_guid(__be64 port_guid)
{
	struct vhca_port *port;
	unsigned int i;

	vhca_for_each_port(i, port)
		if (vhca_port_has_guid(port, port_guid))
			return port;
	return NULL;
}

static void vhca_lids_put(unsigned int index, u16 lid, u8 lmc)
{
	u32 i;

	for (i = lid; lid && i < lid + (1U << lmc) && i < VHCA_UNICAST_LIDS; i++)
		if (vhca_lid_owner[i] == index + 1)
			WRITE_ONCE(vhca_lid_owner[i], 0);
}

static void vhca_lids_take(unsigned int index, u16 lid, u8 lmc)
{
	u32 i;

	for (i = lid; lid && i < lid + (1U << lmc) && i < VHCA_UNICAST_LIDS; i++)
		WRITE_ONCE(vhca_lid_owner[i], index + 1);
}

/* port->lid and port->lmc hold the new values; port->lock is held. */
void vhca_registry_move_lid(struct vhca_port *port, u16 old_lid, u8 old_lmc)
{
	unsigned int index = port->dev->index;
	unsigned long flags;

	spin_lock_irqsave(&vhca_lid_lock, flags);
	vhca_lids_put(index, old_lid, old_lmc);
	vhca_lids_take(index, port->lid, port->lmc);
	spin_unlock_irqrestore(&vhca_lid_lock, flags);
}

/* No packet that a wire had begun to move before is under way after this. */
void vhca_registry_barrier(void)
{
	percpu_down_write(&vhca_fabric_rwsem);
	percpu_up_write(&vhca_fabric_rwsem);
}

int vhca_registry_attach(struct vhca_dev *dev)
{
	unsigned long flags;
	int ret;

	percpu_down_write(&vhca_fabric_rwsem);
	ret = vhca_switch_attach(dev);
	if (!ret) {
		vhca_devs[dev->index] = dev;
		dev->attached = true;
		spin_lock_irqsave(&vhca_lid_lock, flags);
		vhca_lids_take(dev->index, dev->port.lid, dev->port.lmc);
		spin_unlock_irqrestore(&vhca_lid_lock, flags);
	}
	percpu_up_write(&vhca_fabric_rwsem);
	return ret;
}

void vhca_registry_detach(struct vhca_dev *dev)
{
	unsigned long flags;

	if (!dev->attached)
		return;
	percpu_down_write(&vhca_fabric_rwsem);
	vhca_sa_forget_port(&dev->port);
	vhca_switch_detach(dev);
	vhca_devs[dev->index] = NULL;
	dev->attached = false;
	spin_lock_irqsave(&vhca_lid_lock, flags);
	vhca_lids_put(dev->index, dev->port.lid, dev->port.lmc);
	spin_unlock_irqrestore(&vhca_lid_lock, flags);
	percpu_up_write(&vhca_fabric_rwsem);
}
