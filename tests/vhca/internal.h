/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions shared by the files of the HCA side. */
#ifndef VHCA_INTERNAL_H
#define VHCA_INTERNAL_H

#include "vhca.h"

extern struct workqueue_struct *vhca_cq_wq;	/* BH: CQ events */
extern struct workqueue_struct *vhca_event_wq;	/* QP, CQ, SRQ events */

/* device.c */
struct vhca_dev *vhca_dev_add(unsigned int index);
void vhca_dev_remove(struct vhca_dev *dev);

/* port.c */
int vhca_query_port(struct ib_device *ibdev, u32 port_num,
		    struct ib_port_attr *attr);
int vhca_modify_port(struct ib_device *ibdev, u32 port_num, int mask,
		     struct ib_port_modify *modify);
int vhca_query_gid(struct ib_device *ibdev, u32 port_num, int index,
		   union ib_gid *gid);
int vhca_query_pkey(struct ib_device *ibdev, u32 port_num, u16 index,
		    u16 *pkey);

/* ah.c */
int vhca_av_from_attr(struct vhca_av *av, const struct rdma_ah_attr *attr);
void vhca_av_to_attr(const struct vhca_av *av, struct rdma_ah_attr *attr);
int vhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata);
int vhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vhca_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vhca_destroy_ah(struct ib_ah *ibah, u32 flags);

/* mr.c */
int vhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *vhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *vhca_reg_user_mr(VHCA_REG_USER_MR_ARGS);
int vhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
bool vhca_sges_ok(struct ib_pd *ibpd, const struct ib_sge *sge, u32 n,
		  bool write);

/* event.c */
void vhca_events_init(struct vhca_events *ev, struct ib_device *ibdev,
		      enum vhca_event_kind kind, void *object);
void vhca_events_raise(struct vhca_events *ev, enum ib_event_type type);
void vhca_events_stop(struct vhca_events *ev);

/* cq.c */
int vhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs);
int vhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int vhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int vhca_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int vhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags notify);
bool vhca_cq_add(struct vhca_wire *wire, struct vhca_cq *cq,
		 const struct ib_wc *wc, u32 sq_retire, bool is_send,
		 bool solicited);
void vhca_cq_raise(struct vhca_cq *cq);
void vhca_cq_purge(struct vhca_cq *cq, struct vhca_qp *qp);
void vhca_cq_wait_events(struct vhca_cq *cq);

/* rq.c */
enum vhca_take { VHCA_TAKE_OK, VHCA_TAKE_EMPTY, VHCA_TAKE_TOO_SHORT };

static inline size_t vhca_rwqe_bytes(u32 num_sge)
{
	return struct_size_t(struct vhca_rwqe, sge, num_sge);
}

int vhca_rq_init(struct vhca_rq *rq, u32 max_wr, u32 max_sge);
void vhca_rq_free(struct vhca_rq *rq);
int vhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad);
int vhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad);
enum vhca_take vhca_rq_take(struct vhca_qp *qp, u32 need,
			    struct vhca_rwqe *out);

/* srq.c */
int vhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		    struct ib_udata *udata);
int vhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata);
int vhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int vhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);

/* post.c */
static inline struct vhca_swqe *vhca_sq_slot(struct vhca_sq *sq, u32 index)
{
	return sq->ring + (size_t)(index & (sq->slots - 1)) * sq->stride;
}

/* The next WQE to execute, or NULL. tx_mutex is held. */
static inline struct vhca_swqe *vhca_sq_next(struct vhca_sq *sq)
{
	if (sq->exec == smp_load_acquire(&sq->head))
		return NULL;
	return vhca_sq_slot(sq, sq->exec);
}

int vhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad);

/* qp.c, qp_modify.c */
static inline bool vhca_qp_is_mad(const struct vhca_qp *qp)
{
	return qp->qpn <= 1;
}

