// SPDX-License-Identifier: GPL-2.0-only
/*
 * Traps (IBA 13.4.9, 14.2.5.1): notices that a port of the switch changed its
 * state (128) or that something local to a CA port changed (144). Each is sent
 * to the SM of its port, and again until the SM represses it or TRIES are used
 * up: an SM that is away finds PortStateChange, or sweeps, when it is back.
 * There is no trap in managed mode: nobody listens.
 */
#include "vhca.h"

#define TRIES		5
#define INTERVAL	msecs_to_jiffies(1000)
#define TRAP_LINK_STATE	128	/* IBA 14.2.5.1, table "traps" */
#define SWITCH_SLOT	VHCA_MAX_HCAS

struct trap {
	u8 tries;		/* left; 0: nothing to send */
	__be64 tid;
	u8 flags;		/* 144: what changed; 0: the capability mask */
};

/* One slot per CA port, by HCA number, and the switch's. */
static struct trap traps[VHCA_MAX_HCAS + 1];
static DEFINE_SPINLOCK(trap_lock);
static u64 next_tid;

static void trap_send_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(trap_work, trap_send_work);
static struct workqueue_struct *trap_wq;

static void fill_switch_notice(struct ib_mad_notice_attr *notice)
{
	__be16 lid = cpu_to_be16(vhca_switch_lid());

	notice->generic_type = IB_NOTICE_TYPE_URGENT;
	notice->prod_type_lsb = IB_NOTICE_PROD_SWITCH;
	notice->trap_num = cpu_to_be16(TRAP_LINK_STATE);
	notice->issuer_lid = lid;
	/* Trap 128 has the LID first; the header has no structure for it. */
	memcpy(notice->details.raw_data.details, &lid, sizeof(lid));
}

static void fill_ca_notice(struct ib_mad_notice_attr *notice,
			   struct vhca_port *port, u8 flags)
{
	notice->generic_type = IB_NOTICE_TYPE_INFO;
	notice->prod_type_lsb = IB_NOTICE_PROD_CA;
	notice->trap_num = IB_NOTICE_TRAP_CAP_MASK_CHG;
	notice->issuer_lid = cpu_to_be16(port->lid);
	notice->details.ntc_144.lid = notice->issuer_lid;
	notice->details.ntc_144.local_changes = flags ? 1 : 0;
	notice->details.ntc_144.new_cap_mask = cpu_to_be32(port->cap_mask);
	notice->details.ntc_144.change_flags = flags;
}

/* @port is NULL for the switch. Fabric lock held for reading. */
static void send_trap(struct vhca_port *port, const struct trap *trap)
{
	struct ib_smp smp __aligned(8) = {
		.base_version = IB_MGMT_BASE_VERSION,
		.mgmt_class = IB_MGMT_CLASS_SUBN_LID_ROUTED,
		.class_version = 1,
		.method = IB_MGMT_METHOD_TRAP,
		.tid = trap->tid,
		.attr_id = IB_SMP_ATTR_NOTICE,
	};
	struct ib_mad_notice_attr *notice = (void *)smp.data;
	u16 sm_lid;

	BUILD_BUG_ON(sizeof(*notice) != sizeof(smp.data));
	if (port) {
		sm_lid = READ_ONCE(port->sm_lid);
		smp.mkey = port->sma.m_key;
		fill_ca_notice(notice, port, trap->flags);
	} else {
		sm_lid = vhca_switch_sm_lid(&smp.mkey);
		fill_switch_notice(notice);
	}
	if (sm_lid)
		vhca_mad_send(port, sm_lid, 0, 0, &smp);
}

static void trap_send_work(struct work_struct *work)
{
	bool again = false;
	unsigned int slot;

	vhca_fabric_read_lock();
	for (slot = 0; slot < ARRAY_SIZE(traps); slot++) {
		struct vhca_port *port = NULL;
		struct trap trap;

		spin_lock_irq(&trap_lock);
		trap = traps[slot];
		if (trap.tries && --traps[slot].tries)
			again = true;
		spin_unlock_irq(&trap_lock);
		if (!trap.tries)
			continue;
		if (slot != SWITCH_SLOT) {
			port = vhca_port_by_index(slot);
			if (!port || !vhca_port_link_up(port))
				continue;
		}
		send_trap(port, &trap);
	}
	vhca_fabric_read_unlock();
	if (again)
		queue_delayed_work(trap_wq, &trap_work, INTERVAL);
}

static void raise(unsigned int slot, u8 flags)
{
	unsigned long irq;

	spin_lock_irqsave(&trap_lock, irq);
	traps[slot].tries = TRIES;
	traps[slot].tid = cpu_to_be64(++next_tid);
	traps[slot].flags = flags;
	spin_unlock_irqrestore(&trap_lock, irq);
	mod_delayed_work(trap_wq, &trap_work, 0);
}

void vhca_trap_link_state(void)
{
	raise(SWITCH_SLOT, 0);
}

void vhca_sma_local_change(struct vhca_port *port, u8 flags)
{
	if (!vhca_managed)
		raise(port->dev->index, flags);
}

static void drop(unsigned int slot, bool any, __be64 tid)
{
	unsigned long irq;

	spin_lock_irqsave(&trap_lock, irq);
	if (any || traps[slot].tid == tid)
		traps[slot].tries = 0;
	spin_unlock_irqrestore(&trap_lock, irq);
}

void vhca_trap_forget(struct vhca_port *port)
{
	drop(port->dev->index, true, 0);
}

void vhca_trap_repress(struct vhca_port *port, __be64 tid)
{
	drop(port ? port->dev->index : SWITCH_SLOT, false, tid);
}

int vhca_trap_init(void)
{
	trap_wq = alloc_workqueue("vhca_trap", WQ_UNBOUND, 1);
	if (!trap_wq)
		return -ENOMEM;
	memset(traps, 0, sizeof(traps));
	return 0;
}

void vhca_trap_exit(void)
{
	cancel_delayed_work_sync(&trap_work);
	destroy_workqueue(trap_wq);
}
