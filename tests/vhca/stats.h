/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of one HCA: per CPU, so that counting is one instruction; summed
 * when debugfs .../vhcaN/stats is read (stats.c). The names are stable.
 * QP0 and QP1 are counted apart, under mad_*: the data counters are exactly
 * what the upper layer's own QPs did.
 */
#ifndef VHCA_STATS_H
#define VHCA_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

#define VHCA_COUNTERS(X)						\
	X(doorbells)		/* post_send calls that queued a WR */	\
	X(send_wrs)							\
	X(signalled_wrs)						\
	X(chain_len_1)		/* WRs per post_send call */		\
	X(chain_len_2_3)						\
	X(chain_len_4_7)						\
	X(chain_len_8_15)						\
	X(chain_len_16_31)						\
	X(chain_len_32_63)						\
	X(chain_len_64_plus)						\
	X(xmit_more)		/* of those, with netdev_xmit_more() */ \
	X(send_refused)		/* post_send calls that returned an error */ \
	X(recv_posts)		/* post_recv calls */			\
	X(recv_wrs)							\
	X(srq_posts)							\
	X(srq_wrs)							\
	X(recv_refused)							\
	X(mad_doorbells)						\
	X(mad_send_wrs)							\
	X(mad_recv_wrs)							\
	X(cqes_send)							\
	X(cqes_recv)							\
	X(cqes_error)		/* of both, status not success */	\
	X(cqes_flush)		/* of those, WR_FLUSH_ERR */		\
	X(cq_events)							\
	X(mad_cqes)							\
	X(mad_cq_events)						\
	X(tx_packets)		/* UD packets and RC segments */	\
	X(tx_bytes)		/* their payload */			\
	X(rx_packets)							\
	X(rx_bytes)							\
	X(mad_tx_packets)						\
	X(mad_rx_packets)						\
	X(tx_mcast_packets)						\
	X(rx_mcast_packets)						\
	X(lso_wrs)							\
	X(rc_messages)		/* RC messages acknowledged */		\
	X(rc_retries)		/* RC requests sent again */		\
	X(rc_seq_naks)		/* PSN sequence NAKs received */	\
	X(rc_duplicates)	/* RC requests received twice */	\
	X(rnr_naks)		/* RNR NAKs sent */			\
	X(rnr_naks_received)						\
	X(rnr_exhausted)						\
	X(retry_exhausted)						\
	X(qp_errors)		/* QPs moved to SQE or ERR by an error */ \
	X(cq_overruns)							\
	X(srq_limit_events)						\
	X(drop_no_route)						\
	X(drop_port_down)						\
	X(drop_no_qp)							\
	X(drop_qp_state)						\
	X(drop_qp_type)							\
	X(drop_pkey)							\
	X(drop_qkey)							\
	X(drop_no_recv_wr)						\
	X(drop_too_long)						\
	X(drop_no_member)	/* multicast, nobody attached */	\
	X(drop_recv_error)	/* receive WR with a bad lkey or address */ \
	X(drop_cq_error)	/* CQE lost: the CQ is in error */	\
	X(drop_no_memory)	/* no memory to keep a delayed packet */ \
	X(drop_fault)		/* lost on demand */			\
	X(fault_duplicates)						\
	X(fault_reorders)						\
	X(fault_delays)							\
	X(fault_rnr)							\
	X(fault_post_send)						\
	X(fault_post_recv)						\
	X(fault_cqe)							\
	X(fault_sa)

enum vhca_counter {
#define X(name) VHCA_CNT_##name,
	VHCA_COUNTERS(X)
#undef X
	VHCA_NUM_COUNTERS
};

struct vhca_counters {
	u64 v[VHCA_NUM_COUNTERS];
};

#define vhca_count(dev, name) \
	this_cpu_inc((dev)->counters->v[VHCA_CNT_##name])
#define vhca_count_n(dev, name, n) \
	this_cpu_add((dev)->counters->v[VHCA_CNT_##name], (n))

#endif /* VHCA_STATS_H */
