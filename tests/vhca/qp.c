// SPDX-License-Identifier: GPL-2.0-only
/* Queue pairs: creation, look-up, query, destruction. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

/* Numbers below are reserved: 0 and 1 are the management QPs. */
#define VHCA_FIRST_QPN	16

/* A reference to the QP with that number, or NULL. */
struct vhca_qp *vhca_qp_get(struct vhca_dev *dev, u32 qpn)
{
	struct vhca_qp *qp;

	xa_lock(&dev->qps);
	qp = xa_load(&dev->qps, qpn);
	if (qp)
		refcount_inc(&qp->refs);
	xa_unlock(&dev->qps);
	return qp;
}

void vhca_qp_put(struct vhca_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->released);
}

static int vhca_check_init(const struct ib_qp_init_attr *init)
{
	u32 flags = vhca_tso && init->qp_type == IB_QPT_UD ?
		    IB_QP_CREATE_IPOIB_UD_LSO : 0;

	switch (init->qp_type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		if (init->port_num != VHCA_PORT_NUM)
			return -EINVAL;
		break;
	case IB_QPT_UD:
	case IB_QPT_RC:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags & ~flags || init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq ||
	    init->cap.max_send_wr > VHCA_MAX_QP_WR ||
	    init->cap.max_send_sge > vhca_max_sge ||
	    init->cap.max_inline_data)
		return -EINVAL;
	if (!init->srq && (init->cap.max_recv_wr > VHCA_MAX_QP_WR ||
			   init->cap.max_recv_sge > VHCA_MAX_SGE))
		return -EINVAL;
	return 0;
}

static int vhca_sq_init(struct vhca_sq *sq, const struct ib_qp_init_attr *init)
{
	size_t stride = struct_size_t(struct vhca_swqe, sge,
				      init->cap.max_send_sge);

	if (init->create_flags & IB_QP_CREATE_IPOIB_UD_LSO)
		stride += VHCA_MAX_LSO_HDR;
	spin_lock_init(&sq->lock);
	sq->max_wr = init->cap.max_send_wr;
	sq->max_sge = init->cap.max_send_sge;
	sq->stride = ALIGN(stride, sizeof(u64));
	if (!sq->max_wr)
		return 0;
	sq->slots = roundup_pow_of_two(sq->max_wr);
	sq->ring = kvcalloc(sq->slots, sq->stride, GFP_KERNEL);
	return sq->ring ? 0 : -ENOMEM;
}

static int vhca_qp_number(struct vhca_qp *qp)
{
	struct vhca_dev *dev = qp->dev;
	int ret;

	switch (qp->ibqp.qp_type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		qp->qpn = qp->ibqp.qp_type == IB_QPT_SMI ? 0 : 1;
		ret = xa_insert(&dev->qps, qp->qpn, qp, GFP_KERNEL);
		break;
	default:
		ret = xa_alloc_cyclic(&dev->qps, &qp->qpn, qp,
				      XA_LIMIT(VHCA_FIRST_QPN,
					       VHCA_QPN_MASK - 1),
				      &dev->next_qpn, GFP_KERNEL);
	}
	qp->ibqp.qp_num = qp->qpn;
	return min(ret, 0);
}

int vhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	int ret;

	if (udata)
		return -EOPNOTSUPP;
	ret = vhca_check_init(init);
	if (ret)
		return ret;

	qp->dev = to_vdev(ibqp->device);
	qp->state = IB_QPS_RESET;
	qp->init = *init;
	qp->attr.cap = init->cap;
	qp->attr.port_num = VHCA_PORT_NUM;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	refcount_set(&qp->refs, 1);
	init_completion(&qp->released);
	mutex_init(&qp->tx_mutex);
	mutex_init(&qp->rx_mutex);
	INIT_LIST_HEAD(&qp->run_node);
	qp->timed.is_qp = true;
	timerqueue_init(&qp->timed.node);
	vhca_events_init(&qp->events, ibqp->device, VHCA_EV_QP, ibqp);

	ret = vhca_sq_init(&qp->sq, init);
	if (ret)
		return ret;
	ret = vhca_rq_init(&qp->rq, init->srq ? 0 : init->cap.max_recv_wr,
			   init->cap.max_recv_sge);
	if (ret)
		goto err_sq;
	ret = -ENOMEM;
	qp->resp.rwqe = kmalloc(vhca_rwqe_bytes(VHCA_MAX_SGE), GFP_KERNEL);
	if (!qp->resp.rwqe)
		goto err_rq;
	/* Found by its number from here on. */
	ret = vhca_qp_number(qp);
	if (ret)
		goto err_rwqe;
	return 0;

err_rwqe:
	kfree(qp->resp.rwqe);
err_rq:
	vhca_rq_free(&qp->rq);
err_sq:
	kvfree(qp->sq.ring);
	return ret;
}

/*
 * Nothing names the QP after this: not the wire, not a CQE, not an event whose
 * handler still runs (ib_free_cq() relies on that).
 */
int vhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	struct vhca_cq *scq = to_vcq(qp->init.send_cq);
	struct vhca_cq *rcq = to_vcq(qp->init.recv_cq);

	set_bit(VHCA_QP_DEAD, &qp->flags);
	xa_erase(&qp->dev->qps, qp->qpn);
	vhca_wire_disarm(qp);
	vhca_qp_put(qp);
	wait_for_completion(&qp->released);

	vhca_cq_wait_events(scq);
	if (rcq != scq)
		vhca_cq_wait_events(rcq);
	vhca_cq_purge(scq, qp);
	if (rcq != scq)
		vhca_cq_purge(rcq, qp);
	vhca_events_stop(&qp->events);
	kfree(qp->resp.rwqe);
	vhca_rq_free(&qp->rq);
	kvfree(qp->sq.ring);
	return 0;
}

int vhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init)
{
	struct vhca_qp *qp = to_vqp(ibqp);

	mutex_lock(&qp->tx_mutex);
	mutex_lock(&qp->rx_mutex);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	if (ibqp->qp_type == IB_QPT_RC) {
		vhca_av_to_attr(&qp->av, &attr->ah_attr);
		attr->sq_psn = qp->req.psn;
		attr->rq_psn = qp->resp.psn;
	}
	attr->sq_draining = 0;
	mutex_unlock(&qp->rx_mutex);
	mutex_unlock(&qp->tx_mutex);
	*init = qp->init;
	return 0;
}

/* Asks the wire to move the QP to ERR: for who may not take both mutexes. */
void vhca_qp_ask_error(struct vhca_qp *qp)
{
	set_bit(VHCA_QP_ERR_ASKED, &qp->flags);
	vhca_wire_kick(qp);
}