struct vhca_qp *vhca_qp_get(struct vhca_dev *dev, u32 qpn);
void vhca_qp_put(struct vhca_qp *qp);
void vhca_qp_ask_error(struct vhca_qp *qp);
int vhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata);
int vhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int vhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);
int vhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
void vhca_qp_to_error(struct vhca_qp *qp);
void vhca_qp_to_sqe(struct vhca_qp *qp);

/* mcast.c */
void vhca_mcast_init(struct vhca_dev *dev);
void vhca_mcast_exit(struct vhca_dev *dev);
int vhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid);
int vhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid);
struct vhca_qp *vhca_mcast_next(struct vhca_dev *dev, const union ib_gid *mgid,
				unsigned int *pos);

/* recv.c */
unsigned int vhca_mcast_receive(struct vhca_port *port,
				const struct vhca_pkt *pkt);

/* wire.c */
int vhca_wire_start(struct vhca_dev *dev);
void vhca_wire_stop(struct vhca_dev *dev);
void vhca_wire_kick(struct vhca_qp *qp);
void vhca_wire_wait(struct vhca_wire *wire, struct vhca_qp *qp, u64 until_ns);
void vhca_wire_disarm(struct vhca_qp *qp);
void vhca_wire_delay(struct vhca_wire *wire, struct vhca_timed *timed,
		     u64 until_ns);
bool vhca_wire_cancel_delay(struct vhca_wire *wire, struct vhca_timed *timed);

/* complete.c: CQEs. tx_mutex or rx_mutex of the QP is held. */
void vhca_complete_send(struct vhca_wire *wire, struct vhca_qp *qp,
			struct vhca_swqe *swqe, enum ib_wc_status status);
void vhca_complete_recv(struct vhca_wire *wire, struct vhca_qp *qp,
			struct ib_wc *wc, bool solicited);
void vhca_flush_send(struct vhca_wire *wire, struct vhca_qp *qp);
void vhca_flush_recv(struct vhca_wire *wire, struct vhca_qp *qp);

/* packet.c */
void vhca_copy_sg(const struct ib_sge *dst, u32 dst_off,
		  const struct ib_sge *src, u32 src_off, u32 len);
u32 vhca_slice_sg(struct ib_sge *out, const struct ib_sge *sge, u32 off,
		  u32 len);

/* egress.c: a packet leaves an HCA */
struct vhca_delayed;
void vhca_egress(struct vhca_wire *wire, const struct vhca_pkt *pkt);
void vhca_inject(struct vhca_port *port, const struct vhca_pkt *pkt);
void vhca_emit(struct vhca_port *port, const struct vhca_pkt *pkt);
void vhca_delayed_run(struct vhca_wire *wire, struct vhca_timed *timed);
void vhca_delayed_free(struct vhca_wire *wire, struct vhca_timed *timed);

/* ud.c */
void vhca_ud_run(struct vhca_wire *wire, struct vhca_qp *qp);

/* csum.c, lso.c */
#define VHCA_IPOIB_HDR	4
/* LSO header, then the head that checksums are written to. */
#define VHCA_SCRATCH_BYTES	(2 * VHCA_MAX_LSO_HDR)

struct vhca_ip {
	u8 *l3;			/* IP header */
	bool v6;
	u8 proto;
	u32 l4_off;		/* from the IPoIB header */
	u32 check_off;		/* of the TCP or UDP checksum */
};

bool vhca_ip_parse(u8 *head, u32 len, struct vhca_ip *ip);
void vhca_csum_fill(struct vhca_wire *wire, struct vhca_pkt *pkt,
		    struct ib_sge *sge);
bool vhca_csum_check(const struct vhca_pkt *pkt);
enum ib_wc_status vhca_lso_send(struct vhca_wire *wire, struct vhca_pkt *pkt,
				struct vhca_swqe *swqe, u32 mtu);

/* rc.c, rc_resp.c */
enum vhca_rc_verdict {
	VHCA_RC_ACK,
	VHCA_RC_LOST,		/* no answer */
	VHCA_RC_RNR,
	VHCA_RC_SEQ,		/* PSN sequence error */
	VHCA_RC_INV_REQ,
	VHCA_RC_ACCESS,
	VHCA_RC_OP_ERR,
};

