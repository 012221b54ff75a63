// SPDX-License-Identifier: GPL-2.0-only
/*
 * MADs at the switch: directed-route SMPs on their way through it (IBA 14.2.2),
 * and the MADs that are for the switch itself.
 */
#include "switch.h"

/* Where a directed-route SMP goes from here. */
enum dr_next {
	DR_DISCARD,
	DR_LOCAL,	/* to this switch's SMA */
	DR_PORT,	/* out of port *@out */
	DR_LID,		/* the directed part is over: on to LID *@lid */
};

/* The outbound half: C14-9. @in is the port that the SMP came in by. */
static enum dr_next dr_outbound(struct ib_smp *smp, u8 in, u8 *out, u16 *lid)
{
	/* It came here by LID: the directed part begins at this switch. */
	if (smp->hop_cnt && !smp->hop_ptr) {
		*out = smp->initial_path[++smp->hop_ptr];
		return DR_PORT;
	}
	if (smp->hop_ptr && smp->hop_ptr < smp->hop_cnt) {
		smp->return_path[smp->hop_ptr++] = in;
		*out = smp->initial_path[smp->hop_ptr];
		return DR_PORT;
	}
	if (smp->hop_ptr == smp->hop_cnt) {
		if (smp->hop_cnt)
			smp->return_path[smp->hop_ptr] = in;
		smp->hop_ptr++;
		if (smp->dr_dlid == IB_LID_PERMISSIVE)
			return DR_LOCAL;
		*lid = be16_to_cpu(smp->dr_dlid);
		return DR_LID;
	}
	return smp->hop_ptr == smp->hop_cnt + 1 ? DR_LOCAL : DR_DISCARD;
}

/* The way back: C14-13. A response never ends at a switch without an SM. */
static enum dr_next dr_return(struct ib_smp *smp, u8 *out, u16 *lid)
{
	if (smp->hop_ptr >= 2 && smp->hop_ptr <= smp->hop_cnt + 1) {
		*out = smp->return_path[--smp->hop_ptr];
		return DR_PORT;
	}
	if (smp->hop_ptr != 1)
		return DR_DISCARD;
	smp->hop_ptr = 0;
	if (smp->dr_slid == IB_LID_PERMISSIVE)
		return DR_DISCARD;
	*lid = be16_to_cpu(smp->dr_slid);
	return DR_LID;
}

static unsigned int send_by_port(struct vhca_wire *wire, u8 out, u16 slid,
				 u16 dlid, void *mad)
{
	struct vhca_pkt pkt = {
		.slid = slid,
		.dlid = dlid,
		.vl15 = true,
		.pkey = IB_DEFAULT_PKEY_FULL,
		.wire = wire,
	};
	struct vhca_sw_port *p;
	struct vhca_port *dst;
	struct ib_sge sge;

	if (!out || out > vhca_sw.num_ports)
		return 0;
	p = &vhca_sw.port[out];
	dst = READ_ONCE(p->hca);
	if (!dst || READ_ONCE(p->phys) != IB_PORT_PHYS_STATE_LINK_UP)
		return 0;
	vhca_pkt_set_payload(&pkt, &sge, mad, IB_MGMT_MAD_SIZE);
	vhca_port_deliver(dst, &pkt);
	return 1;
}

static unsigned int send_by_lid(struct vhca_wire *wire, u16 slid, u16 dlid,
				void *mad)
{
	struct vhca_pkt pkt = {
		.slid = slid,
		.dlid = dlid,
		.vl15 = true,
		.pkey = IB_DEFAULT_PKEY_FULL,
		.wire = wire,
	};
	struct ib_sge sge;

	vhca_pkt_set_payload(&pkt, &sge, mad, IB_MGMT_MAD_SIZE);
	return vhca_switch_send(&pkt);
}

static unsigned int directed_route(struct vhca_wire *wire, u8 in, u16 slid,
				   struct ib_smp *smp)
{
	enum dr_next next;
	u16 lid = 0;
	u8 out = 0;

	/* The paths have 64 entries, of which entry 0 is not used. */
	if (smp->hop_cnt >= IB_SMP_MAX_PATH_HOPS)
		return 0;
	if (ib_get_smp_direction(smp)) {
		next = dr_return(smp, &out, &lid);
	} else {
		next = dr_outbound(smp, in, &out, &lid);
		if (next == DR_LOCAL) {
			if (!vhca_switch_sma(smp, in))
				return 1;
			/* With no directed part the answer goes by LID. */
			next = dr_return(smp, &out, &lid);
			if (next == DR_DISCARD && !smp->hop_cnt)
				return send_by_port(wire, in,
						    VHCA_PERMISSIVE_LID, slid,
						    smp);
		}
	}
	switch (next) {
	case DR_PORT:
		return send_by_port(wire, out, VHCA_PERMISSIVE_LID,
				    VHCA_PERMISSIVE_LID, smp);
	case DR_LID:
		return send_by_lid(wire, slid, lid, smp);
	default:
		return 0;
	}
}

