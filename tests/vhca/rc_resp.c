// SPDX-License-Identifier: GPL-2.0-only
/* RC, the responder: PSN order, receive WRs, NAKs (IBA 9.7, 9.9). */
#include "internal.h"

/* A receive WR ends with an error, and so does the QP. */
static void vhca_rc_recv_error(struct vhca_wire *wire, struct vhca_qp *qp,
			       enum ib_wc_status status)
{
	struct ib_wc wc = {
		.wr_id = qp->resp.rwqe->wr_id,
		.status = status,
	};

	qp->resp.have_rwqe = false;
	qp->resp.in_message = false;
	vhca_complete_recv(wire, qp, &wc, false);
	vhca_qp_ask_error(qp);
}

/* The first packet of a message needs a receive WR. */
static enum vhca_rc_verdict vhca_rc_begin(struct vhca_wire *wire,
					  struct vhca_qp *qp)
{
	struct vhca_rwqe *rwqe = qp->resp.rwqe;
	struct vhca_dev *dev = qp->dev;
	struct ib_pd *pd = qp->ibqp.srq ? qp->ibqp.srq->pd : qp->ibqp.pd;

	if (unlikely(vhca_fault_hit(dev, VHCA_FAULT_RNR))) {
		vhca_count(dev, fault_rnr);
		vhca_count(dev, rnr_naks);
		return VHCA_RC_RNR;
	}
	if (vhca_rq_take(qp, 0, rwqe) != VHCA_TAKE_OK) {
		vhca_count(dev, rnr_naks);
		return VHCA_RC_RNR;
	}
	qp->resp.have_rwqe = true;
	qp->resp.in_message = true;
	qp->resp.offset = 0;
	if (!vhca_sges_ok(pd, rwqe->sge, rwqe->num_sge, true)) {
		vhca_count(dev, drop_recv_error);
		vhca_rc_recv_error(wire, qp, IB_WC_LOC_PROT_ERR);
		return VHCA_RC_OP_ERR;
	}
	return VHCA_RC_ACK;
}

static enum vhca_rc_verdict vhca_rc_end(struct vhca_wire *wire,
					struct vhca_qp *qp,
					const struct vhca_rc_pkt *pkt)
{
	const struct vhca_swqe *swqe = pkt->swqe;
	struct ib_wc wc;

	if (unlikely(vhca_fault_hit(qp->dev, VHCA_FAULT_CQE_RECV))) {
		vhca_count(qp->dev, fault_cqe);
		vhca_rc_recv_error(wire, qp, vhca_fault_cqe_status(qp->dev));
		return VHCA_RC_OP_ERR;
	}
	memset(&wc, 0, sizeof(wc));
	wc.wr_id = qp->resp.rwqe->wr_id;
	wc.byte_len = qp->resp.offset;
	wc.src_qp = qp->attr.dest_qp_num;
	wc.slid = pkt->slid;
	wc.sl = qp->av.sl;
	wc.pkey_index = qp->attr.pkey_index;
	if (swqe->opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = swqe->imm;
	}
	qp->resp.have_rwqe = false;
	qp->resp.in_message = false;
	vhca_complete_recv(wire, qp, &wc, swqe->flags & IB_SEND_SOLICITED);
	return VHCA_RC_ACK;
}

/* No memory is open to RDMA: only a WRITE of no length can succeed. */
static enum vhca_rc_verdict vhca_rc_write(struct vhca_qp *qp,
					  const struct vhca_rc_pkt *pkt)
{
	if (!pkt->swqe->length) {
		qp->resp.psn = (qp->resp.psn + 1) & VHCA_PSN_MASK;
		return VHCA_RC_ACK;
	}
	vhca_events_raise(&qp->events, IB_EVENT_QP_ACCESS_ERR);
	vhca_qp_ask_error(qp);
	return VHCA_RC_ACCESS;
}

static s32 vhca_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/* A packet arrives; rx_mutex is held and the connection has been checked. */
enum vhca_rc_verdict vhca_rc_receive(struct vhca_wire *wire,
				     struct vhca_qp *qp,
				     const struct vhca_rc_pkt *pkt)
{
	struct vhca_rc_resp *resp = &qp->resp;
	struct vhca_dev *dev = qp->dev;
	enum vhca_rc_verdict verdict;
	s32 diff = vhca_psn_diff(pkt->psn, resp->psn);

	if (diff < 0) {
		vhca_count(dev, rc_duplicates);
		return VHCA_RC_ACK;
	}
	if (diff > 0)
		return VHCA_RC_SEQ;
	if (pkt->first == resp->in_message) {
		vhca_qp_ask_error(qp);
		return VHCA_RC_INV_REQ;
	}
	if (qp->state == IB_QPS_RTR &&
	    !test_and_set_bit(VHCA_QP_COMM_EST, &qp->flags))
		vhca_events_raise(&qp->events, IB_EVENT_COMM_EST);
	if (pkt->swqe->opcode == IB_WR_RDMA_WRITE)
		return vhca_rc_write(qp, pkt);

	if (pkt->first) {
		verdict = vhca_rc_begin(wire, qp);
		if (verdict != VHCA_RC_ACK)
			return verdict;
	}
	if (pkt->length > resp->rwqe->length - resp->offset) {
		vhca_count(dev, drop_too_long);
		vhca_rc_recv_error(wire, qp, IB_WC_LOC_LEN_ERR);
		return VHCA_RC_INV_REQ;
	}
	vhca_copy_sg(resp->rwqe->sge, resp->offset, pkt->swqe->sge,
		     pkt->src_off, pkt->length);
	resp->offset += pkt->length;
	resp->psn = (resp->psn + 1) & VHCA_PSN_MASK;
	vhca_count(dev, rx_packets);
	vhca_count_n(dev, rx_bytes, pkt->length);
	return pkt->last ? vhca_rc_end(wire, qp, pkt) : VHCA_RC_ACK;
}
