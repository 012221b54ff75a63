// SPDX-License-Identifier: GPL-2.0-only
/* Two endpoints, and short forms of what the cases do with them. */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "selftest.h"

#define ST_WAIT		(3 * HZ)

static void st_scq_event(struct ib_cq *cq, void *ctx)
{
	atomic_inc(&((struct st_end *)ctx)->scq_events);
}

static void st_rcq_event(struct ib_cq *cq, void *ctx)
{
	atomic_inc(&((struct st_end *)ctx)->rcq_events);
}

static void st_async(struct ib_event *event, void *ctx)
{
	set_bit(event->event, &((struct st_end *)ctx)->async);
}

static struct ib_cq *st_cq(struct st *st, struct st_end *end,
			   ib_comp_handler handler)
{
	struct ib_cq_init_attr attr = { .cqe = st->opt->cqe ?: 64 };

	return ib_create_cq(end->dev, handler, st_async, end, &attr);
}

struct ib_qp *st_qp(struct st *st, struct st_end *end)
{
	struct ib_qp_init_attr init = {
		.event_handler = st_async,
		.qp_context = end,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.srq = end->srq,
		.cap = {
			.max_send_wr = st->opt->send_wr ?: 16,
			.max_recv_wr = st->opt->recv_wr ?: 16,
			.max_send_sge = 4,
			.max_recv_sge = 4,
		},
		.sq_sig_type = st->opt->selective ? IB_SIGNAL_REQ_WR :
						    IB_SIGNAL_ALL_WR,
		.qp_type = st->opt->type,
	};

	return ib_create_qp(end->pd, &init);
}

static int st_end_setup(struct st *st, struct st_end *end, struct ib_device *dev)
{
	struct ib_srq_init_attr srq = {
		.event_handler = st_async,
		.srq_context = end,
		.attr = { .max_wr = 16, .max_sge = 4 },
	};
	struct ib_port_attr port;
	int ret;

	end->dev = dev;
	ret = ib_query_port(dev, 1, &port);
	if (ret)
		return ret;
	if (port.state != IB_PORT_ACTIVE)
		return -ENETDOWN;
	end->lid = port.lid;
	end->buf = kzalloc(ST_BUF_BYTES, GFP_KERNEL);
	if (!end->buf)
		return -ENOMEM;
	end->dma = ib_dma_map_single(dev, end->buf, ST_BUF_BYTES,
				     DMA_BIDIRECTIONAL);
	end->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(end->pd))
		return PTR_ERR(end->pd);
	end->scq = st_cq(st, end, st_scq_event);
	if (IS_ERR(end->scq))
		return PTR_ERR(end->scq);
	end->rcq = st_cq(st, end, st_rcq_event);
	if (IS_ERR(end->rcq))
		return PTR_ERR(end->rcq);
	if (st->opt->srq) {
		end->srq = ib_create_srq(end->pd, &srq);
		if (IS_ERR(end->srq))
			return PTR_ERR(end->srq);
	}
	end->qp = st_qp(st, end);
	return PTR_ERR_OR_ZERO(end->qp);
}