/* Takes the MAD out of a packet; false if it does not carry one. */
static bool copy_mad(const struct vhca_pkt *pkt, void *mad)
{
	return pkt->length == IB_MGMT_MAD_SIZE &&
	       vhca_pkt_copy_out(pkt, 0, mad, IB_MGMT_MAD_SIZE) ==
		       IB_MGMT_MAD_SIZE;
}

unsigned int vhca_switch_smp(struct vhca_port *src, const struct vhca_pkt *pkt)
{
	bool permissive = pkt->dlid == VHCA_PERMISSIVE_LID;
	u8 in = src->dev->index + 1;
	struct vhca_port *dst;
	struct ib_smp smp __aligned(8);

	if (READ_ONCE(vhca_sw.port[in].phys) != IB_PORT_PHYS_STATE_LINK_UP)
		return 0;
	if (!permissive && pkt->dlid != READ_ONCE(vhca_sw.lid)) {
		dst = vhca_switch_out(pkt->dlid, true);
		if (!dst || dst == src)
			return 0;
		vhca_port_deliver(dst, pkt);
		return 1;
	}
	if (!copy_mad(pkt, &smp))
		return 0;
	if (smp.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		return directed_route(pkt->wire, in, pkt->slid, &smp);
	if (smp.mgmt_class != IB_MGMT_CLASS_SUBN_LID_ROUTED)
		return 0;
	if (!vhca_switch_sma(&smp, in))
		return 1;
	if (permissive)
		return send_by_port(pkt->wire, in, VHCA_PERMISSIVE_LID,
				    pkt->slid, &smp);
	return send_by_lid(pkt->wire, pkt->dlid, pkt->slid, &smp);
}

/* ---- performance management of the switch ----------------------------------- */

/* Read with the fabric lock held. What a port receives, its HCA has sent. */
static void read_counters(void *arg, unsigned int port, u64 *c)
{
	struct vhca_sw_port *p = &vhca_sw.port[port];
	struct vhca_port *hca = READ_ONCE(p->hca);

	memset(c, 0, VHCA_PMA_NUM * sizeof(*c));
	c[VHCA_PMA_LINK_DOWNED] = READ_ONCE(p->link_downed);
	if (!hca)
		return;
	vhca_pma_read_port(hca, c);
	swap(c[VHCA_PMA_XMIT_DATA], c[VHCA_PMA_RCV_DATA]);
	swap(c[VHCA_PMA_XMIT_PKTS], c[VHCA_PMA_RCV_PKTS]);
	swap(c[VHCA_PMA_UC_XMIT_PKTS], c[VHCA_PMA_UC_RCV_PKTS]);
	swap(c[VHCA_PMA_MC_XMIT_PKTS], c[VHCA_PMA_MC_RCV_PKTS]);
	/* Errors and discards belong to the HCA's end. */
	c[VHCA_PMA_RCV_ERRORS] = 0;
	c[VHCA_PMA_XMIT_DISCARDS] = 0;
}

static struct vhca_pma *counters_base(void *arg, unsigned int port)
{
	return &vhca_sw.port[port].sma.pma;
}

unsigned int vhca_switch_gmp(struct vhca_port *src, const struct vhca_pkt *pkt)
{
	const struct vhca_pma_ops ops = {
		.first_port = 1,
		.last_port = vhca_sw.num_ports,
		.read = read_counters,
		.base = counters_base,
	};
	struct vhca_pkt reply;
	struct ib_pma_mad mad __aligned(8);
	struct ib_sge sge;
	u16 status;

	if (pkt->dst_qpn != 1 || pkt->qkey != IB_QP1_QKEY ||
	    !copy_mad(pkt, &mad))
		return 0;
	if (mad.mad_hdr.method & IB_MGMT_METHOD_RESP)
		return 1;
	status = mad.mad_hdr.mgmt_class == IB_MGMT_CLASS_PERF_MGMT ?
			 vhca_pma_answer(&mad, &ops, NULL) : VHCA_MAD_BAD_ATTR;
	vhca_mad_respond(&mad.mad_hdr, status);

	reply = *pkt;
	swap(reply.slid, reply.dlid);
	swap(reply.src_qpn, reply.dst_qpn);
	swap(reply.grh.sgid, reply.grh.dgid);
	reply.has_imm = false;
	vhca_pkt_set_payload(&reply, &sge, &mad, sizeof(mad));
	return vhca_switch_send(&reply);
}
