/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vhca: software InfiniBand HCAs on a virtual switch.
 *
 * This header holds the structures and the seams between the files of the
 * module. Wire formats come from the InfiniBand Architecture Specification
 * (IBTA, volume 1); the verbs side follows include/rdma/ib_verbs.h.
 *
 * Contexts
 *   Each HCA has one kernel thread, its "wire". The wire takes work requests
 *   off the queues, moves the bytes and makes every completion, flushes too.
 *   post_send() and post_recv() only queue: their callers hold spinlocks with
 *   interrupts off. CQ events run in a BH work item on the CPU of the CQ's
 *   completion vector.
 *
 * Order of locks, outermost first
 *   1. vhca_fabric_rwsem  (per-CPU rwsem; the wire holds it for reading while
 *                          it moves packets, attach and detach write)
 *   2. vhca_qp.tx_mutex   (sender)
 *   3. vhca_qp.rx_mutex   (receiver; never two of them at a time; modify_qp
 *                          takes tx_mutex and then rx_mutex of one QP);
 *      vhca_tap.lock, a leaf
 *   4. spinlocks, interrupts off, in this order:
 *      vhca_port.link_lock, the SA's sa_lock, the switch's vhca_sw.lock,
 *      vhca_port.lock, the registry's lid_lock
 *      vhca_qp.sq.lock, vhca_qp.rq.lock
 *      leaves, nothing is taken inside them: vhca_dev.mcast_lock,
 *      xa_lock(vhca_dev.qps), xa_lock(vhca_dev.mrs), vhca_srq.rq.lock,
 *      vhca_wire.lock, vhca_cq.lock, vhca_faults.lock
 *   No handler of a consumer runs with one of these held: CQ events run in BH
 *   work items, events of QPs, SRQs and CQs in process work items, port events
 *   in ib_core's.
 */
#ifndef VHCA_H
#define VHCA_H

#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu-rwsem.h>
#include <linux/spinlock.h>
#include <linux/timerqueue.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "faults.h"
#include "mad.h"
#include "stats.h"

#define VHCA_MAX_HCAS		64
#define VHCA_PORT_NUM		1
#define VHCA_NUM_GUIDS		8	/* one GUIDInfo block */
#define VHCA_NUM_PKEYS		64	/* two P_KeyTable blocks */
#define VHCA_NUM_VFS		2
#define VHCA_NUM_VLS		1	/* data VLs beside VL15 */
#define VHCA_LINK_WIDTH		IB_WIDTH_4X
#define VHCA_LINK_SPEED		IB_SPEED_QDR
#define VHCA_LINK_RATE		IB_RATE_40_GBPS
#define VHCA_GRH_BYTES		40
#define VHCA_UNICAST_LIDS	0xc000	/* LIDs from here on are multicast */
#define VHCA_MAX_MSG		(1U << 30)
#define VHCA_MAX_SGE		32
#define VHCA_MAX_QP_WR		16384
#define VHCA_MAX_CQE		(1 << 17)
#define VHCA_MAX_LSO_HDR	256
#define VHCA_PSN_MASK		0xffffff
#define VHCA_QPN_MASK		0xffffff

/*
 * GUIDs: the 24 bits of vhca_oui, eight bits for the role, and the number of
 * the HCA plus one in the low 32 bits. The switch is index VHCA_MAX_HCAS.
 */
#define VHCA_OUI		0x02c0dd	/* locally administered */
#define VHCA_PART_ID		1
#define VHCA_SWITCH_PART_ID	2

enum vhca_guid_role { VHCA_GUID_NODE, VHCA_GUID_PORT, VHCA_GUID_SYSTEM };
__be64 vhca_guid(unsigned int index, enum vhca_guid_role role);

/*
 * A module that manages itself gives HCA i the LID VHCA_MANAGED_LID + i and
 * the SM LID of the port itself: every HCA answers the SA queries that reach
 * it, so no HCA depends on another one. The switch's port 0 has VHCA_SWITCH_LID.
 */
