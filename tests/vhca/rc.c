// SPDX-License-Identifier: GPL-2.0-only
/*
 * RC, the requester: messages in order, cut into packets with PSNs, each one
 * answered at once by the responder, whose queue the wire reaches through
 * memory. What is not answered is sent again after the QP's timeout.
 */
#include "internal.h"

/* RNR NAK timer codes, in units of 10 us (IBA 9.7.5.2.8). */
static const u32 vhca_rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
	384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
	24576, 32768, 49152,
};

/* The message at the head ends with an error, and so does the QP. */
static void vhca_rc_fail(struct vhca_wire *wire, struct vhca_qp *qp,
			 struct vhca_swqe *swqe, enum ib_wc_status status)
{
	vhca_qp_to_error(qp);
	vhca_complete_send(wire, qp, swqe, status);
}

/* No answer: send again after the ACK timeout, 4.096 us * 2^timeout. */
static void vhca_rc_lost(struct vhca_wire *wire, struct vhca_qp *qp)
{
	u8 timeout = qp->attr.timeout;

	if (!timeout) {
		vhca_wire_wait(wire, qp, U64_MAX);
		return;
	}
	/* The last try is waited for, too: its answer may be late. */
	if (!qp->req.retry_left) {
		qp->req.given_up = true;
	} else {
		vhca_count(wire->dev, rc_retries);
		qp->req.retry_left--;
	}
	vhca_wire_wait(wire, qp, ktime_get_ns() + (4096ULL << timeout));
}