static void st_end_teardown(struct st_end *end)
{
	if (!IS_ERR_OR_NULL(end->ah))
		rdma_destroy_ah(end->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (!IS_ERR_OR_NULL(end->qp))
		ib_destroy_qp(end->qp);
	if (!IS_ERR_OR_NULL(end->srq))
		ib_destroy_srq(end->srq);
	if (!IS_ERR_OR_NULL(end->rcq))
		ib_destroy_cq(end->rcq);
	if (!IS_ERR_OR_NULL(end->scq))
		ib_destroy_cq(end->scq);
	if (!IS_ERR_OR_NULL(end->pd))
		ib_dealloc_pd(end->pd);
	if (end->buf)
		ib_dma_unmap_single(end->dev, end->dma, ST_BUF_BYTES,
				    DMA_BIDIRECTIONAL);
	kfree(end->buf);
}

static void st_av(struct st_end *to, struct rdma_ah_attr *attr)
{
	attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_dlid(attr, to->lid);
}

/* Takes the QP of @from from RESET as far as @last. */
int st_connect(struct st *st, struct st_end *from, struct st_end *to,
	       enum ib_qp_state last)
{
	const struct st_opt *opt = st->opt;
	bool rc = opt->type == IB_QPT_RC;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = ST_QKEY,
		.path_mtu = IB_MTU_2048,
		.dest_qp_num = to->qp->qp_num,
		.rq_psn = opt->psn,
		.sq_psn = opt->psn,
		.min_rnr_timer = 1,
		.retry_cnt = opt->retry_cnt,
		.rnr_retry = opt->rnr_retry,
		.timeout = opt->timeout ?: 10,
	};
	int ret;

	if (last == IB_QPS_RESET)
		return 0;
	ret = ib_modify_qp(from->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | (rc ? IB_QP_ACCESS_FLAGS : IB_QP_QKEY));
	if (ret || last == IB_QPS_INIT)
		return ret;
	st_av(to, &attr.ah_attr);
	attr.qp_state = IB_QPS_RTR;
	ret = ib_modify_qp(from->qp, &attr, !rc ? IB_QP_STATE :
			   IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (ret || last == IB_QPS_RTR)
		return ret;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(from->qp, &attr, !rc ? IB_QP_STATE | IB_QP_SQ_PSN :
			    IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

static int st_make_ah(struct st_end *from, struct st_end *to)
{
	struct rdma_ah_attr attr = {};

	st_av(to, &attr);
	from->ah = rdma_create_ah(from->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	return PTR_ERR_OR_ZERO(from->ah);
}

int st_setup(struct st *st, struct ib_device *a, struct ib_device *b,
	     const struct st_opt *opt)
{
	enum ib_qp_state last = opt->state ?: IB_QPS_RTS;
	int ret;

	st->opt = opt;
	ret = st_end_setup(st, &st->a, a);
	if (!ret)
		ret = st_end_setup(st, &st->b, b);
	if (!ret)
		ret = st_connect(st, &st->a, &st->b, last);
	if (!ret)
		ret = st_connect(st, &st->b, &st->a, last);
	if (ret || opt->type == IB_QPT_RC)
		return ret;
	ret = st_make_ah(&st->a, &st->b);
	return ret ?: st_make_ah(&st->b, &st->a);
}

void st_teardown(struct st *st)
{
	st_end_teardown(&st->a);
	st_end_teardown(&st->b);
}

int st_qp_state(struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return ib_query_qp(qp, &attr, IB_QP_STATE, &init) ?: attr.qp_state;
}

int st_move(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

/* One WR of one SGE; @flags as send_flags. */
int st_send(struct st_end *from, struct st_end *to, u32 off, u32 len, int flags)
{
	struct ib_sge sge = {
		.addr = from->dma + off,
		.length = len,
		.lkey = from->pd->local_dma_lkey,
	};
	struct ib_ud_wr wr = {
		.wr = {
			.wr_id = off,
			.opcode = IB_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = flags,
		},
		.ah = from->ah,
		.remote_qpn = to->qp->qp_num,
		.remote_qkey = ST_QKEY,
	};
	const struct ib_send_wr *bad;

	return ib_post_send(from->qp, &wr.wr, &bad);
}

/* One receive WR, to the SRQ if there is one; its ID is @off. */
int st_recv(struct st_end *end, u32 off, u32 len)
{
	struct ib_sge sge = {
		.addr = end->dma + off,
		.length = len,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_id = off,
		.sg_list = &sge,
		.num_sge = 1,
	};
	const struct ib_recv_wr *bad;

	if (end->srq)
		return ib_post_srq_recv(end->srq, &wr, &bad);
	return ib_post_recv(end->qp, &wr, &bad);
}

/* The next CQE, or -ETIMEDOUT. */
int st_wait_cqe(struct ib_cq *cq, struct ib_wc *wc)
{
	unsigned long end = jiffies + ST_WAIT;

	while (ib_poll_cq(cq, 1, wc) != 1) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(200, 400);
	}
	return 0;
}

/* True if nothing comes for a while. */
bool st_no_cqe(struct ib_cq *cq)
{
	struct ib_wc wc;

	msleep(100);
	return !ib_poll_cq(cq, 1, &wc);
}

/* Waits for that many CQ events; false: fewer or more came. */
bool st_events(atomic_t *events, int want)
{
	unsigned long until = jiffies + ST_WAIT;

	while (atomic_read(events) < want && time_before(jiffies, until))
		usleep_range(200, 400);
	msleep(50);
	return atomic_read(events) == want;
}

bool st_wait_async(struct st_end *end, enum ib_event_type type)
{
	unsigned long until = jiffies + ST_WAIT;

	while (!test_bit(type, &end->async)) {
		if (time_after(jiffies, until))
			return false;
		usleep_range(200, 400);
	}
	return true;
}

/* Bytes that differ from place to place, and from seed to seed. */
static u8 st_byte(u32 i, u8 seed)
{
	return i * 7 + (i >> 8) * 13 + (i >> 16) + seed;
}

void st_fill(struct st_end *end, u32 off, u32 len, u8 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		end->buf[off + i] = st_byte(i, seed);
}

bool st_filled(struct st_end *end, u32 off, u32 len, u8 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (end->buf[off + i] != st_byte(i, seed))
			return false;
	return true;
}