#define VHCA_SWITCH_LID		1
#define VHCA_MANAGED_LID	2

struct vhca_dev;
struct vhca_qp;
struct vhca_wire;

/* ---- module parameters (main.c) ------------------------------------------ */

extern unsigned int vhca_hcas;
extern unsigned int vhca_oui;		/* also the vendor ID */
extern bool vhca_managed;
extern unsigned int vhca_mtu;		/* 2048 or 4096: the port's MTU capability */
extern unsigned int vhca_wire_batch;
extern unsigned int vhca_doorbell_ns;
extern unsigned int vhca_max_srq;
extern unsigned int vhca_max_sge;
extern unsigned int vhca_comp_vectors;
extern bool vhca_csum;
extern bool vhca_tso;
extern unsigned short vhca_pkeys[VHCA_NUM_PKEYS];
extern unsigned int vhca_num_pkeys;

/* vhca_mtu as an enum ib_mtu. */
enum ib_mtu vhca_mtu_enum(void);

/* ---- port ---------------------------------------------------------------- */

/*
 * The one port of an HCA. @lock guards every field but @dev, and is taken by
 * the vhca_port_set_*() functions; single fields may be read without it by
 * READ_ONCE(). Write them only through the vhca_port_set_*() functions, which
 * dispatch the verbs event that a change asks for. @sma is the SMA's own.
 */
struct vhca_port {
	struct vhca_dev *dev;
	spinlock_t lock;
	u16 lid;
	u16 sm_lid;
	u8 lmc;
	u8 sm_sl;
	u8 state;		/* enum ib_port_state */
	u8 phys_state;		/* enum ib_port_phys_state */
	u8 active_mtu;		/* enum ib_mtu */
	u8 subnet_timeout;
	/* The link is up while all of these want it (under link_lock). */
	spinlock_t link_lock;
	u8 phys_admin;		/* enum ib_port_phys_state: POLLING wants it */
	bool cable;		/* false: cut by a fault */
	bool peer;		/* the switch's end is enabled */
	bool on_switch;
	bool registered;	/* ib_core may be told of events */
	bool leaving;		/* takes no request of the fabric any more */
	__be64 gid_prefix;
	__be64 guids[VHCA_NUM_GUIDS];	/* [0] is the port GUID, never written */
	u16 pkeys[VHCA_NUM_PKEYS];
	u32 cap_mask;		/* enum ib_port_capability_mask_bits */
	u16 qkey_violations;
	u16 pkey_violations;
	struct vhca_sma sma;
};

static inline bool vhca_port_owns_lid(const struct vhca_port *port, u16 lid)
{
	u16 base = READ_ONCE(port->lid);
	u8 lmc = READ_ONCE(port->lmc);

	return base && (lid & ~((1U << lmc) - 1)) == base;
}

static inline bool vhca_port_active(const struct vhca_port *port)
{
	return READ_ONCE(port->state) == IB_PORT_ACTIVE;
}

static inline bool vhca_port_link_up(const struct vhca_port *port)
{
	return READ_ONCE(port->phys_state) == IB_PORT_PHYS_STATE_LINK_UP;
}

/*
 * Setters (port.c). Each may be called from any context that may take a
 * spinlock; none sleeps. Each compares first: an equal value raises no event.
 * ib_dispatch_event() hands the event to a work queue of ib_core, which
 * refreshes the core's cache before it tells the clients.
 *
 * set_state: PORT_ACTIVE on the way into ACTIVE, PORT_ERR on the way out.
 *   Returns -EINVAL, and changes nothing, for a step that IBA 14.2.5.6 does
 *   not allow (only DOWN, INIT->ARMED, ARMED->ACTIVE may be asked for; a DOWN
 *   while the cable is plugged ends in INIT at once, as link training does).
 * set_phys: enum ib_port_phys_state as PortInfo writes it. DISABLED and SLEEP
 *   take the link down and hold it; POLLING trains it again. vhca_switch_link()
 *   is called for each change of the link.
 * set_lid: LID_CHANGE; also moves the entry in the registry.
 * set_sm: SM_CHANGE. set_gid_prefix, set_guid (index 1..7): GID_CHANGE.
 * set_pkeys: writes @n entries from @first; one PKEY_CHANGE for all of them.
 * reregister: CLIENT_REREGISTER.
 * set_mtu: the active (neighbour) MTU, no event.
 */
