// SPDX-License-Identifier: GPL-2.0-only
/* A UD packet arrives at a port: checks, copy, completion. */
#include "internal.h"

static void vhca_violation(struct vhca_port *port, u16 *counter)
{
	unsigned long flags;

	spin_lock_irqsave(&port->lock, flags);
	if (*counter != U16_MAX)
		++*counter;
	spin_unlock_irqrestore(&port->lock, flags);
}

/*
 * P_Key and Q_Key (IBA 10.9.4, 10.2.5). Returns the index of the P_Key that
 * matched, or -1 and counts why.
 */
static int vhca_keys_ok(struct vhca_port *port, struct vhca_qp *qp,
			const struct vhca_pkt *pkt)
{
	int index = qp->attr.pkey_index;

	if (qp->ibqp.qp_type == IB_QPT_SMI)
		return 0;
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		index = vhca_port_find_pkey(port, pkt->pkey);
	else if (!vhca_pkey_match(READ_ONCE(port->pkeys[index]), pkt->pkey))
		index = -1;
	if (index < 0) {
		vhca_count(port->dev, drop_pkey);
		vhca_violation(port, &port->pkey_violations);
		return -1;
	}
	if (pkt->qkey != (qp->ibqp.qp_type == IB_QPT_GSI ? IB_QP1_QKEY :
							   qp->attr.qkey)) {
		vhca_count(port->dev, drop_qkey);
		vhca_violation(port, &port->qkey_violations);
		return -1;
	}
	return index;
}

static bool vhca_qp_receives(struct vhca_qp *qp)
{
	return qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS ||
	       qp->state == IB_QPS_SQD || qp->state == IB_QPS_SQE;
}

static void vhca_fill_wc(struct vhca_port *port, struct ib_wc *wc,
			 const struct vhca_pkt *pkt, int pkey_index)
{
	wc->byte_len = pkt->length + VHCA_GRH_BYTES;
	wc->src_qp = pkt->src_qpn;
	wc->slid = pkt->slid;
	wc->sl = pkt->sl;
	wc->pkey_index = pkey_index;
	if (!vhca_pkt_is_mcast(pkt) && pkt->dlid != VHCA_PERMISSIVE_LID)
		wc->dlid_path_bits = pkt->dlid &
				     ((1U << READ_ONCE(port->lmc)) - 1);
	if (pkt->has_grh)
		wc->wc_flags |= IB_WC_GRH;
	if (pkt->has_imm) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = pkt->imm;
	}
	if (vhca_csum && (pkt->csum_ok || vhca_csum_check(pkt)))
		wc->wc_flags |= IB_WC_IP_CSUM_OK;
}

/* rx_mutex is held, the packet is for this QP: into the oldest receive WR. */
static void vhca_ud_place(struct vhca_port *port, struct vhca_qp *qp,
			  const struct vhca_pkt *pkt, int pkey_index)
{
	struct vhca_rwqe *rwqe = qp->resp.rwqe;
	struct vhca_dev *dev = qp->dev;
	struct ib_sge grh = {
		.addr = (uintptr_t)&pkt->grh,
		.length = sizeof(pkt->grh),
	};
	struct ib_wc wc;

	switch (vhca_rq_take(qp, pkt->length + VHCA_GRH_BYTES, rwqe)) {
	case VHCA_TAKE_EMPTY:
		vhca_count(dev, drop_no_recv_wr);
		return;
	case VHCA_TAKE_TOO_SHORT:
		/* Silently dropped, the WR stays (IBA 9.8.3.1). */
		vhca_count(dev, drop_too_long);
		return;
	case VHCA_TAKE_OK:
		break;
	}
	memset(&wc, 0, sizeof(wc));
	wc.wr_id = rwqe->wr_id;
	if (!vhca_sges_ok(qp->ibqp.srq ? qp->ibqp.srq->pd : qp->ibqp.pd,
			  rwqe->sge, rwqe->num_sge, true)) {
		vhca_count(dev, drop_recv_error);
		wc.status = IB_WC_LOC_PROT_ERR;
	} else if (!vhca_qp_is_mad(qp) &&
		   unlikely(vhca_fault_hit(dev, VHCA_FAULT_CQE_RECV))) {
		vhca_count(dev, fault_cqe);
		wc.status = vhca_fault_cqe_status(dev);
	} else {
		if (pkt->has_grh)
			vhca_copy_sg(rwqe->sge, 0, &grh, 0, VHCA_GRH_BYTES);
		vhca_copy_sg(rwqe->sge, VHCA_GRH_BYTES, pkt->sg, 0,
			     pkt->length);
		vhca_fill_wc(port, &wc, pkt, pkey_index);
		if (vhca_qp_is_mad(qp)) {
			vhca_count(dev, mad_rx_packets);
		} else {
			vhca_count(dev, rx_packets);
			vhca_count_n(dev, rx_bytes, pkt->length);
			if (vhca_pkt_is_mcast(pkt))
				vhca_count(dev, rx_mcast_packets);
		}
	}
	vhca_complete_recv(pkt->wire, qp, &wc, pkt->solicited);
	if (wc.status != IB_WC_SUCCESS)
		vhca_qp_ask_error(qp);
}

