// SPDX-License-Identifier: GPL-2.0-only
/* RC: how connections end. */
#include <linux/delay.h>

#include "selftest.h"

/* Both ends are in ERR, and what was queued has been flushed. */
static int rc_ended(struct st *st, enum ib_wc_status status)
{
	struct ib_wc wc;

	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, status);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
	EXPECT_EQ(st_qp_state(st->a.qp), IB_QPS_ERR);
	return 0;
}

static int rc_rnr(struct st *st)
{
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	return rc_ended(st, IB_WC_RNR_RETRY_EXC_ERR);
}

static int rc_rnr_count(struct st *st)
{
	long long naks = st_stat(1, "rnr_naks");

	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(rc_ended(st, IB_WC_RNR_RETRY_EXC_ERR), 0);
	/* The first one and three retries. */
	EXPECT_EQ(st_stat(1, "rnr_naks") - naks, 4);
	return 0;
}

static int rc_lost(struct st *st)
{
	ktime_t sent = ktime_get();

	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_fault(0, "loss_next", "3"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(rc_ended(st, IB_WC_RETRY_EXC_ERR), 0);
	/* Three timeouts of 4.096 us * 2^12. */
	EXPECT(ktime_us_delta(ktime_get(), sent) >= 3 * 16777);
	return 0;
}

static int rc_no_peer(struct st *st)
{
	EXPECT_EQ(ib_destroy_qp(st->b.qp), 0);
	st->b.qp = st_qp(st, &st->b);
	EXPECT(!IS_ERR(st->b.qp));
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	return rc_ended(st, IB_WC_RETRY_EXC_ERR);
}

static int rc_too_long(struct st *st)
{
	struct ib_wc wc;

	EXPECT_EQ(st_recv(&st->b, 0, 5000), 0);
	EXPECT_EQ(st_recv(&st->b, 8192, 5000), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 5001, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(rc_ended(st, IB_WC_REM_INV_REQ_ERR), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_LOC_LEN_ERR);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.wr_id, 8192);
	EXPECT_EQ(st_qp_state(st->b.qp), IB_QPS_ERR);
	return 0;
}

static int rc_write(struct st *st)
{
	struct ib_sge sge = {
		.addr = st->a.dma,
		.length = 8,
		.lkey = st->a.pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE },
		.remote_addr = st->b.dma,
	};
	const struct ib_send_wr *bad;
	struct ib_wc wc;

	/* Of no length it needs no memory. */
	EXPECT_EQ(ib_post_send(st->a.qp, &wr.wr, &bad), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;
	EXPECT_EQ(ib_post_send(st->a.qp, &wr.wr, &bad), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(rc_ended(st, IB_WC_REM_ACCESS_ERR), 0);
	EXPECT(st_wait_async(&st->b, IB_EVENT_QP_ACCESS_ERR));
	return 0;
}

static int rc_cqe_faults(struct st *st)
{
	struct ib_wc wc;

	EXPECT_EQ(st_fault(0, "cqe_status", "9"), 0);
	EXPECT_EQ(st_fault(0, "cqe_next", "1"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(rc_ended(st, 9), 0);
	EXPECT_EQ(st_fault(0, "cqe_status", "21"), 0);

	EXPECT_EQ(st_move(st->a.qp, IB_QPS_RESET), 0);
	EXPECT_EQ(st_connect(st, &st->a, &st->b, IB_QPS_RTS), 0);
	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_fault(1, "cqe_recv_next", "1"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_GENERAL_ERR);
	return rc_ended(st, IB_WC_REM_OP_ERR);
}

static int rc_flush(struct st *st)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 16; i++)
		EXPECT_EQ(st_recv(&st->a, i, 100), 0);
	EXPECT_EQ(st_move(st->a.qp, IB_QPS_ERR), 0);
	for (i = 0; i < 16; i++) {
		EXPECT_EQ(st_wait_cqe(st->a.rcq, &wc), 0);
		EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, i);
		EXPECT(wc.qp == st->a.qp);
	}
	/* In ERR, what is posted comes back. */
	EXPECT_EQ(st_recv(&st->a, 77, 100), 0);
	EXPECT_EQ(st_wait_cqe(st->a.rcq, &wc), 0);
	EXPECT_EQ(wc.wr_id, 77);
	EXPECT_EQ(st_send(&st->a, &st->b, 78, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.wr_id, 78);
	return 0;
}

/* CQEs of a QP that is destroyed are gone; another's stay. */
static int rc_destroy(struct st *st)
{
	struct ib_wc wc;
	struct ib_qp *other;

	other = st_qp(st, &st->a);
	EXPECT(!IS_ERR(other));
	if (st_move(st->a.qp, IB_QPS_ERR) || st_recv(&st->a, 1, 100) ||
	    st_recv(&st->a, 2, 100)) {
		ib_destroy_qp(other);
		EXPECT(false);
	}
	msleep(50);
	swap(st->a.qp, other);
	EXPECT_EQ(ib_destroy_qp(other), 0);
	EXPECT_EQ(ib_poll_cq(st->a.rcq, 1, &wc), 0);
	return 0;
}

#define RC(retries) { .type = IB_QPT_RC, .retry_cnt = retries, .rnr_retry = 7 }

const struct st_case st_rc_error_cases[] = {
	{ "rc_rnr", { .type = IB_QPT_RC }, rc_rnr },
	{ "rc_rnr_count", { .type = IB_QPT_RC, .rnr_retry = 3 }, rc_rnr_count },
	{ "rc_lost", { .type = IB_QPT_RC, .retry_cnt = 2, .timeout = 12 },
	  rc_lost },
	{ "rc_no_peer", RC(1), rc_no_peer },
	{ "rc_too_long", RC(7), rc_too_long },
	{ "rc_write", RC(7), rc_write },
	{ "rc_cqe_faults", RC(7), rc_cqe_faults },
	{ "rc_flush", RC(7), rc_flush },
	{ "rc_destroy", RC(7), rc_destroy },
	{}
};