int vhca_port_set_state(struct vhca_port *port, enum ib_port_state state);
int vhca_port_set_phys(struct vhca_port *port, enum ib_port_phys_state phys);
void vhca_port_set_lid(struct vhca_port *port, u16 lid, u8 lmc);
void vhca_port_set_sm(struct vhca_port *port, u16 sm_lid, u8 sm_sl);
void vhca_port_set_gid_prefix(struct vhca_port *port, __be64 prefix);
int vhca_port_set_guid(struct vhca_port *port, unsigned int index, __be64 guid);
int vhca_port_set_pkeys(struct vhca_port *port, unsigned int first,
			const u16 *pkeys, unsigned int n);
void vhca_port_set_mtu(struct vhca_port *port, enum ib_mtu mtu);
void vhca_port_set_subnet_timeout(struct vhca_port *port, u8 timeout);
void vhca_port_reregister(struct vhca_port *port);

/* Pulls (false) or plugs (true) the cable, as the port fault does. */
void vhca_port_set_cable(struct vhca_port *port, bool plugged);

/*
 * For the switch, when a subnet manager disables (false) or enables its end of
 * the link, or sets its PortState to DOWN (retrain). They call
 * vhca_switch_link(): no lock that it takes may be held. No sleep.
 */
void vhca_port_set_peer(struct vhca_port *port, bool enabled);
void vhca_port_retrain(struct vhca_port *port);

/* Copies a consistent GID (prefix and GUID) of the port's table. */
int vhca_port_gid(struct vhca_port *port, unsigned int index, union ib_gid *gid);

void vhca_port_init(struct vhca_port *port, struct vhca_dev *dev);
/* The HCA is on the switch: trains the link; managed: to ACTIVE. */
void vhca_port_start(struct vhca_port *port);
void vhca_port_leave(struct vhca_port *port);
void vhca_port_mute(struct vhca_port *port);
void vhca_port_stop(struct vhca_port *port);

/*
 * P_Key rules (IBA 10.9.3): equal low 15 bits, not both limited, not 0.
 * vhca_port_find_pkey returns the index of a matching entry or -1.
 */
bool vhca_pkey_match(u16 a, u16 b);
int vhca_port_find_pkey(struct vhca_port *port, u16 pkey);

/* ---- registry of ports (registry.c) --------------------------------------- */

/*
 * Who is on the fabric. All look-ups need the fabric lock for reading:
 *   - vhca_switch_forward(), vhca_switch_route(), vhca_switch_link() and what
 *     the switch calls back run with it held: do not take it again there (a
 *     waiting writer would deadlock);
 *   - process_mad, the SA and debugfs run without it: take it there.
 * The port stays valid for as long as the lock is held. The lock sleeps.
 */
extern struct percpu_rw_semaphore vhca_fabric_rwsem;

static inline void vhca_fabric_read_lock(void)
{
	percpu_down_read(&vhca_fabric_rwsem);
}

static inline void vhca_fabric_read_unlock(void)
{
	percpu_up_read(&vhca_fabric_rwsem);
}

struct vhca_port *vhca_port_by_index(unsigned int index);	/* HCA number */
struct vhca_port *vhca_port_by_lid(u16 lid);			/* LMC honoured */
struct vhca_port *vhca_port_by_guid(__be64 port_guid);	/* any of its GUIDs */
bool vhca_port_has_guid(struct vhca_port *port, __be64 guid);

