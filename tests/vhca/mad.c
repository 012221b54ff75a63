// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the MAD layer hands MADs to this device, and how this device's own
 * agents send some.
 */
#include "vhca.h"

#define DR_DIRECTION	0x8000		/* of the status of a directed-route SMP */

void vhca_mad_respond(struct ib_mad_hdr *hdr, u16 status)
{
	if (hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		status |= DR_DIRECTION;
	hdr->status = cpu_to_be16(status);
	/* GetResp answers Get and Set; the SA's own methods have their own. */
	if (hdr->method == IB_MGMT_METHOD_SET)
		hdr->method = IB_MGMT_METHOD_GET_RESP;
	else
		hdr->method |= IB_MGMT_METHOD_RESP;
}

unsigned int vhca_mad_send(struct vhca_port *src, u16 dlid, u32 qpn,
			   u32 dst_qpn, void *mad)
{
	struct vhca_pkt pkt = {
		.slid = src ? READ_ONCE(src->lid) : vhca_switch_lid(),
		.dlid = dlid,
		.vl15 = qpn == 0,
		.pkey = IB_DEFAULT_PKEY_FULL,
		.src_qpn = qpn,
		.dst_qpn = dst_qpn,
		.qkey = qpn ? IB_QP1_QKEY : 0,
	};
	struct ib_sge sge;

	vhca_pkt_set_payload(&pkt, &sge, mad, IB_MGMT_MAD_SIZE);
	if (!src)
		return vhca_switch_send(&pkt);
	if (vhca_port_owns_lid(src, dlid)) {
		vhca_port_deliver(src, &pkt);
		return 1;
	}
	return vhca_switch_forward(src, &pkt);
}

/*
 * The MAD layer asks before it looks for an agent. Plain SUCCESS passes the MAD
 * on: to the subnet manager of this port, to whoever waits for a response.
 */
int vhca_process_mad(struct ib_device *ibdev, int mad_flags, u32 port_num,
		     const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		     const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index)
{
	struct vhca_port *port = &to_vdev(ibdev)->port;
	int result;

	switch (in->mad_hdr.mgmt_class) {
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
		*out = *in;
		return vhca_sma_process(port, (struct ib_smp *)out);
	case IB_MGMT_CLASS_PERF_MGMT:
		*out = *in;
		return vhca_pma_process(port, (struct ib_pma_mad *)out);
	case IB_MGMT_CLASS_SUBN_ADM:
		if (!vhca_managed)
			return IB_MAD_RESULT_SUCCESS;
		*out = *in;
		vhca_fabric_read_lock();
		result = vhca_sa_process(port, in_wc,
					 (struct ib_sa_mad *)out);
		vhca_fabric_read_unlock();
		return result;
	default:
		return IB_MAD_RESULT_SUCCESS;
	}
}
