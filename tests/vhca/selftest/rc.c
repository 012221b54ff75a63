// SPDX-License-Identifier: GPL-2.0-only
/* RC: messages arrive once, in order, whatever the link does. */
#include "selftest.h"

static int rc_large(struct st *st)
{
	const u32 len = ST_BUF_BYTES / 2 - 3;
	long long packets = st_stat(0, "tx_packets");
	struct ib_sge sge[3];
	struct ib_send_wr wr = {
		.wr_id = 7,
		.opcode = IB_WR_SEND_WITH_IMM,
		.ex.imm_data = cpu_to_be32(0xabcd),
		.sg_list = sge,
		.num_sge = 3,
	};
	const struct ib_send_wr *bad;
	struct ib_wc wc;
	int i;

	/* Three pieces, cut where no packet ends. */
	st_fill(&st->a, 0, len, 3);
	for (i = 0; i < 3; i++) {
		sge[i].addr = st->a.dma + i * 1001;
		sge[i].length = i < 2 ? 1001 : len - 2002;
		sge[i].lkey = st->a.pd->local_dma_lkey;
	}
	EXPECT_EQ(st_recv(&st->b, 0, ST_BUF_BYTES), 0);
	EXPECT_EQ(ib_post_send(st->a.qp, &wr, &bad), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	EXPECT_EQ(wc.byte_len, len);
	EXPECT_EQ(wc.wc_flags, IB_WC_WITH_IMM);
	EXPECT_EQ(be32_to_cpu(wc.ex.imm_data), 0xabcd);
	EXPECT_EQ(wc.src_qp, st->a.qp->qp_num);
	EXPECT(st_filled(&st->b, 0, len, 3));
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.wr_id, 7);
	EXPECT_EQ(st_stat(0, "tx_packets") - packets, DIV_ROUND_UP(len, 2048));
	return 0;
}

/* 64 messages each way, both ends at once, over the wrap of the PSN. */
static int rc_order(struct st *st)
{
	struct ib_wc wc;
	int i, k;

	for (k = 0; k < 64; k += 16) {
		for (i = 0; i < 16; i++) {
			EXPECT_EQ(st_recv(&st->b, 0x80000 + i * 4096, 4096), 0);
			EXPECT_EQ(st_recv(&st->a, 0x80000 + i * 4096, 4096), 0);
			st_fill(&st->a, i * 4096, 3000 + i, k + i);
			st_fill(&st->b, i * 4096, 3000 + i, k + i + 100);
		}
		for (i = 0; i < 16; i++) {
			EXPECT_EQ(st_send(&st->a, &st->b, i * 4096, 3000 + i, 0), 0);
			EXPECT_EQ(st_send(&st->b, &st->a, i * 4096, 3000 + i, 0), 0);
		}
		for (i = 0; i < 16; i++) {
			EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
			EXPECT_EQ(wc.status, IB_WC_SUCCESS);
			EXPECT_EQ(wc.wr_id, 0x80000 + i * 4096);
			EXPECT_EQ(wc.byte_len, 3000 + i);
			EXPECT(st_filled(&st->b, wc.wr_id, 3000 + i, k + i));
			EXPECT_EQ(st_wait_cqe(st->a.rcq, &wc), 0);
			EXPECT(st_filled(&st->a, wc.wr_id, 3000 + i, k + i + 100));
			EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
			EXPECT_EQ(wc.wr_id, i * 4096);
			EXPECT_EQ(st_wait_cqe(st->b.scq, &wc), 0);
		}
	}
	return 0;
}

static int rc_faulty_link(struct st *st)
{
	static const char * const faults[] = { "loss", "duplicate", "reorder" };
	long long retries = st_stat(0, "rc_retries");
	long long twice = st_stat(1, "rc_duplicates");
	long long naks = st_stat(0, "rc_seq_naks");
	struct ib_wc wc;
	int i, ret = 0;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		EXPECT_EQ(st_fault(0, faults[i], "150"), 0);
	for (i = 0; i < 40 && !ret; i++) {
		st_fill(&st->a, 0, 20000, i);
		ret = st_recv(&st->b, 0, 20000);
		if (!ret)
			ret = st_send(&st->a, &st->b, 0, 20000, 0);
		if (!ret)
			ret = st_wait_cqe(st->b.rcq, &wc);
		if (!ret && !st_filled(&st->b, 0, 20000, i))
			ret = -EILSEQ;
		if (!ret)
			ret = st_wait_cqe(st->a.scq, &wc);
	}
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		EXPECT_EQ(st_fault(0, faults[i], "0"), 0);
	EXPECT_EQ(ret, 0);
	EXPECT(st_no_cqe(st->b.rcq));
	EXPECT(st_stat(0, "rc_retries") > retries);
	EXPECT(st_stat(1, "rc_duplicates") > twice);
	EXPECT(st_stat(0, "rc_seq_naks") > naks);
	return 0;
}

/* A receiver that is not ready is asked again until it is. */
static int rc_rnr_retry(struct st *st)
{
	long long naks = st_stat(1, "rnr_naks");
	struct ib_wc wc;

	st_fill(&st->a, 0, 5000, 9);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 5000, 0), 0);
	EXPECT(st_no_cqe(st->a.scq));
	EXPECT(st_stat(1, "rnr_naks") > naks + 10);
	EXPECT_EQ(st_recv(&st->b, 0, 5000), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT(st_filled(&st->b, 0, 5000, 9));
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	return 0;
}

static int rc_delay(struct st *st)
{
	struct ib_wc wc;
	ktime_t sent;
	int i;

	EXPECT_EQ(st_fault(0, "delay_us", "200000"), 0);
	EXPECT_EQ(st_fault(0, "delay", "1000"), 0);
	sent = ktime_get();
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
		EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	}
	EXPECT_EQ(st_fault(0, "delay", "0"), 0);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	/* Late together, not one after the other. */
	EXPECT(ktime_us_delta(ktime_get(), sent) >= 200000);
	EXPECT(ktime_us_delta(ktime_get(), sent) < 1500000);
	return 0;
}

static int rc_solicited(struct st *st)
{
	struct ib_wc wc;
	int i;

	EXPECT_EQ(ib_req_notify_cq(st->b.rcq, IB_CQ_SOLICITED), 0);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT(st_events(&st->b.rcq_events, 0));
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, IB_SEND_SOLICITED), 0);
	EXPECT(st_events(&st->b.rcq_events, 1));
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, IB_SEND_SOLICITED), 0);
	EXPECT(st_events(&st->b.rcq_events, 1));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	return 0;
}

/* A responder in RTR tells that the other end talks. */
static int rc_comm_est(struct st *st)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS, .timeout = 10, .retry_cnt = 7,
	};
	struct ib_wc wc;

	EXPECT_EQ(ib_modify_qp(st->a.qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			       IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			       IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC), 0);
	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 100, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT(st_wait_async(&st->b, IB_EVENT_COMM_EST));
	return 0;
}

#define RC { .type = IB_QPT_RC, .retry_cnt = 7, .rnr_retry = 7, .psn = 0xfffff0 }

const struct st_case st_rc_cases[] = {
	{ "rc_large", RC, rc_large },
	{ "rc_order", RC, rc_order },
	{ "rc_faulty_link", RC, rc_faulty_link },
	{ "rc_rnr_retry", RC, rc_rnr_retry },
	{ "rc_delay", RC, rc_delay },
	{ "rc_solicited", RC, rc_solicited },
	{ "rc_comm_est", { .type = IB_QPT_RC, .state = IB_QPS_RTR },
	  rc_comm_est },
	{}
};
