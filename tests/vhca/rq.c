// SPDX-License-Identifier: GPL-2.0-only
/* Rings of receive work requests: of a QP and of an SRQ. */
#include <linux/mm.h>

#include "internal.h"

int vhca_rq_init(struct vhca_rq *rq, u32 max_wr, u32 max_sge)
{
	spin_lock_init(&rq->lock);
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->stride = vhca_rwqe_bytes(max_sge);
	rq->head = 0;
	rq->tail = 0;
	if (!max_wr)
		return 0;
	rq->slots = roundup_pow_of_two(max_wr);
	rq->ring = kvcalloc(rq->slots, rq->stride, GFP_KERNEL);
	return rq->ring ? 0 : -ENOMEM;
}

void vhca_rq_free(struct vhca_rq *rq)
{
	kvfree(rq->ring);
	rq->ring = NULL;
}

static struct vhca_rwqe *vhca_rq_slot(struct vhca_rq *rq, u32 index)
{
	return rq->ring + (size_t)(index & (rq->slots - 1)) * rq->stride;
}

/* rq->lock is held. */
static int vhca_rq_add(struct vhca_rq *rq, const struct ib_recv_wr *wr)
{
	struct vhca_rwqe *rwqe;
	u64 length = 0;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	if (rq->head - rq->tail >= rq->max_wr)
		return -ENOMEM;
	rwqe = vhca_rq_slot(rq, rq->head);
	for (i = 0; i < wr->num_sge; i++) {
		rwqe->sge[i] = wr->sg_list[i];
		length += wr->sg_list[i].length;
	}
	rwqe->wr_id = wr->wr_id;
	rwqe->num_sge = wr->num_sge;
	rwqe->length = min_t(u64, length, U32_MAX);
	rq->head++;
	return 0;
}

/*
 * rq->lock is held. Queues WRs until one is refused; *@n: how many were
 * queued. @fault: the position of the WR that a fault refuses, or -1.
 */
static int vhca_rq_post(struct vhca_rq *rq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad, int fault, int *n)
{
	int ret = 0;

	for (*n = 0; wr; wr = wr->next, ++*n) {
		ret = *n == fault ? -ENOMEM : vhca_rq_add(rq, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	return ret;
}

int vhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	struct vhca_dev *dev = qp->dev;
	bool flush = false, mad = vhca_qp_is_mad(qp);
	unsigned long flags;
	int fault, n = 0, ret;

	fault = mad ? -1 : vhca_fault_post_recv(dev);
	spin_lock_irqsave(&qp->rq.lock, flags);
	if (qp->state == IB_QPS_RESET || ibqp->srq) {
		*bad = wr;
		ret = -EINVAL;
	} else {
		ret = vhca_rq_post(&qp->rq, wr, bad, fault, &n);
		flush = qp->state == IB_QPS_ERR;
	}
	spin_unlock_irqrestore(&qp->rq.lock, flags);

	if (mad) {
		vhca_count_n(dev, mad_recv_wrs, n);
	} else {
		vhca_count(dev, recv_posts);
		vhca_count_n(dev, recv_wrs, n);
		if (ret)
			vhca_count(dev, recv_refused);
	}
	if (flush)
		vhca_wire_kick(qp);
	return ret;
}

int vhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad)
{
	struct vhca_srq *srq = to_vsrq(ibsrq);
	struct vhca_dev *dev = srq->dev;
	unsigned long flags;
	int fault, n, ret;

	fault = vhca_fault_post_recv(dev);
	spin_lock_irqsave(&srq->rq.lock, flags);
	ret = vhca_rq_post(&srq->rq, wr, bad, fault, &n);
	spin_unlock_irqrestore(&srq->rq.lock, flags);

	vhca_count(dev, srq_posts);
	vhca_count_n(dev, srq_wrs, n);
	if (ret)
		vhca_count(dev, recv_refused);
	return ret;
}

static enum vhca_take vhca_rq_pop(struct vhca_rq *rq, u32 need,
				  struct vhca_rwqe *out)
{
	struct vhca_rwqe *rwqe;

	if (rq->head == rq->tail)
		return VHCA_TAKE_EMPTY;
	rwqe = vhca_rq_slot(rq, rq->tail);
	if (rwqe->length < need)
		return VHCA_TAKE_TOO_SHORT;
	memcpy(out, rwqe, vhca_rwqe_bytes(rwqe->num_sge));
	rq->tail++;
	return VHCA_TAKE_OK;
}

/*
 * Takes the oldest receive WR that @qp may use, if it holds @need bytes; what
 * is too short stays. rx_mutex is held.
 */
enum vhca_take vhca_rq_take(struct vhca_qp *qp, u32 need, struct vhca_rwqe *out)
{
	struct vhca_srq *srq;
	enum vhca_take take;
	bool limit = false;
	unsigned long flags;

	if (!qp->ibqp.srq) {
		spin_lock_irqsave(&qp->rq.lock, flags);
		take = vhca_rq_pop(&qp->rq, need, out);
		spin_unlock_irqrestore(&qp->rq.lock, flags);
		return take;
	}

	srq = to_vsrq(qp->ibqp.srq);
	spin_lock_irqsave(&srq->rq.lock, flags);
	take = vhca_rq_pop(&srq->rq, need, out);
	if (srq->limit && srq->rq.head - srq->rq.tail < srq->limit) {
		srq->limit = 0;
		limit = true;
	}
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	if (limit) {
		vhca_count(srq->dev, srq_limit_events);
		vhca_events_raise(&srq->events, IB_EVENT_SRQ_LIMIT_REACHED);
	}
	return take;
}