static void vhca_rc_rnr(struct vhca_wire *wire, struct vhca_qp *qp,
			struct vhca_swqe *swqe, u8 timer)
{
	vhca_count(wire->dev, rnr_naks_received);
	if (!qp->req.rnr_left) {
		vhca_count(wire->dev, rnr_exhausted);
		vhca_rc_fail(wire, qp, swqe, IB_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	/* 7: for ever */
	if (qp->attr.rnr_retry != 7)
		qp->req.rnr_left--;
	vhca_wire_wait(wire, qp, ktime_get_ns() +
		       vhca_rnr_10us[timer & 31] * 10ULL * NSEC_PER_USEC);
}

static void vhca_rc_give_up(struct vhca_wire *wire, struct vhca_qp *qp,
			    struct vhca_swqe *swqe)
{
	vhca_count(wire->dev, retry_exhausted);
	vhca_rc_fail(wire, qp, swqe, IB_WC_RETRY_EXC_ERR);
}

/* The QP at the other end with a reference, or NULL: nobody answers. */
static struct vhca_qp *vhca_rc_peer(struct vhca_qp *qp)
{
	struct vhca_port *src = &qp->dev->port, *dst;
	struct vhca_qp *peer;

	if (!vhca_port_active(src)) {
		vhca_count(qp->dev, drop_port_down);
		return NULL;
	}
	dst = vhca_port_owns_lid(src, qp->av.dlid) ?
	      src : vhca_switch_route(src, qp->av.dlid);
	if (!dst) {
		vhca_count(qp->dev, drop_no_route);
		return NULL;
	}
	if (!vhca_port_active(dst)) {
		vhca_count(dst->dev, drop_port_down);
		return NULL;
	}
	peer = vhca_qp_get(dst->dev, qp->attr.dest_qp_num);
	if (!peer)
		vhca_count(dst->dev, drop_no_qp);
	return peer;
}

/* The peer's rx_mutex is held: is it the other end of this connection? */
static bool vhca_rc_peer_ok(struct vhca_qp *qp, struct vhca_qp *peer)
{
	struct vhca_dev *pdev = peer->dev;
	u16 pkey = READ_ONCE(qp->dev->port.pkeys[qp->attr.pkey_index]);

	if (peer->ibqp.qp_type != IB_QPT_RC) {
		vhca_count(pdev, drop_qp_type);
		return false;
	}
	if ((peer->state != IB_QPS_RTR && peer->state != IB_QPS_RTS &&
	     peer->state != IB_QPS_SQD) ||
	    test_bit(VHCA_QP_ERR_ASKED, &peer->flags) ||
	    peer->attr.dest_qp_num != qp->qpn ||
	    !vhca_port_owns_lid(&qp->dev->port, peer->av.dlid)) {
		vhca_count(pdev, drop_qp_state);
		return false;
	}
	if (!vhca_pkey_match(pkey, READ_ONCE(pdev->port.pkeys[peer->attr.pkey_index]))) {
		vhca_count(pdev, drop_pkey);
		return false;
	}
	return true;
}

/* One packet to the peer, with the faults of the link. */
static enum vhca_rc_verdict vhca_rc_packet(struct vhca_wire *wire,
					   struct vhca_qp *peer,
					   struct vhca_rc_pkt *pkt)
{
	struct vhca_dev *dev = wire->dev;
	enum vhca_rc_verdict verdict;

	vhca_count(dev, tx_packets);
	vhca_count_n(dev, tx_bytes, pkt->length);
	wire->packets++;
	if (likely(!vhca_fault_on_link(dev, false)))
		return vhca_rc_receive(wire, peer, pkt);

	if (vhca_fault_hit(dev, VHCA_FAULT_LOSS)) {
		vhca_count(dev, drop_fault);
		return VHCA_RC_LOST;
	}
	if (vhca_fault_hit(dev, VHCA_FAULT_REORDER)) {
		/* The one behind it is there first. */
		vhca_count(dev, fault_reorders);
		pkt->psn = (pkt->psn + 1) & VHCA_PSN_MASK;
		return vhca_rc_receive(wire, peer, pkt);
	}
	verdict = vhca_rc_receive(wire, peer, pkt);
	if (verdict == VHCA_RC_ACK &&
	    vhca_fault_hit(dev, VHCA_FAULT_DUPLICATE)) {
		vhca_count(dev, fault_duplicates);
		verdict = vhca_rc_receive(wire, peer, pkt);
	}
	return verdict;
}

/* The rest of the message, packet by packet, until one is not acknowledged. */
static enum vhca_rc_verdict vhca_rc_message(struct vhca_wire *wire,
					    struct vhca_qp *qp,
					    struct vhca_qp *peer,
					    const struct vhca_swqe *swqe)
{
	struct vhca_rc_req *req = &qp->req;
	enum vhca_rc_verdict verdict;
	struct vhca_rc_pkt pkt = {
		.swqe = swqe,
		.slid = READ_ONCE(qp->dev->port.lid) | qp->av.src_path_bits,
	};

	do {
		pkt.psn = req->psn;
		pkt.src_off = req->offset;
		pkt.length = min(swqe->length - req->offset, qp->mtu_bytes);
		pkt.first = !req->offset;
		pkt.last = req->offset + pkt.length == swqe->length;
		verdict = vhca_rc_packet(wire, peer, &pkt);
		if (verdict != VHCA_RC_ACK)
			return verdict;
		req->psn = (req->psn + 1) & VHCA_PSN_MASK;
		req->offset += pkt.length;
		req->retry_left = qp->attr.retry_cnt;
		req->rnr_left = qp->attr.rnr_retry;
	} while (!pkt.last);
	return VHCA_RC_ACK;
}

/* What the peer said. True: the next message may go. */
static bool vhca_rc_judge(struct vhca_wire *wire, struct vhca_qp *qp,
			  struct vhca_swqe *swqe, enum vhca_rc_verdict verdict,
			  u8 rnr_timer)
{
	switch (verdict) {
	case VHCA_RC_ACK:
		vhca_count(wire->dev, rc_messages);
		qp->req.offset = 0;
		vhca_complete_send(wire, qp, swqe, IB_WC_SUCCESS);
		return !test_bit(VHCA_QP_ERR_ASKED, &qp->flags);
	case VHCA_RC_LOST:
		vhca_rc_lost(wire, qp);
		return false;
	case VHCA_RC_RNR:
		vhca_rc_rnr(wire, qp, swqe, rnr_timer);
		return false;
	case VHCA_RC_SEQ:
		vhca_count(wire->dev, rc_seq_naks);
		if (!qp->req.retry_left) {
			vhca_rc_give_up(wire, qp, swqe);
			return false;
		}
		qp->req.retry_left--;
		vhca_count(wire->dev, rc_retries);
		return true;
	case VHCA_RC_INV_REQ:
		vhca_rc_fail(wire, qp, swqe, IB_WC_REM_INV_REQ_ERR);
		return false;
	case VHCA_RC_ACCESS:
		vhca_rc_fail(wire, qp, swqe, IB_WC_REM_ACCESS_ERR);
		return false;
	case VHCA_RC_OP_ERR:
		vhca_rc_fail(wire, qp, swqe, IB_WC_REM_OP_ERR);
		return false;
	}
	return false;
}

/* The message at the head of the queue. True: go on with the next one. */
static bool vhca_rc_send(struct vhca_wire *wire, struct vhca_qp *qp,
			 struct vhca_swqe *swqe)
{
	enum vhca_rc_verdict verdict = VHCA_RC_LOST;
	struct vhca_dev *dev = wire->dev;
	struct vhca_qp *peer;
	u8 rnr_timer = 0;

	if (unlikely(swqe->due_ns) && ktime_get_ns() < swqe->due_ns) {
		vhca_count(dev, fault_delays);
		vhca_wire_wait(wire, qp, swqe->due_ns);
		swqe->due_ns = 0;
		return false;
	}
	if (qp->req.given_up) {
		vhca_rc_give_up(wire, qp, swqe);
		return false;
	}
	if (!vhca_sges_ok(qp->ibqp.pd, swqe->sge, swqe->num_sge, false)) {
		vhca_rc_fail(wire, qp, swqe, IB_WC_LOC_PROT_ERR);
		return false;
	}
	if (unlikely(vhca_fault_hit(dev, VHCA_FAULT_CQE))) {
		vhca_count(dev, fault_cqe);
		vhca_rc_fail(wire, qp, swqe, vhca_fault_cqe_status(dev));
		return false;
	}
	peer = vhca_rc_peer(qp);
	if (peer) {
		mutex_lock(&peer->rx_mutex);
		if (vhca_rc_peer_ok(qp, peer)) {
			verdict = vhca_rc_message(wire, qp, peer, swqe);
			rnr_timer = peer->attr.min_rnr_timer;
		}
		mutex_unlock(&peer->rx_mutex);
		vhca_qp_put(peer);
	}
	return vhca_rc_judge(wire, qp, swqe, verdict, rnr_timer);
}

/* On the wire, tx_mutex held, state RTS. */
void vhca_rc_run(struct vhca_wire *wire, struct vhca_qp *qp)
{
	struct vhca_swqe *swqe;

	while (wire->packets < vhca_wire_batch &&
	       (swqe = vhca_sq_next(&qp->sq)))
		if (!vhca_rc_send(wire, qp, swqe))
			return;
}
