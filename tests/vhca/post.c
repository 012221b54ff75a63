// SPDX-License-Identifier: GPL-2.0-only
/*
 * post_send: checks the work requests, copies them into the send queue, rings
 * the wire. Callers hold spinlocks with interrupts off, so nothing more.
 */
#include <linux/delay.h>
#include <linux/netdevice.h>

#include "internal.h"

static bool vhca_op_ok(const struct vhca_qp *qp, const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return true;
	case IB_WR_LSO:
		return qp->init.create_flags & IB_QP_CREATE_IPOIB_UD_LSO;
	case IB_WR_RDMA_WRITE:
		/* ib_drain_sq() posts one, of no length, in ERR. */
		return qp->ibqp.qp_type == IB_QPT_RC;
	default:
		return false;
	}
}

static int vhca_fill_ud(struct vhca_qp *qp, struct vhca_swqe *swqe,
			const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah || ud->ah->pd != qp->ibqp.pd ||
	    ud->remote_qpn > VHCA_QPN_MASK)
		return -EINVAL;
	if (qp->ibqp.qp_type == IB_QPT_GSI && ud->pkey_index >= VHCA_NUM_PKEYS)
		return -EINVAL;
	swqe->av = to_vah(ud->ah)->av;
	swqe->remote_qpn = ud->remote_qpn;
	/* The high bit asks for the QP's own Q_Key (IBA 10.2.5). */
	swqe->qkey = ud->remote_qkey & 0x80000000 ? qp->attr.qkey :
						    ud->remote_qkey;
	swqe->pkey_index = ud->pkey_index;
	if (wr->opcode != IB_WR_LSO)
		return 0;
	if (!ud->header || ud->hlen <= 0 || ud->hlen > VHCA_MAX_LSO_HDR ||
	    ud->mss <= 0)
		return -EINVAL;
	swqe->hlen = ud->hlen;
	swqe->mss = ud->mss;
	swqe->hdr = (u8 *)&swqe->sge[qp->sq.max_sge];
	memcpy(swqe->hdr, ud->header, ud->hlen);
	return 0;
}

/* sq.lock is held. */
static int vhca_sq_add(struct vhca_qp *qp, const struct ib_send_wr *wr)
{
	struct vhca_sq *sq = &qp->sq;
	struct vhca_swqe *swqe;
	u64 length = 0;
	int i, ret;

	if (!vhca_op_ok(qp, wr) || wr->num_sge < 0 || wr->num_sge > sq->max_sge)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE ||
	    (wr->send_flags & IB_SEND_IP_CSUM &&
	     (!vhca_csum || qp->ibqp.qp_type != IB_QPT_UD)))
		return -EINVAL;
	if (sq->head - READ_ONCE(sq->retired) >= sq->max_wr)
		return -ENOMEM;
	swqe = vhca_sq_slot(sq, sq->head);
	for (i = 0; i < wr->num_sge; i++) {
		swqe->sge[i] = wr->sg_list[i];
		length += wr->sg_list[i].length;
	}
	if (length > VHCA_MAX_MSG)
		return -EINVAL;
	swqe->wr_id = wr->wr_id;
	swqe->opcode = wr->opcode;
	swqe->flags = wr->send_flags;
	if (qp->sig_all)
		swqe->flags |= IB_SEND_SIGNALED;
	swqe->imm = wr->ex.imm_data;
	swqe->length = length;
	swqe->num_sge = wr->num_sge;
	swqe->due_ns = vhca_fault_due(qp);
	if (qp->ibqp.qp_type != IB_QPT_RC) {
		ret = vhca_fill_ud(qp, swqe, wr);
		if (ret)
			return ret;
	}
	if (swqe->flags & IB_SEND_SIGNALED && !vhca_qp_is_mad(qp))
		vhca_count(qp->dev, signalled_wrs);
	/* The wire reads the slot once it sees the new head. */
	smp_store_release(&sq->head, sq->head + 1);
	return 0;
}

static void vhca_count_chain(struct vhca_dev *dev, int n)
{
	unsigned int bucket = min(ilog2(n), 6);

	vhca_count(dev, doorbells);
	vhca_count_n(dev, send_wrs, n);
	this_cpu_inc(dev->counters->v[VHCA_CNT_chain_len_1 + bucket]);
}

int vhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	struct vhca_dev *dev = qp->dev;
	bool mad = vhca_qp_is_mad(qp);
	unsigned long flags;
	int fault, fault_errno = 0, n, ret = 0;

	fault = mad ? -1 : vhca_fault_post_send(dev, &fault_errno);
	spin_lock_irqsave(&qp->sq.lock, flags);
	if (qp->state == IB_QPS_RESET || qp->state == IB_QPS_INIT ||
	    qp->state == IB_QPS_RTR)
		ret = -EINVAL;
	for (n = 0; wr && !ret; wr = wr->next, n++) {
		ret = n == fault ? -fault_errno : vhca_sq_add(qp, wr);
		if (ret)
			break;
	}
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	if (ret) {
		*bad = wr;
		if (!mad)
			vhca_count(dev, send_refused);
	}
	if (!n)
		return ret;

	if (mad) {
		vhca_count(dev, mad_doorbells);
		vhca_count_n(dev, mad_send_wrs, n);
	} else {
		vhca_count_chain(dev, n);
		/* What a batching driver would have gone by. */
		if (netdev_xmit_more())
			vhca_count(dev, xmit_more);
		if (vhca_doorbell_ns)
			ndelay(vhca_doorbell_ns);
	}
	vhca_wire_kick(qp);
	return ret;
}
