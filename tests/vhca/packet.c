// SPDX-License-Identifier: GPL-2.0-only
/* Bytes: copies between lists of SGEs. */
#include "internal.h"

static void *vhca_sge_at(const struct ib_sge *sge, u32 off)
{
	return (void *)(uintptr_t)(sge->addr + off);
}

/* Both lists hold the range; the callers have checked their lengths. */
void vhca_copy_sg(const struct ib_sge *dst, u32 dst_off,
		  const struct ib_sge *src, u32 src_off, u32 len)
{
	u32 n;

	while (len) {
		while (dst_off >= dst->length)
			dst_off -= dst++->length;
		while (src_off >= src->length)
			src_off -= src++->length;
		n = min3(len, dst->length - dst_off, src->length - src_off);
		memcpy(vhca_sge_at(dst, dst_off), vhca_sge_at(src, src_off), n);
		dst_off += n;
		src_off += n;
		len -= n;
	}
}

/* Describes @len bytes from @off of @sge in @out; returns the SGEs used. */
u32 vhca_slice_sg(struct ib_sge *out, const struct ib_sge *sge, u32 off,
		  u32 len)
{
	u32 n = 0;

	while (len) {
		while (off >= sge->length)
			off -= sge++->length;
		out[n].addr = sge->addr + off;
		out[n].length = min(len, sge->length - off);
		out[n].lkey = 0;
		off += out[n].length;
		len -= out[n].length;
		n++;
	}
	return n;
}

u32 vhca_pkt_copy_out(const struct vhca_pkt *pkt, u32 off, void *buf, u32 len)
{
	struct ib_sge dst = { .addr = (uintptr_t)buf };

	if (off >= pkt->length)
		return 0;
	dst.length = min(len, pkt->length - off);
	vhca_copy_sg(&dst, 0, pkt->sg, off, dst.length);
	return dst.length;
}