#define vhca_for_each_port(i, port)					\
	for ((i) = 0; (i) < VHCA_MAX_HCAS; (i)++)			\
		if (((port) = vhca_port_by_index(i)))

int vhca_registry_init(void);
void vhca_registry_exit(void);
void vhca_registry_barrier(void);
int vhca_registry_attach(struct vhca_dev *dev);
void vhca_registry_detach(struct vhca_dev *dev);
void vhca_registry_move_lid(struct vhca_port *port, u16 old_lid, u8 old_lmc);

/* ---- packets --------------------------------------------------------------- */

/*
 * One packet on the wire. The payload is @length bytes described by @sg, whose
 * addresses are kernel pointers; it does not include the GRH. The packet and
 * what it points to belong to the caller and are only valid during the call:
 * who keeps a packet copies it (vhca_pkt_copy_out).
 */
struct vhca_pkt {
	/* LRH */
	u16 slid;
	u16 dlid;		/* 0xffff: permissive */
	u8 sl;
	/* BTH, DETH */
	u8 has_grh:1;
	u8 has_imm:1;
	u8 solicited:1;
	u8 vl15:1;		/* an SMP: moves on any link that is up */
	u8 csum_ok:1;		/* the sending HCA filled the checksums in */
	u16 pkey;
	u32 src_qpn;
	u32 dst_qpn;		/* 0xffffff: multicast */
	u32 qkey;
	__be32 imm;
	/* payload */
	u32 length;
	u32 num_sge;
	const struct ib_sge *sg;
	/* The thread that moves it; copies keep it. NULL: sent from elsewhere. */
	struct vhca_wire *wire;
	struct ib_grh grh;	/* valid if has_grh */
};

#define VHCA_MCAST_QPN	0xffffff
#define VHCA_PERMISSIVE_LID	0xffff

static inline bool vhca_pkt_is_mcast(const struct vhca_pkt *pkt)
{
	return pkt->dlid >= VHCA_UNICAST_LIDS &&
	       pkt->dlid != VHCA_PERMISSIVE_LID;
}

/* Copies @len payload bytes from @off; returns the number copied. */
u32 vhca_pkt_copy_out(const struct vhca_pkt *pkt, u32 off, void *buf, u32 len);

/*
 * Makes @pkt carry @len bytes at @buf instead of its own payload; @sge is the
 * caller's and must live as long as the packet. For agents that edit or answer
 * a MAD: copy the packet, copy the MAD out, edit, set the payload, deliver.
 */
static inline void vhca_pkt_set_payload(struct vhca_pkt *pkt,
					struct ib_sge *sge, void *buf, u32 len)
{
	sge->addr = (uintptr_t)buf;
	sge->length = len;
	sge->lkey = 0;
	pkt->sg = sge;
	pkt->num_sge = 1;
	pkt->length = len;
}

/*
 * A packet arrives at @dst from the switch (recv.c): P_Key, Q_Key, state and
 * GRH rules, then a copy into the receive buffer and a CQE; multicast goes to
 * each attached QP. Drops are counted on @dst's HCA. Fabric lock held.
 * A packet for a port that is not ACTIVE is dropped unless it is vl15.
 */
void vhca_port_deliver(struct vhca_port *dst, const struct vhca_pkt *pkt);

/* ---- seam: subnet management agent (sma.c, pma.c, sa.c) ----------------------- */

/* ops.process_mad. May sleep. Fabric lock not held. */
int vhca_process_mad(struct ib_device *ibdev, int mad_flags, u32 port_num,
		     const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		     const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index);

/* Resets port->sma; called before the device is registered. */
void vhca_sma_init(struct vhca_port *port);

/*
 * State of the SA that answers when vhca_managed: groups and members.
 * forget_port: the port leaves the fabric (fabric lock held for writing): its
 * memberships end. Links that go down are told by vhca_switch_link().
 */
