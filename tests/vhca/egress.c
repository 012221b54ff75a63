// SPDX-License-Identifier: GPL-2.0-only
/*
 * A UD packet leaves its HCA: faults of the link, then the way it goes. And
 * packets that wait: delayed ones, and those made away from any wire.
 */
#include <linux/slab.h>

#include "internal.h"

/* A reordered packet goes after the next one, or when nothing follows. */
#define VHCA_HOLD_NS	NSEC_PER_MSEC

/* A packet that left its work request behind. */
struct vhca_delayed {
	struct vhca_timed timed;
	struct vhca_pkt pkt;
	struct ib_sge sge;
	bool arrives;		/* at this HCA, it does not leave it */
	u8 data[];
};

static void vhca_route(struct vhca_wire *wire, const struct vhca_pkt *pkt)
{
	struct vhca_port *port = &wire->dev->port;

	if (pkt->vl15 ? !vhca_port_link_up(port) : !vhca_port_active(port)) {
		vhca_count(wire->dev, drop_port_down);
	} else if (vhca_pkt_is_mcast(pkt)) {
		/* The HCA's own members, the sender too, get a copy. */
		vhca_mcast_receive(port, pkt);
		vhca_switch_forward(port, pkt);
	} else if (vhca_port_owns_lid(port, pkt->dlid)) {
		vhca_port_deliver(port, pkt);
	} else if (!vhca_switch_forward(port, pkt)) {
		vhca_count(wire->dev, drop_no_route);
	}
	wire->packets++;
}

/* A copy of the packet for that time; NULL: no memory, it is lost. */
static struct vhca_delayed *vhca_postpone(struct vhca_wire *wire,
					  const struct vhca_pkt *pkt,
					  u64 until_ns, bool arrives)
{
	struct vhca_delayed *delayed;

	delayed = kmalloc(struct_size(delayed, data, pkt->length), GFP_KERNEL);
	if (!delayed) {
		vhca_count(wire->dev, drop_no_memory);
		return NULL;
	}
	delayed->arrives = arrives;
	delayed->timed.is_qp = false;
	delayed->timed.queued = false;
	timerqueue_init(&delayed->timed.node);
	delayed->pkt = *pkt;
	delayed->pkt.wire = wire;
	vhca_pkt_copy_out(pkt, 0, delayed->data, pkt->length);
	vhca_pkt_set_payload(&delayed->pkt, &delayed->sge, delayed->data,
			     pkt->length);
	vhca_wire_delay(wire, &delayed->timed, until_ns);
	return delayed;
}

void vhca_delayed_free(struct vhca_wire *wire, struct vhca_timed *timed)
{
	struct vhca_delayed *delayed =
		container_of(timed, struct vhca_delayed, timed);

	if (wire->held == delayed)
		wire->held = NULL;
	kfree(delayed);
}

/* Its time has come. Fabric lock held. */
void vhca_delayed_run(struct vhca_wire *wire, struct vhca_timed *timed)
{
	struct vhca_delayed *delayed =
		container_of(timed, struct vhca_delayed, timed);

	if (delayed->arrives)
		vhca_port_deliver(&wire->dev->port, &delayed->pkt);
	else
		vhca_route(wire, &delayed->pkt);
	vhca_delayed_free(wire, timed);
}

/*
 * A packet for @port that no wire moves, a MAD that an agent sends of its own
 * accord: the port's wire takes it. May sleep, fabric lock held.
 */
void vhca_inject(struct vhca_port *port, const struct vhca_pkt *pkt)
{
	struct vhca_wire *wire = &port->dev->wire;

	if (vhca_postpone(wire, pkt, 0, true))
		wake_up_process(wire->task);
}

/* A packet of the test's own make leaves the port. May sleep. */
void vhca_emit(struct vhca_port *port, const struct vhca_pkt *pkt)
{
	struct vhca_wire *wire = &port->dev->wire;

	if (vhca_postpone(wire, pkt, 0, false))
		wake_up_process(wire->task);
}

static void vhca_egress_faulty(struct vhca_wire *wire,
			       const struct vhca_pkt *pkt)
{
	struct vhca_dev *dev = wire->dev;
	struct vhca_delayed *held;
	u64 now = ktime_get_ns();

	if (vhca_fault_hit(dev, VHCA_FAULT_LOSS)) {
		vhca_count(dev, drop_fault);
		return;
	}
	if (vhca_fault_hit(dev, VHCA_FAULT_DELAY)) {
		vhca_count(dev, fault_delays);
		vhca_postpone(wire, pkt, now + vhca_fault_delay_ns(dev),
			      false);
		return;
	}
	if (!wire->held && vhca_fault_hit(dev, VHCA_FAULT_REORDER)) {
		vhca_count(dev, fault_reorders);
		wire->held = vhca_postpone(wire, pkt, now + VHCA_HOLD_NS, false);
		return;
	}
	vhca_route(wire, pkt);
	if (vhca_fault_hit(dev, VHCA_FAULT_DUPLICATE)) {
		vhca_count(dev, fault_duplicates);
		vhca_route(wire, pkt);
	}
	held = wire->held;
	if (held && vhca_wire_cancel_delay(wire, &held->timed))
		vhca_delayed_run(wire, &held->timed);
}

/* Fabric lock held; the packet and its payload stay valid during the call. */
void vhca_egress(struct vhca_wire *wire, const struct vhca_pkt *pkt)
{
	struct vhca_dev *dev = wire->dev;
	bool mad = pkt->vl15 || pkt->src_qpn <= 1;

	if (mad) {
		vhca_count(dev, mad_tx_packets);
		if (unlikely(vhca_fault_armed(dev, BIT(VHCA_FAULT_SA))) &&
		    vhca_sa_fault(wire, pkt))
			return;
	} else {
		vhca_count(dev, tx_packets);
		vhca_count_n(dev, tx_bytes, pkt->length);
		if (vhca_pkt_is_mcast(pkt))
			vhca_count(dev, tx_mcast_packets);
		if (unlikely(READ_ONCE(dev->tap.left)))
			vhca_tap_take(dev, pkt);
	}
	if (unlikely(vhca_fault_on_link(dev, mad)) || unlikely(wire->held))
		vhca_egress_faulty(wire, pkt);
	else
		vhca_route(wire, pkt);
}
