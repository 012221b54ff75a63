// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection domains and memory regions. The only region is the kernel's DMA
 * region of a PD: addresses are kernel pointers (virtual DMA). Each PD has its
 * own lkey, so a WR with another PD's key fails as on a real HCA. No memory
 * can be reached from remote.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

#define VHCA_MAX_MR_INDEX	0xffffff

int vhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

/*
 * A PD with QPs, SRQs or AHs is not given up: the verb fails with "in use", as
 * IBA has it and as firmware does. ib_core counts, warns and keeps the PD; what
 * is destroyed late then finds it, and nothing is written to freed memory.
 */
int vhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int users = atomic_read(&ibpd->usecnt);

	if (users) {
		dev_warn(&ibpd->device->dev,
			 "a PD is given up while %d objects use it: refused\n",
			 users);
		return -EBUSY;
	}
	return 0;
}

struct ib_mr *vhca_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct vhca_dev *dev = to_vdev(ibpd->device);
	struct vhca_pd *pd = to_vpd(ibpd);
	struct vhca_mr *mr;
	u32 index;
	int ret;

	if (access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_RELAXED_ORDERING))
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	/* The core sets these after us; a WR may be checked before. */
	mr->ibmr.pd = ibpd;
	mr->access = access;
	ret = xa_alloc_cyclic(&dev->mrs, &index, mr,
			      XA_LIMIT(1, VHCA_MAX_MR_INDEX), &dev->next_mr,
			      GFP_KERNEL);
	if (ret < 0) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	/* The low byte is the consumer's part of a key (IBA 10.6.3). */
	mr->ibmr.lkey = index << 8 | 0x5a;
	mr->ibmr.rkey = 0;
	if (access & IB_ACCESS_LOCAL_WRITE)
		cmpxchg(&pd->lkey, 0, mr->ibmr.lkey);
	return &mr->ibmr;
}

struct ib_mr *vhca_reg_user_mr(VHCA_REG_USER_MR_ARGS)
{
	return ERR_PTR(-EOPNOTSUPP);
}

int vhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct vhca_dev *dev = to_vdev(ibmr->device);
	struct vhca_mr *mr = to_vmr(ibmr);

	cmpxchg(&to_vpd(ibmr->pd)->lkey, ibmr->lkey, 0);
	xa_erase(&dev->mrs, ibmr->lkey >> 8);
	kfree(mr);
	return 0;
}

static bool vhca_lkey_ok(struct vhca_pd *pd, u32 lkey, bool write)
{
	struct vhca_dev *dev = to_vdev(pd->ibpd.device);
	struct vhca_mr *mr;
	bool ok;

	if (likely(lkey == READ_ONCE(pd->lkey)))
		return lkey;
	xa_lock(&dev->mrs);
	mr = xa_load(&dev->mrs, lkey >> 8);
	ok = mr && mr->ibmr.lkey == lkey && mr->ibmr.pd == &pd->ibpd &&
	     (!write || mr->access & IB_ACCESS_LOCAL_WRITE);
	xa_unlock(&dev->mrs);
	return ok;
}

/*
 * True if each SGE may be used by the HCA: a key of the PD that allows it, and
 * memory of the direct map, as the DMA API asks (no stack, no vmalloc).
 */
bool vhca_sges_ok(struct ib_pd *ibpd, const struct ib_sge *sge, u32 n,
		  bool write)
{
	struct vhca_pd *pd = to_vpd(ibpd);
	u64 end;
	u32 i;

	for (i = 0; i < n; i++, sge++) {
		if (!sge->length)
			continue;
		if (!vhca_lkey_ok(pd, sge->lkey, write))
			return false;
		end = sge->addr + sge->length;
		if (sge->addr < PAGE_OFFSET || end < sge->addr ||
		    end > (uintptr_t)high_memory)
			return false;
	}
	return true;
}
