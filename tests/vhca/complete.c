// SPDX-License-Identifier: GPL-2.0-only
/* Completions: of sends, of receives, and of what is flushed. */
#include "internal.h"

static void vhca_count_cqe(struct vhca_qp *qp, const struct ib_wc *wc,
			   bool is_send)
{
	struct vhca_dev *dev = qp->dev;

	if (vhca_qp_is_mad(qp)) {
		vhca_count(dev, mad_cqes);
		return;
	}
	if (is_send)
		vhca_count(dev, cqes_send);
	else
		vhca_count(dev, cqes_recv);
	if (wc->status == IB_WC_SUCCESS)
		return;
	vhca_count(dev, cqes_error);
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		vhca_count(dev, cqes_flush);
}

static void vhca_complete(struct vhca_wire *wire, struct vhca_qp *qp,
			  struct vhca_cq *cq, const struct ib_wc *wc,
			  bool is_send, bool solicited)
{
	if (vhca_qp_is_mad(qp))
		cq->mad = true;
	if (vhca_cq_add(wire, cq, wc, qp->sq.exec, is_send, solicited)) {
		vhca_count_cqe(qp, wc, is_send);
		return;
	}
	/* A CQE is lost, so the QP cannot go on (IBA 10.2.6.3). */
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		return;
	vhca_events_raise(&qp->events, IB_EVENT_QP_FATAL);
	vhca_qp_ask_error(qp);
}

static enum ib_wc_opcode vhca_wc_opcode(u32 wr_opcode)
{
	switch (wr_opcode) {
	case IB_WR_LSO:
		return IB_WC_LSO;
	case IB_WR_RDMA_WRITE:
		return IB_WC_RDMA_WRITE;
	default:
		return IB_WC_SEND;
	}
}

/* @swqe, the oldest of the send queue, is over. */
void vhca_complete_send(struct vhca_wire *wire, struct vhca_qp *qp,
			struct vhca_swqe *swqe, enum ib_wc_status status)
{
	struct ib_wc wc;

	qp->sq.exec++;
	if (status == IB_WC_SUCCESS && !(swqe->flags & IB_SEND_SIGNALED))
		return;
	memset(&wc, 0, sizeof(wc));
	wc.wr_id = swqe->wr_id;
	wc.status = status;
	wc.opcode = vhca_wc_opcode(swqe->opcode);
	wc.byte_len = swqe->length;
	wc.qp = &qp->ibqp;
	wc.port_num = VHCA_PORT_NUM;
	vhca_complete(wire, qp, to_vcq(qp->init.send_cq), &wc, true, false);
}

/* The caller has filled in all but the constant fields. */
void vhca_complete_recv(struct vhca_wire *wire, struct vhca_qp *qp,
			struct ib_wc *wc, bool solicited)
{
	wc->opcode = IB_WC_RECV;
	wc->qp = &qp->ibqp;
	wc->port_num = VHCA_PORT_NUM;
	vhca_complete(wire, qp, to_vcq(qp->init.recv_cq), wc, false, solicited);
}

/* tx_mutex is held. */
void vhca_flush_send(struct vhca_wire *wire, struct vhca_qp *qp)
{
	struct vhca_swqe *swqe;

	while ((swqe = vhca_sq_next(&qp->sq)))
		vhca_complete_send(wire, qp, swqe, IB_WC_WR_FLUSH_ERR);
}

void vhca_flush_recv(struct vhca_wire *wire, struct vhca_qp *qp)
{
	struct vhca_rwqe *rwqe = qp->resp.rwqe;
	struct ib_wc wc = {};

	mutex_lock(&qp->rx_mutex);
	while (qp->resp.have_rwqe ||
	       (!qp->ibqp.srq && vhca_rq_take(qp, 0, rwqe) == VHCA_TAKE_OK)) {
		qp->resp.have_rwqe = false;
		wc.wr_id = rwqe->wr_id;
		wc.status = IB_WC_WR_FLUSH_ERR;
		vhca_complete_recv(wire, qp, &wc, false);
	}
	mutex_unlock(&qp->rx_mutex);
}