int vhca_sa_init(void);
void vhca_sa_exit(void);
void vhca_sa_forget_port(struct vhca_port *port);

/* ---- seam: the virtual switch (switch.c) ---------------------------------------- */

/* May sleep; fabric lock not held. */
int vhca_switch_init(void);
void vhca_switch_exit(void);

/*
 * Plugs the HCA's port into a free switch port, or pulls it. May sleep. Fabric
 * lock held for writing, so no packet is under way. The link is still down on
 * attach; vhca_switch_link() follows.
 */
int vhca_switch_attach(struct vhca_dev *dev);
void vhca_switch_detach(struct vhca_dev *dev);

/*
 * The link of @port went up or down. Must not sleep: called with interrupts off
 * and port->link_lock held (not port->lock), in the order of the changes. The
 * fabric lock may or may not be held, so it must not be needed: use only what
 * attach() recorded for @port. It must not call the port's setters.
 */
void vhca_switch_link(struct vhca_port *port, bool up);

/*
 * A packet leaves @src (state and egress faults have been dealt with; local
 * copies of multicast and packets for the port's own LIDs have been delivered
 * inside the HCA). Calls vhca_port_deliver() for each port that gets it, never
 * for @src itself, unless an SMP is answered or returned to it. Multicast:
 * by MFT when a subnet manager manages, else to every other port (the HCA
 * filters by attachment). Returns the number of ports delivered to; 0 counts
 * as drop_no_route on @src. Packets for the switch's own port 0 count as one.
 * Runs on the wire of @src: may sleep, fabric lock held for reading.
 */
unsigned int vhca_switch_forward(struct vhca_port *src,
				 const struct vhca_pkt *pkt);

/*
 * The port that unicast LID @dlid leads to from @src, or NULL. RC uses it for
 * each message. Never sleeps. Fabric lock held for reading. A route back to
 * @src itself is not asked for.
 */
struct vhca_port *vhca_switch_route(struct vhca_port *src, u16 dlid);

/* ---- objects of the verbs ---------------------------------------------------- */

/* Address vector: what an ib_ah or an RC path holds. */
struct vhca_av {
	u16 dlid;
	u8 sl;
	u8 src_path_bits;
	u8 static_rate;
	bool has_grh;
	u8 sgid_index;
	u8 hop_limit;
	u8 traffic_class;
	u32 flow_label;
	union ib_gid dgid;
};

struct vhca_ah {
	struct ib_ah ibah;
	struct vhca_av av;
};

/* Events of one object, told to its consumer from a work item (event.c). */
enum vhca_event_kind { VHCA_EV_QP, VHCA_EV_CQ, VHCA_EV_SRQ };

struct vhca_events {
	struct ib_device *device;
	enum vhca_event_kind kind;
	void *object;
	unsigned long pending;	/* bit: enum ib_event_type */
	struct work_struct work;
};

struct vhca_pd {
	struct ib_pd ibpd;
	u32 lkey;		/* of the PD's first writable MR; 0: none */
};

struct vhca_mr {
	struct ib_mr ibmr;
	int access;
};

struct vhca_ucontext {
	struct ib_ucontext ibuc;
};

struct vhca_cqe {
	struct ib_wc wc;
	u32 sq_retire;		/* send CQE: SQ slots before this index are free */
	bool is_send;
};

enum vhca_cq_arm { VHCA_CQ_IDLE, VHCA_CQ_ARM_SOLICITED, VHCA_CQ_ARM_NEXT };

/*
 * @lock guards the ring and the arm state. @events_raised counts the CQ events
 * that the wire owes, @events_done those whose handler has returned; a QP or
 * CQ is only freed once they are equal for what it raised.
 */
