// SPDX-License-Identifier: GPL-2.0-only
/* Sends of UD, SMI and GSI QPs. */
#include "internal.h"

static void vhca_fill_grh(struct vhca_port *port, struct vhca_pkt *pkt,
			  const struct vhca_av *av)
{
	/* BTH and DETH before the payload, ICRC behind it, padded to 4. */
	u32 length = IB_BTH_BYTES + IB_DETH_BYTES +
		     (pkt->has_imm ? sizeof(pkt->imm) : 0) +
		     ALIGN(pkt->length, 4) + 4;

	pkt->has_grh = av->has_grh;
	if (!av->has_grh)
		return;
	pkt->grh.version_tclass_flow = cpu_to_be32(6U << 28 |
						   av->traffic_class << 20 |
						   (av->flow_label & 0xfffff));
	pkt->grh.paylen = cpu_to_be16(length);
	pkt->grh.next_hdr = 0x1b;
	pkt->grh.hop_limit = av->hop_limit;
	vhca_port_gid(port, av->sgid_index, &pkt->grh.sgid);
	pkt->grh.dgid = av->dgid;
}

/* False: the QP has no valid P_Key now, the packet cannot be built. */
static bool vhca_fill_pkey(struct vhca_qp *qp, struct vhca_pkt *pkt,
			   const struct vhca_swqe *swqe)
{
	struct vhca_port *port = &qp->dev->port;

	switch (qp->ibqp.qp_type) {
	case IB_QPT_SMI:
		pkt->pkey = 0xffff;
		return true;
	case IB_QPT_GSI:
		pkt->pkey = READ_ONCE(port->pkeys[swqe->pkey_index]);
		break;
	default:
		pkt->pkey = READ_ONCE(port->pkeys[qp->attr.pkey_index]);
	}
	return pkt->pkey & 0x7fff;
}

static bool vhca_fill_pkt(struct vhca_wire *wire, struct vhca_qp *qp,
			  struct vhca_pkt *pkt, const struct vhca_swqe *swqe)
{
	struct vhca_port *port = &qp->dev->port;
	const struct vhca_av *av = &swqe->av;
	u8 lmc = READ_ONCE(port->lmc);

	pkt->dlid = av->dlid;
	if (av->dlid == VHCA_PERMISSIVE_LID)
		pkt->slid = VHCA_PERMISSIVE_LID;
	else
		pkt->slid = READ_ONCE(port->lid) |
			    (av->src_path_bits & ((1U << lmc) - 1));
	pkt->sl = av->sl;
	pkt->has_imm = swqe->opcode == IB_WR_SEND_WITH_IMM;
	pkt->solicited = !!(swqe->flags & IB_SEND_SOLICITED);
	pkt->vl15 = qp->ibqp.qp_type == IB_QPT_SMI;
	pkt->csum_ok = 0;
	pkt->src_qpn = qp->qpn;
	pkt->dst_qpn = swqe->remote_qpn;
	pkt->qkey = swqe->qkey;
	pkt->imm = swqe->imm;
	pkt->length = swqe->length;
	pkt->num_sge = swqe->num_sge;
	pkt->sg = swqe->sge;
	pkt->wire = wire;
	vhca_fill_grh(port, pkt, av);
	return vhca_fill_pkey(qp, pkt, swqe);
}

static enum ib_wc_status vhca_ud_send(struct vhca_wire *wire,
				      struct vhca_qp *qp,
				      struct vhca_swqe *swqe)
{
	struct ib_sge sge[VHCA_MAX_SGE + 1];
	struct vhca_dev *dev = wire->dev;
	bool mad = vhca_qp_is_mad(qp);
	struct vhca_pkt pkt;
	u32 mtu;

	mtu = mad ? IB_MGMT_MAD_SIZE :
		    ib_mtu_enum_to_int(READ_ONCE(dev->port.active_mtu));
	if (!vhca_sges_ok(qp->ibqp.pd, swqe->sge, swqe->num_sge, false))
		return IB_WC_LOC_PROT_ERR;
	if (swqe->opcode != IB_WR_LSO && swqe->length > mtu)
		return IB_WC_LOC_LEN_ERR;
	if (!mad && unlikely(vhca_fault_hit(dev, VHCA_FAULT_CQE))) {
		vhca_count(dev, fault_cqe);
		return vhca_fault_cqe_status(dev);
	}
	if (!vhca_fill_pkt(wire, qp, &pkt, swqe)) {
		vhca_count(dev, drop_pkey);
		return IB_WC_SUCCESS;
	}
	if (swqe->opcode == IB_WR_LSO)
		return vhca_lso_send(wire, &pkt, swqe, mtu);
	if (swqe->flags & IB_SEND_IP_CSUM)
		vhca_csum_fill(wire, &pkt, sge);
	vhca_egress(wire, &pkt);
	return IB_WC_SUCCESS;
}

/* On the wire, tx_mutex held, state RTS. */
void vhca_ud_run(struct vhca_wire *wire, struct vhca_qp *qp)
{
	enum ib_wc_status status;
	struct vhca_swqe *swqe;

	while (wire->packets < vhca_wire_batch &&
	       (swqe = vhca_sq_next(&qp->sq))) {
		status = vhca_ud_send(wire, qp, swqe);
		/* SQE first: who polls the error may ask for the state. */
		if (status != IB_WC_SUCCESS)
			vhca_qp_to_sqe(qp);
		vhca_complete_send(wire, qp, swqe, status);
		if (status != IB_WC_SUCCESS)
			return;
	}
}
