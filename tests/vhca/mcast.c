// SPDX-License-Identifier: GPL-2.0-only
/* Multicast: which QPs of an HCA are attached to which MGID. */
#include <linux/slab.h>

#include "internal.h"

struct vhca_attach {
	struct list_head node;
	struct vhca_qp *qp;
	union ib_gid mgid;
};

void vhca_mcast_init(struct vhca_dev *dev)
{
	spin_lock_init(&dev->mcast_lock);
	INIT_LIST_HEAD(&dev->mcast);
}

/* The core does not destroy a QP that is attached: nothing should be left. */
void vhca_mcast_exit(struct vhca_dev *dev)
{
	struct vhca_attach *at, *next;

	list_for_each_entry_safe(at, next, &dev->mcast, node)
		kfree(at);
}

static bool vhca_same_gid(const union ib_gid *a, const union ib_gid *b)
{
	return a->global.interface_id == b->global.interface_id &&
	       a->global.subnet_prefix == b->global.subnet_prefix;
}

static struct vhca_attach *vhca_mcast_find(struct vhca_qp *qp,
					   const union ib_gid *mgid)
{
	struct vhca_attach *at;

	list_for_each_entry(at, &qp->dev->mcast, node)
		if (at->qp == qp && vhca_same_gid(&at->mgid, mgid))
			return at;
	return NULL;
}

/* Attaching twice is no error (IBA 11.3.1). */
int vhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	struct vhca_attach *at;

	if (ibqp->qp_type != IB_QPT_UD)
		return -EINVAL;
	at = kmalloc(sizeof(*at), GFP_KERNEL);
	if (!at)
		return -ENOMEM;
	at->qp = qp;
	at->mgid = *mgid;
	spin_lock_irq(&qp->dev->mcast_lock);
	if (!vhca_mcast_find(qp, mgid)) {
		list_add_tail(&at->node, &qp->dev->mcast);
		at = NULL;
	}
	spin_unlock_irq(&qp->dev->mcast_lock);
	kfree(at);
	return 0;
}

int vhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid)
{
	struct vhca_qp *qp = to_vqp(ibqp);
	struct vhca_attach *at;

	spin_lock_irq(&qp->dev->mcast_lock);
	at = vhca_mcast_find(qp, mgid);
	if (at)
		list_del(&at->node);
	spin_unlock_irq(&qp->dev->mcast_lock);
	if (!at)
		return -EINVAL;
	kfree(at);
	return 0;
}

/*
 * A reference to the QP attached to @mgid at position *@pos or later of the
 * list, or NULL; *@pos moves behind it. Groups that change meanwhile may make
 * a walk miss a QP or meet it twice, as unreliable multicast may.
 */
struct vhca_qp *vhca_mcast_next(struct vhca_dev *dev, const union ib_gid *mgid,
				unsigned int *pos)
{
	struct vhca_qp *qp = NULL;
	struct vhca_attach *at;
	unsigned int i = 0;

	spin_lock_irq(&dev->mcast_lock);
	list_for_each_entry(at, &dev->mcast, node) {
		if (i++ < *pos || !vhca_same_gid(&at->mgid, mgid))
			continue;
		qp = at->qp;
		refcount_inc(&qp->refs);
		*pos = i;
		break;
	}
	spin_unlock_irq(&dev->mcast_lock);
	return qp;
}
