// SPDX-License-Identifier: GPL-2.0-only
/* CQs: arming, moderation, overrun. */
#include <linux/delay.h>

#include "selftest.h"

static int cq_sends(struct st *st, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (st_send(&st->a, &st->b, 0, 10, 0))
			return -EIO;
	return 0;
}

static int cq_arm(struct st *st)
{
	struct ib_wc wc[4];

	EXPECT_EQ(ib_req_notify_cq(st->a.scq, IB_CQ_NEXT_COMP |
				   IB_CQ_REPORT_MISSED_EVENTS), 0);
	EXPECT_EQ(cq_sends(st, 2), 0);
	EXPECT(st_events(&st->a.scq_events, 1));
	/* Not armed: no event; armed with CQEs there: told so, no event. */
	EXPECT_EQ(cq_sends(st, 1), 0);
	EXPECT(st_events(&st->a.scq_events, 1));
	EXPECT_EQ(ib_req_notify_cq(st->a.scq, IB_CQ_NEXT_COMP |
				   IB_CQ_REPORT_MISSED_EVENTS), 1);
	EXPECT(st_events(&st->a.scq_events, 1));
	EXPECT_EQ(ib_poll_cq(st->a.scq, 4, wc), 3);
	EXPECT_EQ(cq_sends(st, 1), 0);
	EXPECT(st_events(&st->a.scq_events, 2));
	return 0;
}

#define MODERATION_US	60000

/* An event per four CQEs, or per 60 ms. */
static int cq_moderation(struct st *st)
{
	s64 best = MODERATION_US;
	ktime_t sent;
	int early, i;

	EXPECT_EQ(rdma_set_cq_moderation(st->a.scq, 4, MODERATION_US), 0);
	EXPECT_EQ(ib_req_notify_cq(st->a.scq, IB_CQ_NEXT_COMP), 0);
	sent = ktime_get();
	EXPECT_EQ(cq_sends(st, 3), 0);
	msleep(20);
	early = atomic_read(&st->a.scq_events);
	/* A machine that stalled has missed the moment. */
	EXPECT(!early || ktime_us_delta(ktime_get(), sent) >= MODERATION_US);
	EXPECT(st_events(&st->a.scq_events, 1));
	EXPECT(ktime_us_delta(ktime_get(), sent) >= MODERATION_US);

	/* The count does not wait for the time; the best of five tells. */
	for (i = 2; i < 7; i++) {
		EXPECT_EQ(ib_req_notify_cq(st->a.scq, IB_CQ_NEXT_COMP), 0);
		sent = ktime_get();
		EXPECT_EQ(cq_sends(st, 4), 0);
		while (atomic_read(&st->a.scq_events) < i &&
		       ktime_us_delta(ktime_get(), sent) < MODERATION_US)
			usleep_range(100, 200);
		best = min(best, ktime_us_delta(ktime_get(), sent));
		EXPECT(st_events(&st->a.scq_events, i));
	}
	EXPECT(best < MODERATION_US / 2);
	return 0;
}

/* An event that moderation holds back does not outlive its QP and CQ. */
static int cq_moderation_destroy(struct st *st)
{
	EXPECT_EQ(rdma_set_cq_moderation(st->a.scq, 100, 60000), 0);
	EXPECT_EQ(ib_req_notify_cq(st->a.scq, IB_CQ_NEXT_COMP), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	return 0;
}

/* A CQ of 8 has room for 15. */
static int cq_overrun(struct st *st)
{
	struct ib_wc wc;
	int i;

	EXPECT_EQ(st->a.scq->cqe, 15);
	for (i = 0; i < 15; i++)
		EXPECT_EQ(st_send(&st->a, &st->b, i, 10, 0), 0);
	msleep(50);
	EXPECT(!test_bit(IB_EVENT_CQ_ERR, &st->a.async));
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT(st_wait_async(&st->a, IB_EVENT_CQ_ERR));
	EXPECT(st_wait_async(&st->a, IB_EVENT_QP_FATAL));
	msleep(20);
	EXPECT_EQ(st_qp_state(st->a.qp), IB_QPS_ERR);
	/* What was there before can still be polled. */
	for (i = 0; i < 15; i++) {
		EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT(st_no_cqe(st->a.scq));
	return 0;
}

static atomic_t drain_done;

static void drain_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		atomic_inc(&drain_done);
}

static struct ib_cqe drain_cqe = { .done = drain_recv_done };

static int drain_qp(struct st *st, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8 },
		.qp_type = IB_QPT_RC,
	};
	struct ib_recv_wr wr = { .wr_cqe = &drain_cqe };
	const struct ib_recv_wr *bad;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_qp *qp;
	int i, ret;

	qp = ib_create_qp(st->a.pd, &init);
	EXPECT(!IS_ERR(qp));
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	for (i = 0; i < 5 && !ret; i++)
		ret = ib_post_recv(qp, &wr, &bad);
	atomic_set(&drain_done, 0);
	if (!ret)
		ib_drain_qp(qp);
	ib_destroy_qp(qp);
	EXPECT_EQ(ret, 0);
	EXPECT_EQ(atomic_read(&drain_done), 5);
	return 0;
}

/* The core's CQs: everything flushed, then the CQ freed at once. */
static int cq_drain(struct st *st)
{
	struct ib_cq *cq;
	int i, ret = 0;

	for (i = 0; i < 50 && !ret; i++) {
		cq = ib_alloc_cq(st->a.dev, NULL, 32, 0,
				 i & 1 ? IB_POLL_WORKQUEUE : IB_POLL_SOFTIRQ);
		EXPECT(!IS_ERR(cq));
		ret = drain_qp(st, cq);
		ib_free_cq(cq);
	}
	return ret;
}

#define UD { .type = IB_QPT_UD, .send_wr = 64 }

const struct st_case st_cq_cases[] = {
	{ "cq_arm", UD, cq_arm },
	{ "cq_drain", UD, cq_drain },
	{ "cq_moderation", UD, cq_moderation },
	{ "cq_moderation_destroy", UD, cq_moderation_destroy },
	{ "cq_overrun", { .type = IB_QPT_UD, .send_wr = 64, .cqe = 8 },
	  cq_overrun },
	{}
};
