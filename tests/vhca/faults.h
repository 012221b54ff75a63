/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults on demand: what debugfs .../vhcaN/fault/ sets (faults.c). Each kind
 * hits by chance (per mille) or the next N times; README.md describes them.
 */
#ifndef VHCA_FAULTS_H
#define VHCA_FAULTS_H

#include <linux/bits.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct vhca_dev;

/* Kind, and the name of its file. */
#define VHCA_FAULTS(X)							\
	X(LOSS, loss)							\
	X(DUPLICATE, duplicate)						\
	X(REORDER, reorder)						\
	X(DELAY, delay)							\
	X(RNR, rnr)							\
	X(POST_SEND, post_send)						\
	X(POST_RECV, post_recv)						\
	X(CQE, cqe)							\
	X(CQE_RECV, cqe_recv)						\
	X(CQ_OVERRUN, cq_overrun)					\
	X(SA, sa)

enum vhca_fault_kind {
#define X(kind, name) VHCA_FAULT_##kind,
	VHCA_FAULTS(X)
#undef X
	VHCA_NUM_FAULTS
};

/* Settings beside the odds: name, default, least, most. */
#define VHCA_FAULT_ARGS(X)						\
	X(seed, 1, 0, U32_MAX)						\
	X(mads, 0, 0, 1)	/* link faults hit QP0 and QP1, too */	\
	X(delay_us, 1000, 0, 10000000)					\
	X(post_send_wr, 0, 0, U16_MAX)	/* position in the chain */	\
	X(post_send_errno, 12, 1, MAX_ERRNO)				\
	X(post_recv_wr, 0, 0, U16_MAX)					\
	X(cqe_status, 21, 1, 21)	/* enum ib_wc_status */		\
	X(sa_status, 0, 0, U16_MAX)	/* 0: stay silent */

enum vhca_fault_arg {
#define X(name, def, least, most) VHCA_ARG_##name,
	VHCA_FAULT_ARGS(X)
#undef X
	VHCA_NUM_FAULT_ARGS
};

/* One debugfs file of one number. */
struct vhca_knob {
	struct vhca_dev *dev;
	u32 *value;
	u32 least;
	u32 most;
};

#define VHCA_NUM_KNOBS	(2 * VHCA_NUM_FAULTS + VHCA_NUM_FAULT_ARGS)

struct vhca_faults {
	spinlock_t lock;
	unsigned long armed;		/* bit: enum vhca_fault_kind */
	u32 permille[VHCA_NUM_FAULTS];
	u32 next[VHCA_NUM_FAULTS];	/* so many times for sure */
	u32 arg[VHCA_NUM_FAULT_ARGS];
	struct rnd_state rnd;
	struct vhca_knob knobs[VHCA_NUM_KNOBS];
};

#define VHCA_LINK_FAULTS						\
	(BIT(VHCA_FAULT_LOSS) | BIT(VHCA_FAULT_DUPLICATE) |		\
	 BIT(VHCA_FAULT_REORDER) | BIT(VHCA_FAULT_DELAY))

#endif /* VHCA_FAULTS_H */
