// SPDX-License-Identifier: GPL-2.0-only
/* Multicast: copies for each QP that is attached. */
#include "selftest.h"

static const union ib_gid mcast_gid = {
	.raw = { 0xff, 0x12, 0xaa, 0x55, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
};

#define MLID	0xc123

static int mcast_ah(struct st_end *end)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };
	union ib_gid gid = mcast_gid;

	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_dlid(&attr, MLID);
	rdma_ah_set_grh(&attr, &gid, 0, 0, 1, 0);
	rdma_destroy_ah(end->ah, RDMA_DESTROY_AH_SLEEPABLE);
	end->ah = rdma_create_ah(end->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	return PTR_ERR_OR_ZERO(end->ah);
}

/* The HCA's own members, the sender too, get a copy with the GRH. */
static int mcast_local(struct st *st)
{
	u32 qpn = st->b.qp->qp_num;
	union ib_gid gid = mcast_gid;
	struct ib_wc wc;
	int ret;

	EXPECT_EQ(mcast_ah(&st->a), 0);
	st_fill(&st->a, 4096, 200, 5);
	EXPECT_EQ(st_recv(&st->a, 0, 1024), 0);
	EXPECT_EQ(ib_attach_mcast(st->a.qp, &gid, MLID), 0);
	EXPECT_EQ(ib_destroy_qp(st->a.qp), -EBUSY);
	st->b.qp->qp_num = IB_MULTICAST_QPN;
	ret = st_send(&st->a, &st->b, 4096, 200, 0);
	st->b.qp->qp_num = qpn;
	if (!ret)
		ret = st_wait_cqe(st->a.rcq, &wc);
	EXPECT_EQ(ib_detach_mcast(st->a.qp, &gid, MLID), 0);
	EXPECT_EQ(ret, 0);
	EXPECT_EQ(wc.wc_flags, IB_WC_GRH);
	EXPECT_EQ(wc.src_qp, st->a.qp->qp_num);
	EXPECT_EQ(wc.slid, st->a.lid);
	EXPECT(!memcmp(st->a.buf + 24, mcast_gid.raw, 16));
	EXPECT(st_filled(&st->a, ST_GRH, 200, 5));

	/* Detached, it hears nothing. */
	EXPECT_EQ(st_recv(&st->a, 0, 1024), 0);
	st->b.qp->qp_num = IB_MULTICAST_QPN;
	ret = st_send(&st->a, &st->b, 4096, 200, 0);
	st->b.qp->qp_num = qpn;
	EXPECT_EQ(ret, 0);
	EXPECT(st_no_cqe(st->a.rcq));
	EXPECT(ib_detach_mcast(st->a.qp, &gid, MLID));
	return 0;
}

const struct st_case st_mcast_cases[] = {
	{ "mcast_local", { .type = IB_QPT_UD }, mcast_local },
	{}
};
