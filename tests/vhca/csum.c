// SPDX-License-Identifier: GPL-2.0-only
/*
 * IP, TCP and UDP checksums of IPoIB packets: what csum=1 offloads. A payload
 * is the IPoIB header (4 bytes, RFC 4391 section 6) and the IP packet.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>

#include "internal.h"

/* IPoIB header, IPv4 with options or IPv6, TCP's fixed part. */
#define VHCA_HEAD_BYTES	(VHCA_IPOIB_HDR + 60 + sizeof(struct tcphdr))

/* Finds the headers in the first @len bytes of a packet; see vhca_ip. */
bool vhca_ip_parse(u8 *head, u32 len, struct vhca_ip *ip)
{
	struct iphdr *v4;

	if (len < VHCA_IPOIB_HDR + sizeof(*v4))
		return false;
	ip->l3 = head + VHCA_IPOIB_HDR;
	v4 = (struct iphdr *)ip->l3;
	switch (be16_to_cpup((__be16 *)head)) {
	case ETH_P_IP:
		if (v4->version != 4 || v4->ihl < 5 || ip_is_fragment(v4))
			return false;
		ip->v6 = false;
		ip->proto = v4->protocol;
		ip->l4_off = VHCA_IPOIB_HDR + v4->ihl * 4;
		break;
	case ETH_P_IPV6:
		if (len < VHCA_IPOIB_HDR + sizeof(struct ipv6hdr))
			return false;
		ip->v6 = true;
		ip->proto = ((struct ipv6hdr *)ip->l3)->nexthdr;
		ip->l4_off = VHCA_IPOIB_HDR + sizeof(struct ipv6hdr);
		break;
	default:
		return false;
	}
	if (ip->proto == IPPROTO_TCP)
		ip->check_off = ip->l4_off + offsetof(struct tcphdr, check);
	else if (ip->proto == IPPROTO_UDP)
		ip->check_off = ip->l4_off + offsetof(struct udphdr, check);
	else
		return false;
	return len >= ip->check_off + sizeof(__sum16);
}

/* One's complement sum of the payload from @off on. */
static __wsum vhca_pkt_sum(const struct vhca_pkt *pkt, u32 off)
{
	const struct ib_sge *sge = pkt->sg;
	u32 len = pkt->length - off, done = 0, n;
	__wsum sum = 0;

	while (done < len) {
		while (off >= sge->length)
			off -= sge++->length;
		n = min(len - done, sge->length - off);
		sum = csum_block_add(sum,
				     csum_partial((void *)(uintptr_t)(sge->addr + off),
						  n, 0), done);
		done += n;
		off += n;
	}
	return sum;
}

static __sum16 vhca_l4_sum(const struct vhca_pkt *pkt, const struct vhca_ip *ip)
{
	const struct ipv6hdr *v6 = (const struct ipv6hdr *)ip->l3;
	const struct iphdr *v4 = (const struct iphdr *)ip->l3;
	__wsum sum = vhca_pkt_sum(pkt, ip->l4_off);
	u32 len = pkt->length - ip->l4_off;

	if (ip->v6)
		return csum_ipv6_magic(&v6->saddr, &v6->daddr, len, ip->proto,
				       sum);
	return csum_tcpudp_magic(v4->saddr, v4->daddr, len, ip->proto, sum);
}

/*
 * The sending HCA writes the checksums. The head is copied to the wire's
 * scratch memory, the payload stays where it is; @sge is the caller's, one
 * longer than the packet's own list. What is not TCP or UDP is left alone.
 */
void vhca_csum_fill(struct vhca_wire *wire, struct vhca_pkt *pkt,
		    struct ib_sge *sge)
{
	u8 *head = wire->scratch + VHCA_MAX_LSO_HDR;
	struct vhca_ip ip;
	struct iphdr *v4;
	__sum16 *check;
	u32 len;

	len = vhca_pkt_copy_out(pkt, 0, head, VHCA_HEAD_BYTES);
	if (!vhca_ip_parse(head, len, &ip))
		return;
	check = (__sum16 *)(head + ip.check_off);
	*check = 0;
	sge[0].addr = (uintptr_t)head;
	sge[0].length = len;
	sge[0].lkey = 0;
	pkt->num_sge = 1 + vhca_slice_sg(sge + 1, pkt->sg, len,
					 pkt->length - len);
	pkt->sg = sge;
	*check = vhca_l4_sum(pkt, &ip);
	if (ip.proto == IPPROTO_UDP && !*check)
		*check = CSUM_MANGLED_0;
	if (!ip.v6) {
		v4 = (struct iphdr *)ip.l3;
		ip_send_check(v4);
	}
	pkt->csum_ok = 1;
}

/* The receiving HCA checks what no HCA has filled in. */
bool vhca_csum_check(const struct vhca_pkt *pkt)
{
	u8 head[VHCA_HEAD_BYTES];
	struct vhca_ip ip;
	struct iphdr *v4;
	u32 len;

	len = vhca_pkt_copy_out(pkt, 0, head, sizeof(head));
	if (!vhca_ip_parse(head, len, &ip))
		return false;
	v4 = (struct iphdr *)ip.l3;
	if (!ip.v6 && ip_fast_csum(v4, v4->ihl))
		return false;
	if (ip.proto == IPPROTO_UDP && !*(__sum16 *)(head + ip.check_off))
		return !ip.v6;
	return !vhca_l4_sum(pkt, &ip);
}
