/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between Linux 6.12 and 7.x, all in one place. */
#ifndef VHCA_COMPAT_H
#define VHCA_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>

/* 6.19 adds the DMA handle. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define VHCA_REG_USER_MR_ARGS						\
	struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,	\
	int access, struct ib_dmah *dmah, struct ib_udata *udata
#else
#define VHCA_REG_USER_MR_ARGS						\
	struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,	\
	int access, struct ib_udata *udata
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

/* 6.17: a workqueue that is not unbound says that it is per CPU. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define WQ_PERCPU 0
#endif

#endif /* VHCA_COMPAT_H */
