// SPDX-License-Identifier: GPL-2.0-only
/* Shared receive queues. */
#include "internal.h"

int vhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		    struct ib_udata *udata)
{
	struct vhca_srq *srq = to_vsrq(ibsrq);
	struct ib_srq_attr *attr = &init->attr;
	int ret;

	if (udata || init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > VHCA_MAX_QP_WR || !attr->max_sge ||
	    attr->max_sge > VHCA_MAX_SGE || attr->srq_limit > attr->max_wr)
		return -EINVAL;
	srq->dev = to_vdev(ibsrq->device);
	if (atomic_inc_return(&srq->dev->num_srqs) > vhca_max_srq) {
		ret = -ENOMEM;
		goto err_count;
	}
	ret = vhca_rq_init(&srq->rq, attr->max_wr, attr->max_sge);
	if (ret)
		goto err_count;
	srq->limit = attr->srq_limit;
	vhca_events_init(&srq->events, ibsrq->device, VHCA_EV_SRQ, ibsrq);
	return 0;

err_count:
	atomic_dec(&srq->dev->num_srqs);
	return ret;
}

int vhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct vhca_srq *srq = to_vsrq(ibsrq);
	unsigned long flags;

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->rq.max_wr)
		return -EINVAL;
	spin_lock_irqsave(&srq->rq.lock, flags);
	srq->limit = attr->srq_limit;
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	return 0;
}

int vhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct vhca_srq *srq = to_vsrq(ibsrq);

	attr->max_wr = srq->rq.max_wr;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

/* No QP uses it any more. */
int vhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct vhca_srq *srq = to_vsrq(ibsrq);

	vhca_events_stop(&srq->events);
	vhca_rq_free(&srq->rq);
	atomic_dec(&srq->dev->num_srqs);
	return 0;
}
