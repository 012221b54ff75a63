/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verbs by the book, on two virtual HCAs: what IPoIB does not exercise, or
 * would not notice. Each case gets two fresh endpoints, vhca0's and vhca1's.
 */
#ifndef VHCA_SELFTEST_H
#define VHCA_SELFTEST_H

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>

#define ST_BUF_BYTES	(1 << 20)
#define ST_QKEY		0x11223344
#define ST_GRH		40

/* How the endpoints of a case are made. 0 takes the default. */
struct st_opt {
	enum ib_qp_type type;	/* IB_QPT_UD or IB_QPT_RC */
	u32 send_wr;		/* 16 */
	u32 recv_wr;		/* 16 */
	u32 cqe;		/* 64 */
	u32 psn;		/* of both directions */
	bool selective;		/* IB_SIGNAL_REQ_WR */
	bool srq;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 timeout;		/* 0: 10, that is 4.2 ms */
	enum ib_qp_state state;	/* where to stop; 0 (RESET): RTS */
};

struct st_end {
	struct ib_device *dev;
	u16 lid;
	struct ib_pd *pd;
	struct ib_cq *scq;
	struct ib_cq *rcq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	struct ib_ah *ah;	/* UD: to the other end */
	u8 *buf;		/* ST_BUF_BYTES */
	u64 dma;
	atomic_t scq_events;
	atomic_t rcq_events;
	unsigned long async;	/* bit: enum ib_event_type, of QP, CQ and SRQ */
};

struct st {
	const struct st_opt *opt;
	struct st_end a;	/* vhca0: sends, mostly */
	struct st_end b;	/* vhca1 */
};

struct st_case {
	const char *name;
	struct st_opt opt;
	int (*run)(struct st *st);
};

int st_lookup(struct ib_device *const *devs, const char *question);

extern const struct st_case st_ud_cases[], st_post_cases[], st_rc_cases[],
	st_rc_error_cases[], st_cq_cases[], st_srq_cases[], st_mcast_cases[];

/* Says what does not hold and ends the case. */
#define EXPECT(cond)							\
	do {								\
		if (!(cond)) {						\
			pr_err("vhca_selftest: %s:%d: not so: %s\n",	\
			       __func__, __LINE__, #cond);		\
			return -EIO;					\
		}							\
	} while (0)

#define EXPECT_EQ(have, want)						\
	do {								\
		long long __have = (have), __want = (want);		\
									\
		if (__have != __want) {					\
			pr_err("vhca_selftest: %s:%d: %s is %lld, not %lld\n", \
			       __func__, __LINE__, #have, __have, __want); \
			return -EIO;					\
		}							\
	} while (0)

/* main.c: as if written to fault/@name, read from stats, of HCA @hca */
int st_fault(int hca, const char *name, const char *value);
long long st_stat(int hca, const char *name);

/* setup.c */
int st_setup(struct st *st, struct ib_device *a, struct ib_device *b,
	     const struct st_opt *opt);
void st_teardown(struct st *st);
int st_qp_state(struct ib_qp *qp);
int st_move(struct ib_qp *qp, enum ib_qp_state state);
int st_connect(struct st *st, struct st_end *from, struct st_end *to,
	       enum ib_qp_state last);
struct ib_qp *st_qp(struct st *st, struct st_end *end);
int st_send(struct st_end *from, struct st_end *to, u32 off, u32 len, int flags);
int st_recv(struct st_end *end, u32 off, u32 len);
int st_wait_cqe(struct ib_cq *cq, struct ib_wc *wc);
bool st_no_cqe(struct ib_cq *cq);
bool st_events(atomic_t *events, int want);
bool st_wait_async(struct st_end *end, enum ib_event_type type);
void st_fill(struct st_end *end, u32 off, u32 len, u8 seed);
bool st_filled(struct st_end *end, u32 off, u32 len, u8 seed);

#endif /* VHCA_SELFTEST_H */
