// SPDX-License-Identifier: GPL-2.0-only
/* Posting: what is refused, where a chain stops, which slots are free. */
#include <linux/vmalloc.h>

#include "selftest.h"

/* A chain of @n UD WRs of @len bytes; WR IDs count from 0. */
struct post_chain {
	struct ib_sge sge;
	struct ib_ud_wr wr[16];
};

static void post_fill(struct post_chain *c, struct st *st, int n, u32 len,
		      int flags)
{
	int i;

	memset(c, 0, sizeof(*c));
	c->sge.addr = st->a.dma;
	c->sge.length = len;
	c->sge.lkey = st->a.pd->local_dma_lkey;
	for (i = 0; i < n; i++) {
		c->wr[i].wr.next = i + 1 < n ? &c->wr[i + 1].wr : NULL;
		c->wr[i].wr.wr_id = i;
		c->wr[i].wr.opcode = IB_WR_SEND;
		c->wr[i].wr.sg_list = &c->sge;
		c->wr[i].wr.num_sge = 1;
		c->wr[i].wr.send_flags = flags;
		c->wr[i].ah = st->a.ah;
		c->wr[i].remote_qpn = st->b.qp->qp_num;
		c->wr[i].remote_qkey = ST_QKEY;
	}
}

static struct post_chain post_c;

static int post_refused(struct st *st)
{
	struct post_chain *c = &post_c;
	const struct ib_send_wr *bad;
	int before;

	post_fill(c, st, 1, 10, IB_SEND_INLINE);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -EINVAL);
	EXPECT(bad == &c->wr[0].wr);
	post_fill(c, st, 1, 10, IB_SEND_IP_CSUM);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -EINVAL);
	post_fill(c, st, 1, 10, 0);
	c->wr[0].wr.num_sge = 5;
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -EINVAL);
	post_fill(c, st, 1, 10, 0);
	c->wr[0].wr.opcode = IB_WR_RDMA_READ;
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -EINVAL);
	post_fill(c, st, 1, 10, 0);
	c->wr[0].ah = st->b.ah;
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -EINVAL);
	EXPECT(st_no_cqe(st->a.scq));

	/* Sends in RTR, receives in RESET. */
	before = st_send(&st->a, &st->b, 0, 10, 0);
	EXPECT_EQ(before, 0);
	EXPECT_EQ(st_move(st->a.qp, IB_QPS_RESET), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), -EINVAL);
	EXPECT_EQ(st_recv(&st->a, 0, 100), -EINVAL);
	EXPECT_EQ(st_connect(st, &st->a, &st->b, IB_QPS_RTR), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), -EINVAL);
	EXPECT_EQ(st_recv(&st->a, 0, 100), 0);
	/* RESET took the CQE of the first send along. */
	EXPECT(st_no_cqe(st->a.scq));
	return 0;
}

static int post_bad_wr(struct st *st)
{
	struct post_chain *c = &post_c;
	const struct ib_send_wr *bad;
	struct ib_wc wc;
	int i;

	post_fill(c, st, 6, 10, 0);
	c->wr[3].wr.opcode = IB_WR_RDMA_READ;
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -EINVAL);
	EXPECT(bad == &c->wr[3].wr);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT(st_no_cqe(st->a.scq));

	EXPECT_EQ(st_fault(0, "post_send_wr", "2"), 0);
	EXPECT_EQ(st_fault(0, "post_send_errno", "11"), 0);
	EXPECT_EQ(st_fault(0, "post_send_next", "1"), 0);
	post_fill(c, st, 6, 10, 0);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -EAGAIN);
	EXPECT(bad == &c->wr[2].wr);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT(st_no_cqe(st->a.scq));
	return 0;
}

static int post_counters(struct st *st)
{
	static const char * const names[] = {
		"doorbells", "send_wrs", "signalled_wrs", "chain_len_1",
		"chain_len_4_7", "chain_len_8_15", "cqes_send", "tx_packets",
		"tx_bytes",
	};
	static const int want[] = { 3, 14, 14, 1, 1, 1, 14, 14, 140 };
	long long before[ARRAY_SIZE(names)];
	struct post_chain *c = &post_c;
	const struct ib_send_wr *bad;
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		before[i] = st_stat(0, names[i]);
	post_fill(c, st, 1, 10, IB_SEND_SIGNALED);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), 0);
	post_fill(c, st, 5, 10, IB_SEND_SIGNALED);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), 0);
	post_fill(c, st, 8, 10, IB_SEND_SIGNALED);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), 0);
	for (i = 0; i < 14; i++)
		EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_EQ(st_stat(0, names[i]) - before[i], want[i]);
	return 0;
}