struct vhca_cq {
	struct ib_cq ibcq;
	struct vhca_dev *dev;
	spinlock_t lock;
	struct vhca_cqe *ring;
	u32 size;
	u32 head;		/* next to poll */
	u32 tail;		/* next to fill */
	enum vhca_cq_arm arm;
	bool error;		/* overrun: takes no CQE any more */
	bool mad;		/* of a management QP */
	bool event_pending;	/* raised, its handler not yet called */
	bool mod_waiting;	/* moderation holds the event back */
	u16 mod_count;		/* CQ moderation: CQEs per event */
	u16 mod_period;		/* microseconds, 0: off */
	u32 mod_seen;		/* CQEs since the event became pending */
	u64 events_raised;
	u64 events_done;
	wait_queue_head_t wait;
	struct list_head event_node;	/* vhca_wire.events, of the raising wire */
	struct hrtimer mod_timer;
	struct work_struct event_work;
	struct vhca_events events;
	int vector;
};

struct vhca_rwqe {
	u64 wr_id;
	u32 num_sge;
	u32 length;
	struct ib_sge sge[];
};

/* A ring of receive WQEs: of a QP, or of an SRQ. */
struct vhca_rq {
	spinlock_t lock;
	void *ring;
	u32 stride;
	u32 slots;		/* power of two, at least max_wr */
	u32 max_wr;
	u32 max_sge;
	u32 head;		/* next to fill */
	u32 tail;		/* next to take */
};

struct vhca_srq {
	struct ib_srq ibsrq;
	struct vhca_dev *dev;
	struct vhca_rq rq;
	u32 limit;		/* under rq.lock; 0: not armed */
	struct vhca_events events;
};

struct vhca_swqe {
	u64 wr_id;
	u64 due_ns;		/* delay fault: not before, CLOCK_MONOTONIC */
	u32 opcode;		/* enum ib_wr_opcode */
	u32 flags;		/* enum ib_send_flags */
	u32 length;
	u32 num_sge;
	__be32 imm;
	/* UD */
	u32 remote_qpn;
	u32 qkey;
	u16 pkey_index;
	u16 hlen;		/* LSO */
	u16 mss;
	struct vhca_av av;
	u8 *hdr;		/* LSO: the header copied at post time */
	struct ib_sge sge[];
};

/*
 * Ring of send WQEs; indices run freely. retired <= exec <= head. A slot is
 * free once a CQE of its WR, or of a later one, has been polled: what an
 * unsignalled WR costs on real HCAs.
 */
struct vhca_sq {
	spinlock_t lock;
	void *ring;
	u32 stride;
	u32 slots;		/* power of two, at least max_wr */
	u32 max_wr;
	u32 max_sge;
	u32 head;		/* next to fill */
	u32 exec;		/* next to execute, under tx_mutex */
	u32 retired;		/* oldest that is not free, under send_cq's lock */
};

/* Something the wire must look at when a time has come. */
struct vhca_timed {
	struct timerqueue_node node;
	bool queued;
	bool is_qp;		/* else a delayed packet */
};

enum vhca_qp_flags {
	VHCA_QP_SCHED,		/* on the wire's run list; holds a reference */
	VHCA_QP_ERR_ASKED,	/* move to ERR on the wire */
	VHCA_QP_LAST_WQE,	/* LAST_WQE_REACHED has been raised */
	VHCA_QP_COMM_EST,	/* COMM_EST has been raised */
	VHCA_QP_DEAD,		/* destroy_qp has begun */
};

/* Requester side of RC, under tx_mutex. */
struct vhca_rc_req {
	u32 psn;		/* of the next packet that was never acknowledged */
	u32 offset;		/* bytes of the current message acknowledged */
	u8 retry_left;
	u8 rnr_left;
	bool given_up;		/* the timeout that runs is the last one */
	bool waiting;		/* until @resume_ns */
	u64 resume_ns;		/* CLOCK_MONOTONIC; U64_MAX: for ever */
};

