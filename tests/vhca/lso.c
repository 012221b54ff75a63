// SPDX-License-Identifier: GPL-2.0-only
/* Large send offload: one WR, many TCP segments (tso=1). */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>

#include "internal.h"

/* Makes the header that of the segment at @off of the WR's payload. */
static void vhca_lso_header(u8 *hdr, u32 hlen, struct vhca_ip *ip, u32 nth,
			    u32 off, u32 len, bool last)
{
	struct tcphdr *tcp = (struct tcphdr *)(hdr + ip->l4_off);
	struct iphdr *v4 = (struct iphdr *)ip->l3;

	if (ip->v6) {
		((struct ipv6hdr *)ip->l3)->payload_len =
			cpu_to_be16(hlen - ip->l4_off + len);
	} else {
		v4->tot_len = cpu_to_be16(hlen - VHCA_IPOIB_HDR + len);
		v4->id = cpu_to_be16(be16_to_cpu(v4->id) + nth);
	}
	tcp->seq = cpu_to_be32(be32_to_cpu(tcp->seq) + off);
	if (!last) {
		tcp->fin = 0;
		tcp->psh = 0;
	}
	if (nth)
		tcp->cwr = 0;
}

/* tx_mutex and the fabric lock are held. */
enum ib_wc_status vhca_lso_send(struct vhca_wire *wire, struct vhca_pkt *pkt,
				struct vhca_swqe *swqe, u32 mtu)
{
	struct ib_sge seg[VHCA_MAX_SGE + 1], sums[VHCA_MAX_SGE + 2];
	u32 off = 0, nth = 0, len;
	u8 *hdr = wire->scratch;
	struct vhca_ip ip;

	if (swqe->hlen + swqe->mss > mtu)
		return IB_WC_LOC_LEN_ERR;
	if (!vhca_ip_parse(swqe->hdr, swqe->hlen, &ip) ||
	    ip.proto != IPPROTO_TCP ||
	    ip.l4_off + sizeof(struct tcphdr) > swqe->hlen)
		return IB_WC_LOC_QP_OP_ERR;
	vhca_count(wire->dev, lso_wrs);
	do {
		len = min_t(u32, swqe->mss, swqe->length - off);
		memcpy(hdr, swqe->hdr, swqe->hlen);
		ip.l3 = hdr + VHCA_IPOIB_HDR;
		vhca_lso_header(hdr, swqe->hlen, &ip, nth++, off, len,
				off + len == swqe->length);
		seg[0].addr = (uintptr_t)hdr;
		seg[0].length = swqe->hlen;
		seg[0].lkey = 0;
		pkt->num_sge = 1 + vhca_slice_sg(seg + 1, swqe->sge, off, len);
		pkt->sg = seg;
		pkt->length = swqe->hlen + len;
		pkt->csum_ok = 0;
		vhca_csum_fill(wire, pkt, sums);
		vhca_egress(wire, pkt);
		off += len;
	} while (off < swqe->length);
	return IB_WC_SUCCESS;
}
