// SPDX-License-Identifier: GPL-2.0-only
/* The QP state machine (IBA 10.3). */
#include "internal.h"

/* tx_mutex and rx_mutex are held. */
static void vhca_qp_enter(struct vhca_qp *qp, enum ib_qp_state state)
{
	spin_lock_irq(&qp->sq.lock);
	spin_lock(&qp->rq.lock);
	WRITE_ONCE(qp->state, state);
	spin_unlock(&qp->rq.lock);
	spin_unlock_irq(&qp->sq.lock);
}

/* tx_mutex and rx_mutex are held; no CQE and no WR of the QP is left. */
static void vhca_qp_clear(struct vhca_qp *qp)
{
	spin_lock_irq(&qp->sq.lock);
	qp->sq.head = 0;
	qp->sq.exec = 0;
	qp->sq.retired = 0;
	spin_unlock_irq(&qp->sq.lock);
	spin_lock_irq(&qp->rq.lock);
	qp->rq.head = 0;
	qp->rq.tail = 0;
	spin_unlock_irq(&qp->rq.lock);
	memset(&qp->req, 0, sizeof(qp->req));
	qp->resp.psn = 0;
	qp->resp.in_message = false;
	qp->resp.have_rwqe = false;
	qp->resp.offset = 0;
	clear_bit(VHCA_QP_ERR_ASKED, &qp->flags);
	clear_bit(VHCA_QP_LAST_WQE, &qp->flags);
	clear_bit(VHCA_QP_COMM_EST, &qp->flags);
}

/* On the wire, tx_mutex held: an error, or the consumer, ends the QP's work. */
void vhca_qp_to_error(struct vhca_qp *qp)
{
	mutex_lock(&qp->rx_mutex);
	clear_bit(VHCA_QP_ERR_ASKED, &qp->flags);
	if (qp->state != IB_QPS_RESET && qp->state != IB_QPS_ERR) {
		vhca_count(qp->dev, qp_errors);
		vhca_qp_enter(qp, IB_QPS_ERR);
	}
	mutex_unlock(&qp->rx_mutex);
}

/* On the wire, tx_mutex held: a send of a UD QP failed. */
void vhca_qp_to_sqe(struct vhca_qp *qp)
{
	mutex_lock(&qp->rx_mutex);
	if (qp->state == IB_QPS_RTS) {
		vhca_count(qp->dev, qp_errors);
		vhca_qp_enter(qp, IB_QPS_SQE);
	}
	mutex_unlock(&qp->rx_mutex);
}

static int vhca_check_attr(struct vhca_qp *qp, const struct ib_qp_attr *attr,
			   int mask, struct vhca_av *av)
{
	if (mask & IB_QP_PORT && attr->port_num != VHCA_PORT_NUM)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index >= VHCA_NUM_PKEYS)
		return -EINVAL;
	if (mask & IB_QP_ALT_PATH || mask & IB_QP_RATE_LIMIT)
		return -EOPNOTSUPP;
	if (mask & IB_QP_ACCESS_FLAGS &&
	    attr->qp_access_flags & IB_ACCESS_REMOTE_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 ||
	     attr->path_mtu > READ_ONCE(qp->dev->port.active_mtu)))
		return -EINVAL;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num > VHCA_QPN_MASK)
		return -EINVAL;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return -EINVAL;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return -EINVAL;
	if ((mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7))
		return -EINVAL;
	if (mask & IB_QP_AV) {
		if (attr->ah_attr.type != RDMA_AH_ATTR_TYPE_IB)
			return -EINVAL;
		return vhca_av_from_attr(av, &attr->ah_attr);
	}
	return 0;
}

/* Both mutexes are held. */
static void vhca_apply(struct vhca_qp *qp, const struct ib_qp_attr *attr,
		       int mask, const struct vhca_av *av)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IB_QP_AV)
		qp->av = *av;
	if (mask & IB_QP_PATH_MTU) {
		own->path_mtu = attr->path_mtu;
		qp->mtu_bytes = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT) {
		own->retry_cnt = attr->retry_cnt;
		qp->req.retry_left = attr->retry_cnt;
	}
	if (mask & IB_QP_RNR_RETRY) {
		own->rnr_retry = attr->rnr_retry;
		qp->req.rnr_left = attr->rnr_retry;
	}
	if (mask & IB_QP_RQ_PSN)
		qp->resp.psn = attr->rq_psn & VHCA_PSN_MASK;
	if (mask & IB_QP_SQ_PSN)
		qp->req.psn = attr->sq_psn & VHCA_PSN_MASK;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_PATH_MIG_STATE)
		own->path_mig_state = attr->path_mig_state;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		own->en_sqd_async_notify = attr->en_sqd_async_notify;
}

static void vhca_reset(struct vhca_qp *qp)
{
	struct vhca_cq *scq = to_vcq(qp->init.send_cq);
	struct vhca_cq *rcq = to_vcq(qp->init.recv_cq);

	vhca_qp_enter(qp, IB_QPS_RESET);
	vhca_cq_purge(scq, qp);
	if (rcq != scq)
		vhca_cq_purge(rcq, qp);
	vhca_qp_clear(qp);
}

int vhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	enum ib_qp_state cur, next;
	struct vhca_av av;
	int ret;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->tx_mutex);
	mutex_lock(&qp->rx_mutex);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	ret = -EINVAL;
	if (cur != qp->state ||
	    !ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask))
		goto out;
	ret = vhca_check_attr(qp, attr, mask, &av);
	if (ret)
		goto out;

	/* A retry that was being waited for starts anew, or never. */
	if (cur != next) {
		vhca_wire_disarm(qp);
		qp->req.waiting = false;
		qp->req.given_up = false;
	}
	vhca_apply(qp, attr, mask, &av);
	if (next == IB_QPS_RESET)
		vhca_reset(qp);
	else if (cur != next)
		vhca_qp_enter(qp, next);
	if (next == IB_QPS_SQD && cur == IB_QPS_RTS &&
	    mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
		vhca_events_raise(&qp->events, IB_EVENT_SQ_DRAINED);
out:
	mutex_unlock(&qp->rx_mutex);
	mutex_unlock(&qp->tx_mutex);
	/* Flushes are made by the wire; sends may have waited in SQD. */
	if (!ret && (next == IB_QPS_ERR || next == IB_QPS_RTS))
		vhca_wire_kick(qp);
	return ret;
}
