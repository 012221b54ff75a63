// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SA fault: SA requests that leave an HCA get no answer, or a status. It
 * acts where the request leaves, so it is the same for the module's own SA
 * and for that of a subnet manager.
 */
#include <rdma/ib_sa.h>

#include "internal.h"

static void vhca_sa_reject(struct vhca_wire *wire, const struct vhca_pkt *pkt,
			   struct ib_sa_mad *mad, u16 status)
{
	struct vhca_pkt reply = *pkt;
	struct ib_sge sge;

	vhca_mad_respond(&mad->mad_hdr, status);
	reply.slid = pkt->dlid;
	reply.dlid = pkt->slid;
	reply.src_qpn = pkt->dst_qpn;
	reply.dst_qpn = pkt->src_qpn;
	reply.has_grh = 0;
	vhca_pkt_set_payload(&reply, &sge, mad, sizeof(*mad));
	vhca_port_deliver(&wire->dev->port, &reply);
}

/* True: the packet is an SA request that the fault has dealt with. */
bool vhca_sa_fault(struct vhca_wire *wire, const struct vhca_pkt *pkt)
{
	struct ib_sa_mad mad;
	u16 status;

	if (pkt->dst_qpn != 1 || pkt->length != sizeof(mad))
		return false;
	vhca_pkt_copy_out(pkt, 0, &mad, sizeof(mad));
	if (mad.mad_hdr.mgmt_class != IB_MGMT_CLASS_SUBN_ADM ||
	    mad.mad_hdr.method & IB_MGMT_METHOD_RESP ||
	    !vhca_fault_hit(wire->dev, VHCA_FAULT_SA))
		return false;
	vhca_count(wire->dev, fault_sa);
	status = READ_ONCE(wire->dev->faults.arg[VHCA_ARG_sa_status]);
	if (status)
		vhca_sa_reject(wire, pkt, &mad, status);
	return true;
}