/* Responder side of RC, under rx_mutex. */
struct vhca_rc_resp {
	u32 psn;		/* expected */
	bool in_message;
	u32 offset;		/* bytes of the current message received */
	struct vhca_rwqe *rwqe;	/* the message's receive WQE, copied */
	bool have_rwqe;
};

/*
 * State changes hold tx_mutex, rx_mutex, sq.lock and rq.lock: who holds one of
 * them may read @state.
 */
struct vhca_qp {
	struct ib_qp ibqp;
	struct vhca_dev *dev;
	u32 qpn;
	enum ib_qp_state state;
	unsigned long flags;
	bool sig_all;
	refcount_t refs;
	struct completion released;

	struct mutex tx_mutex;
	struct vhca_sq sq;
	struct vhca_rc_req req;

	struct mutex rx_mutex;
	struct vhca_rq rq;	/* unused with an SRQ */
	struct vhca_rc_resp resp;

	struct list_head run_node;	/* vhca_wire.run */
	struct vhca_timed timed;	/* holds a reference while queued */
	struct vhca_events events;

	/* Attributes, written under both mutexes. */
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	struct vhca_av av;		/* RC */
	u32 mtu_bytes;			/* RC path MTU */
};

/*
 * The thread of an HCA. @lock guards @run and @timers; the rest belongs to the
 * thread.
 */
struct vhca_wire {
	struct vhca_dev *dev;
	spinlock_t lock;
	struct list_head run;		/* QPs with work, in turn */
	struct timerqueue_head timers;	/* vhca_timed: QPs, delayed packets */
	struct task_struct *task;
	struct list_head events;	/* CQs whose event is owed */
	unsigned int packets;		/* moved since events were last raised */
	struct vhca_delayed *held;	/* reorder fault: goes after the next */
	u8 *scratch;			/* LSO headers, checksummed heads */
};

/* What leaves the HCA, kept for who reads it (tap.c). */
struct vhca_tap {
	struct mutex lock;	/* a leaf */
	struct list_head frames;
	u32 left;		/* frames still to keep; READ_ONCE() without @lock */
};

/* What was set for a virtual function; RTNL is held by who sets it. */
struct vhca_vf {
	u64 node_guid;
	u64 port_guid;
	int link_state;
};

struct vhca_dev {
	struct ib_device ibdev;
	struct platform_device *pdev;
	unsigned int index;
	struct vhca_port port;
	struct xarray qps;		/* QPN -> vhca_qp, 0 and 1 included */
	u32 next_qpn;
	struct xarray mrs;		/* lkey >> 8 -> vhca_mr */
	u32 next_mr;
	atomic_t num_srqs;
	spinlock_t mcast_lock;
	struct list_head mcast;		/* attached QPs (mcast.c) */
	struct vhca_wire wire;
	struct vhca_counters __percpu *counters;
	struct vhca_counters *counters_base;	/* subtracted: the last reset */
	struct vhca_faults faults;
	struct vhca_tap tap;
	struct vhca_vf vfs[VHCA_NUM_VFS];
	struct dentry *debugfs;
	bool attached;
};

#define VHCA_CAST(type, name)						\
static inline struct vhca_##type *to_v##type(struct ib_##type *p)	\
{									\
	return container_of(p, struct vhca_##type, name);		\
}
VHCA_CAST(ah, ibah)
VHCA_CAST(pd, ibpd)
VHCA_CAST(mr, ibmr)
VHCA_CAST(cq, ibcq)
VHCA_CAST(srq, ibsrq)
VHCA_CAST(qp, ibqp)
#undef VHCA_CAST

static inline struct vhca_dev *to_vdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct vhca_dev, ibdev);
}

/* Exported for selftest/ (device.c). */
int vhca_test_fault(struct ib_device *ibdev, const char *name,
		    const char *value);
long long vhca_test_stat(struct ib_device *ibdev, const char *name);

#endif /* VHCA_H */