/* An unsignalled WR holds its slot until a later CQE has been polled. */
static int post_unsignalled(struct st *st)
{
	struct post_chain *c = &post_c;
	const struct ib_send_wr *bad;
	struct ib_wc wc;

	post_fill(c, st, 16, 10, 0);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), 0);
	EXPECT(st_no_cqe(st->a.scq));
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), -ENOMEM);
	EXPECT_EQ(st_move(st->a.qp, IB_QPS_RESET), 0);
	EXPECT_EQ(st_connect(st, &st->a, &st->b, IB_QPS_RTS), 0);

	post_fill(c, st, 16, 10, 0);
	c->wr[11].wr.send_flags = IB_SEND_SIGNALED;
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.wr_id, 11);
	EXPECT(st_no_cqe(st->a.scq));
	/* 12 slots are free, 4 are not. */
	post_fill(c, st, 13, 10, 0);
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), -ENOMEM);
	EXPECT(bad == &c->wr[12].wr);
	return 0;
}

static int post_memory(struct st *st)
{
	struct post_chain *c = &post_c;
	const struct ib_send_wr *bad;
	struct ib_wc wc;
	void *vm;

	/* The key of another PD. */
	post_fill(c, st, 1, 10, 0);
	c->sge.lkey = st->b.pd->local_dma_lkey + 0x100;
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_LOC_PROT_ERR);
	EXPECT_EQ(st_move(st->a.qp, IB_QPS_RTS), 0);

	/* Memory that a driver may not map for DMA. */
	vm = vmalloc(PAGE_SIZE);
	EXPECT(vm);
	post_fill(c, st, 1, 10, 0);
	c->sge.addr = (uintptr_t)vm;
	EXPECT_EQ(ib_post_send(st->a.qp, &c->wr[0].wr, &bad), 0);
	EXPECT_EQ(st_wait_cqe(st->a.scq, &wc), 0);
	vfree(vm);
	EXPECT_EQ(wc.status, IB_WC_LOC_PROT_ERR);
	EXPECT_EQ(st_move(st->a.qp, IB_QPS_RTS), 0);
	return 0;
}

static int post_receive_memory(struct st *st)
{
	struct ib_sge sge = {
		.addr = st->b.dma,
		.length = 100,
		.lkey = 0x12345678,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;
	struct ib_wc wc;

	EXPECT_EQ(ib_post_recv(st->b.qp, &wr, &bad), 0);
	EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_send(&st->a, &st->b, 0, 10, 0), 0);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_LOC_PROT_ERR);
	EXPECT_EQ(st_wait_cqe(st->b.rcq, &wc), 0);
	EXPECT_EQ(wc.status, IB_WC_WR_FLUSH_ERR);
	EXPECT_EQ(st_qp_state(st->b.qp), IB_QPS_ERR);
	return 0;
}

static int post_receive_refused(struct st *st)
{
	struct ib_recv_wr wr[3] = { { .next = &wr[1] }, { .next = &wr[2] } };
	const struct ib_recv_wr *bad;
	int i;

	EXPECT_EQ(st_fault(1, "post_recv_wr", "1"), 0);
	EXPECT_EQ(st_fault(1, "post_recv_next", "1"), 0);
	EXPECT_EQ(ib_post_recv(st->b.qp, wr, &bad), -ENOMEM);
	EXPECT(bad == &wr[1]);
	/* One of 16 is queued. */
	for (i = 0; i < 15; i++)
		EXPECT_EQ(st_recv(&st->b, 0, 100), 0);
	EXPECT_EQ(st_recv(&st->b, 0, 100), -ENOMEM);
	return 0;
}

#define UD { .type = IB_QPT_UD }
#define UD_SELECTIVE { .type = IB_QPT_UD, .selective = true }

const struct st_case st_post_cases[] = {
	{ "post_refused", UD, post_refused },
	{ "post_bad_wr", UD, post_bad_wr },
	{ "post_counters", UD_SELECTIVE, post_counters },
	{ "post_unsignalled", UD_SELECTIVE, post_unsignalled },
	{ "post_memory", UD, post_memory },
	{ "post_receive_memory", UD, post_receive_memory },
	{ "post_receive_refused", UD, post_receive_refused },
	{}
};