static void vhca_ud_receive(struct vhca_port *port, struct vhca_qp *qp,
			    const struct vhca_pkt *pkt)
{
	int pkey_index;

	mutex_lock(&qp->rx_mutex);
	if (qp->ibqp.qp_type == IB_QPT_RC ||
	    (qp->ibqp.qp_type == IB_QPT_SMI) != pkt->vl15) {
		vhca_count(qp->dev, drop_qp_type);
	} else if (!vhca_qp_receives(qp) ||
		   test_bit(VHCA_QP_ERR_ASKED, &qp->flags)) {
		vhca_count(qp->dev, drop_qp_state);
	} else {
		pkey_index = vhca_keys_ok(port, qp, pkt);
		if (pkey_index >= 0)
			vhca_ud_place(port, qp, pkt, pkey_index);
	}
	mutex_unlock(&qp->rx_mutex);
}

/* To each attached QP; returns their number. */
unsigned int vhca_mcast_receive(struct vhca_port *port,
				const struct vhca_pkt *pkt)
{
	unsigned int pos = 0, n = 0;
	struct vhca_qp *qp;

	if (!pkt->has_grh)
		return 0;
	while ((qp = vhca_mcast_next(port->dev, &pkt->grh.dgid, &pos))) {
		vhca_ud_receive(port, qp, pkt);
		vhca_qp_put(qp);
		n++;
	}
	return n;
}

/*
 * A request for the agents of an HCA that will be removed? Its own clients may
 * still ask its own SA.
 */
static bool vhca_too_late(struct vhca_port *port, const struct vhca_pkt *pkt)
{
	struct ib_mad_hdr hdr;

	if (pkt->dst_qpn > 1 ||
	    vhca_pkt_copy_out(pkt, 0, &hdr, sizeof(hdr)) != sizeof(hdr) ||
	    hdr.method & IB_MGMT_METHOD_RESP)
		return false;
	switch (hdr.mgmt_class) {
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
	case IB_MGMT_CLASS_PERF_MGMT:
		return true;
	case IB_MGMT_CLASS_SUBN_ADM:
		return vhca_managed && !vhca_port_owns_lid(port, pkt->slid);
	default:
		return false;
	}
}

void vhca_port_deliver(struct vhca_port *port, const struct vhca_pkt *pkt)
{
	struct vhca_qp *qp;

	if (!pkt->wire) {
		vhca_inject(port, pkt);
		return;
	}
	if ((pkt->vl15 ? !vhca_port_link_up(port) : !vhca_port_active(port)) ||
	    (unlikely(READ_ONCE(port->leaving)) && vhca_too_late(port, pkt))) {
		vhca_count(port->dev, drop_port_down);
		return;
	}
	if (vhca_pkt_is_mcast(pkt)) {
		if (!vhca_mcast_receive(port, pkt))
			vhca_count(port->dev, drop_no_member);
		return;
	}
	qp = vhca_qp_get(port->dev, pkt->dst_qpn);
	if (!qp) {
		vhca_count(port->dev, drop_no_qp);
		return;
	}
	vhca_ud_receive(port, qp, pkt);
	vhca_qp_put(qp);
}
