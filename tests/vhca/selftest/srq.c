// SPDX-License-Identifier: GPL-2.0-only
/* SRQs: sharing, the limit, the last WQE. */
#include "selftest.h"

static int srq_limit(struct st *st)
{
	struct ib_srq_attr attr = { .srq_limit = 3 };
	struct ib_wc wc;
	int i;

	EXPECT_EQ(ib_modify_srq(st->b.srq, &attr, IB_SRQ_LIMIT), 0);
	for (i = 0; i < 5; i++)
		EXPECT_EQ(st_recv(&st->b, i * 1024, 1024), 0);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
		EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
		EXPECT_EQ(wc.wr_id, i * 1024);
	}
	EXPECT(!test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &st->b.async));
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT(st_wait_async(&st->b, IB_EVENT_SRQ_LIMIT_REACHED));
	/* It is not armed any more. */
	EXPECT_EQ(ib_query_srq(st->b.srq, &attr), 0);
	EXPECT_EQ(attr.srq_limit, 0);
	clear_bit(IB_EVENT_SRQ_LIMIT_REACHED, &st->b.async);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT(!test_bit(IB_EVENT_SRQ_LIMIT_REACHED, &st->b.async));
	return 0;
}

static int srq_last_wqe(struct st *st)
{
	struct ib_wc wc;

	EXPECT_EQ(st_recv(&st->b, 0, 1024), 0);
	EXPECT_EQ(st_move(st->b.qp, IB_QPS_ERR), 0);
	EXPECT(st_wait_async(&st->b, IB_EVENT_QP_LAST_WQE_REACHED));
	/* The WR stays in the SRQ for the next QP. */
	EXPECT(st_no_cqe(st->b.rcq));
	EXPECT_EQ(st_move(st->b.qp, IB_QPS_RESET), 0);
	EXPECT_EQ(st_connect(st, &st->b, &st->a, IB_QPS_RTS), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	return 0;
}

static int srq_rnr(struct st *st)
{
	struct ib_wc wc;

	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT(st_no_cqe(st->a.scq));
	EXPECT_EQ(st_recv(&st->b, 0, 1024), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	return 0;
}

#define SRQ { .type = IB_QPT_RC, .srq = true, .retry_cnt = 7, .rnr_retry = 7 }

const struct st_case st_srq_cases[] = {
	{ "srq_limit", SRQ, srq_limit },
	{ "srq_last_wqe", SRQ, srq_last_wqe },
	{ "srq_rnr", SRQ, srq_rnr },
	{}
};