struct vhca_rc_pkt {
	u32 psn;
	u32 src_off;		/* of this segment in the message */
	u32 length;
	bool first;
	bool last;
	u16 slid;
	const struct vhca_swqe *swqe;
};

void vhca_rc_run(struct vhca_wire *wire, struct vhca_qp *qp);
enum vhca_rc_verdict vhca_rc_receive(struct vhca_wire *wire,
				     struct vhca_qp *qp,
				     const struct vhca_rc_pkt *pkt);

/* faults.c */
bool vhca_fault_decide(struct vhca_dev *dev, enum vhca_fault_kind kind);

static inline bool vhca_fault_armed(struct vhca_dev *dev, unsigned long kinds)
{
	return unlikely(READ_ONCE(dev->faults.armed) & kinds);
}

static inline bool vhca_fault_hit(struct vhca_dev *dev,
				  enum vhca_fault_kind kind)
{
	return vhca_fault_armed(dev, BIT(kind)) &&
	       vhca_fault_decide(dev, kind);
}

/* May a packet that leaves now meet a fault? */
static inline bool vhca_fault_on_link(struct vhca_dev *dev, bool mad)
{
	return vhca_fault_armed(dev, VHCA_LINK_FAULTS) &&
	       (!mad || READ_ONCE(dev->faults.arg[VHCA_ARG_mads]));
}

static inline bool vhca_fault_cq_overrun(struct vhca_dev *dev)
{
	return vhca_fault_hit(dev, VHCA_FAULT_CQ_OVERRUN);
}

u64 vhca_fault_delay_ns(struct vhca_dev *dev);
enum ib_wc_status vhca_fault_cqe_status(struct vhca_dev *dev);
void vhca_faults_init(struct vhca_dev *dev);
int vhca_fault_post_send(struct vhca_dev *dev, int *err);
int vhca_fault_post_recv(struct vhca_dev *dev);
u64 vhca_fault_due(struct vhca_qp *qp);
int vhca_fault_write(struct vhca_dev *dev, const char *name, u32 value);
void vhca_faults_add(struct vhca_dev *dev);

/* sa_fault.c */
bool vhca_sa_fault(struct vhca_wire *wire, const struct vhca_pkt *pkt);

/* triggers.c */
int vhca_trigger(struct vhca_dev *dev, const char *name, const char *value);
void vhca_triggers_add(struct vhca_dev *dev, struct dentry *dir);

/* tap.c */
void vhca_tap_init(struct vhca_dev *dev);
void vhca_tap_exit(struct vhca_dev *dev);
void vhca_tap_take(struct vhca_dev *dev, const struct vhca_pkt *pkt);
void vhca_tap_add(struct vhca_dev *dev);

/* vf.c */
int vhca_set_vf_guid(struct ib_device *ibdev, int vf, u32 port, u64 guid,
		     int type);
int vhca_get_vf_guid(struct ib_device *ibdev, int vf, u32 port,
		     struct ifla_vf_guid *node, struct ifla_vf_guid *port_guid);
int vhca_set_vf_link_state(struct ib_device *ibdev, int vf, u32 port,
			   int state);
int vhca_get_vf_config(struct ib_device *ibdev, int vf, u32 port,
		       struct ifla_vf_info *info);
void vhca_vfs_add(struct vhca_dev *dev);

/* stats.c */
long long vhca_stats_read(struct vhca_dev *dev, const char *name);
int vhca_stats_init(struct vhca_dev *dev);
void vhca_stats_exit(struct vhca_dev *dev);
void vhca_debugfs_init(void);
void vhca_debugfs_exit(void);
void vhca_debugfs_add(struct vhca_dev *dev);
void vhca_debugfs_remove(struct vhca_dev *dev);

#endif /* VHCA_INTERNAL_H */
