// SPDX-License-Identifier: GPL-2.0-only
/* UD: what arrives, what is dropped, what fails. */
#include "selftest.h"

static int ud_send(struct st *st)
{
	struct ib_wc wc;

	st_fill(&st->a, 0, 1500, 1);
	EXPECT_EQ(st_recv(&st->b, 0, 1500 + ST_GRH), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 1500, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IB_WC_SEND);
	EXPECT(wc.qp == st->a.qp);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(wc.opcode, IB_WC_RECV);
	EXPECT_EQ(wc.byte_len, 1500 + ST_GRH);
	EXPECT_EQ(wc.src_qp, st->a.qp->qp_num);
	EXPECT_EQ(wc.slid, st->a.lid);
	EXPECT_EQ(wc.wc_flags, 0);
	EXPECT(st_filled(&st->b, ST_GRH, 1500, 1));
	return 0;
}

static int ud_too_long(struct st *st)
{
	struct ib_wc wc;

	EXPECT_EQ(st_send(&st->a, &st->b, 0, 2049, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_LOC_LEN_ERR);
	EXPECT_EQ(st_qp_state(st->a.qp), IB_QPS_SQE);
	/* In SQE sends are flushed, receives go on. */
	EXPECT_EQ(st_send(&st->a, &st->b, 4096, 10, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.wr_id, 4096);
	EXPECT_EQ(st_recv(&st->a, 0, 100), 0);
	EXPECT_EQ(st_send(&st->b, &st->a, 0, 10, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->a.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	/* Back in RTS, it sends again. */
	EXPECT_EQ(st_move(st->a.qp, IB_QPS_RTS), 0);
	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	return 0;
}

static int ud_short_receive(struct st *st)
{
	struct ib_wc wc;

	/* Too long for the WR: dropped, the WR waits for the next packet. */
	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT(st_no_cqe(st->b.rcq));
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 60, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.byte_len, 100);
	return 0;
}

static int ud_drops(struct st *st)
{
	struct ib_qp_attr attr = { .qkey = ST_QKEY + 1, .qp_state = IB_QPS_RTS };
	long long qkeys = st_stat(1, "drop_qkey");
	long long none = st_stat(1, "drop_no_recv_wr");
	long long nobody = st_stat(1, "drop_no_qp");
	struct ib_wc wc;
	u32 qpn;

	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT(st_no_cqe(st->b.rcq));
	EXPECT_EQ(st_stat(1, "drop_no_recv_wr"), none + 1);

	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(ib_modify_qp(st->b.qp, &attr, IB_QP_STATE | IB_QP_QKEY), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT(st_no_cqe(st->b.rcq));
	EXPECT_EQ(st_stat(1, "drop_qkey"), qkeys + 1);

	qpn = st->b.qp->qp_num;
	st->b.qp->qp_num = 0xfffff0;
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	st->b.qp->qp_num = qpn;
	EXPECT(st_no_cqe(st->b.rcq));
	EXPECT_EQ(st_stat(1, "drop_no_qp"), nobody + 1);
	/* The sender heard of nothing. */
	for (qpn = 0; qpn < 3; qpn++) {
		EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	}
	return 0;
}

static int ud_pkey(struct st *st)
{
	struct ib_wc wc;

	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	/* A limited member hears full members, full members hear it. */
	EXPECT_EQ(st_fault(1, "pkey", "0 0x7fff"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	/* Two limited members don't hear each other. */
	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_fault(0, "pkey", "0 0x7fff"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT(st_no_cqe(st->b.rcq));
	EXPECT_EQ(st_fault(0, "pkey", "0 0xffff"), 0);
	EXPECT_EQ(st_fault(1, "pkey", "0 0xffff"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	return 0;
}

static int ud_link_faults(struct st *st)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 4; i++)
		EXPECT_EQ(st_recv(&st->b, i * 256, 256), 0);
	st_fill(&st->a, 0, 100, 1);
	st_fill(&st->a, 256, 100, 2);
	EXPECT_EQ(st_fault(0, "loss_next", "1"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT(st_no_cqe(st->b.rcq));

	EXPECT_EQ(st_fault(0, "duplicate_next", "1"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);

	/* The second one overtakes the first. */
	EXPECT_EQ(st_fault(0, "reorder_next", "1"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 256, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT(st_filled(&st->b, wc.wr_id + ST_GRH, 100, 2));
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT(st_filled(&st->b, wc.wr_id + ST_GRH, 100, 1));
	return 0;
}

static int ud_delay(struct st *st)
{
	struct ib_wc wc;
	ktime_t sent;

	EXPECT_EQ(st_recv(&st->b, 0, 256), 0);
	EXPECT_EQ(st_fault(0, "delay_us", "30000"), 0);
	EXPECT_EQ(st_fault(0, "delay_next", "1"), 0);
	sent = ktime_get();
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT(ktime_us_delta(ktime_get(), sent) >= 30000);
	return 0;
}

static int ud_port_down(struct st *st)
{
	long long drops = st_stat(0, "drop_port_down");
	struct ib_wc wc;

	EXPECT_EQ(st_recv(&st->b, 0, 256), 0);
	EXPECT_EQ(st_fault(0, "port", "down"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT(st_no_cqe(st->b.rcq));
	/* MADs may have been dropped, too. */
	EXPECT(st_stat(0, "drop_port_down") > drops);
	EXPECT_EQ(st_fault(0, "port", "up"), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	return 0;
}

/* The caller's mistake, once everything else is done: the PD stays. */
static int ud_pd_in_use(struct st *st)
{
	EXPECT_EQ(ib_dealloc_pd_user(st->a.pd, NULL), -EBUSY);
	EXPECT_EQ(st_move(st->a.qp, IB_QPS_ERR), 0);
	return 0;
}

#define UD { .type = IB_QPT_UD }

const struct st_case st_ud_cases[] = {
	{ "ud_send", UD, ud_send },
	{ "ud_too_long", UD, ud_too_long },
	{ "ud_short_receive", UD, ud_short_receive },
	{ "ud_drops", UD, ud_drops },
	{ "ud_pkey", UD, ud_pkey },
	{ "ud_link_faults", UD, ud_link_faults },
	{ "ud_delay", UD, ud_delay },
	{ "ud_port_down", UD, ud_port_down },
	{ "ud_pd_in_use", UD, ud_pd_in_use },
	{}
};
