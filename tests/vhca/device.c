// SPDX-License-Identifier: GPL-2.0-only
/* An HCA as ib_core sees it: attributes, operations, coming and going. */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "internal.h"

#define VHCA_FW_VERSION		"1.0.0"
#define VHCA_UVERBS_ABI		2	/* of rdma_rxe: see vhca_ops */

__be64 vhca_guid(unsigned int index, enum vhca_guid_role role)
{
	return cpu_to_be64((u64)vhca_oui << 40 | (u64)role << 32 | (index + 1));
}

static int vhca_query_device(struct ib_device *ibdev,
			     struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = 1ULL << 32;
	attr->sys_image_guid = vhca_guid(to_vdev(ibdev)->index,
					 VHCA_GUID_SYSTEM);
	attr->max_mr_size = ~0ULL;
	attr->page_size_cap = PAGE_SIZE;
	attr->vendor_id = vhca_oui;
	attr->vendor_part_id = VHCA_PART_ID;
	attr->hw_ver = 1;
	attr->device_cap_flags = IB_DEVICE_SHUTDOWN_PORT |
				 IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_BAD_PKEY_CNTR |
				 IB_DEVICE_BAD_QKEY_CNTR;
	if (vhca_csum)
		attr->device_cap_flags |= IB_DEVICE_UD_IP_CSUM;
	if (vhca_tso)
		attr->kernel_cap_flags |= IBK_UD_TSO;
	attr->max_qp = 1 << 16;
	attr->max_qp_wr = VHCA_MAX_QP_WR;
	attr->max_send_sge = vhca_max_sge;
	attr->max_recv_sge = VHCA_MAX_SGE;
	attr->max_cq = 1 << 16;
	attr->max_cqe = VHCA_MAX_CQE;
	attr->max_mr = 1 << 20;
	attr->max_pd = 1 << 16;
	attr->max_ah = 1 << 20;
	attr->max_srq = vhca_max_srq;
	attr->max_srq_wr = vhca_max_srq ? VHCA_MAX_QP_WR : 0;
	attr->max_srq_sge = vhca_max_srq ? VHCA_MAX_SGE : 0;
	attr->max_mcast_grp = 1 << 14;
	attr->max_mcast_qp_attach = 1 << 10;
	attr->max_total_mcast_qp_attach = 1 << 20;
	attr->max_pkeys = VHCA_NUM_PKEYS;
	attr->atomic_cap = IB_ATOMIC_NONE;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	return 0;
}

static int vhca_modify_device(struct ib_device *ibdev, int mask,
			      struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (!(mask & IB_DEVICE_MODIFY_NODE_DESC))
		return 0;
	memcpy(ibdev->node_desc, modify->node_desc, IB_DEVICE_NODE_DESC_MAX);
	vhca_sma_local_change(&to_vdev(ibdev)->port,
			      IB_NOTICE_TRAP_NODE_DESC_CHG);
	return 0;
}

static void vhca_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	strscpy(str, VHCA_FW_VERSION, IB_FW_VERSION_NAME_MAX);
}

static enum rdma_link_layer vhca_get_link_layer(struct ib_device *ibdev,
						u32 port_num)
{
	return IB_LINK_LAYER_INFINIBAND;
}

static int vhca_get_port_immutable(struct ib_device *ibdev, u32 port_num,
				   struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	immutable->gid_tbl_len = VHCA_NUM_GUIDS;
	immutable->pkey_tbl_len = VHCA_NUM_PKEYS;
	return 0;
}

/* User space may look (ibv_devinfo, opensm), not move data. */
static int vhca_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	return 0;
}

static void vhca_dealloc_ucontext(struct ib_ucontext *ibuc)
{
}

/*
 * The driver id decides which user-space provider rdma-core loads. That of
 * rdma_rxe asks for nothing but the generic queries, so the tools list our
 * HCAs; what it cannot do (user QPs and CQs) is refused by the verbs.
 */
static const struct ib_device_ops vhca_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = VHCA_UVERBS_ABI,

	.alloc_pd = vhca_alloc_pd,
	.alloc_ucontext = vhca_alloc_ucontext,
	.attach_mcast = vhca_attach_mcast,
	.create_ah = vhca_create_ah,
	.create_cq = vhca_create_cq,
	.create_qp = vhca_create_qp,
	.dealloc_pd = vhca_dealloc_pd,
	.dealloc_ucontext = vhca_dealloc_ucontext,
	.dereg_mr = vhca_dereg_mr,
	.destroy_ah = vhca_destroy_ah,
	.destroy_cq = vhca_destroy_cq,
	.destroy_qp = vhca_destroy_qp,
	.detach_mcast = vhca_detach_mcast,
	.get_dev_fw_str = vhca_get_dev_fw_str,
	.get_dma_mr = vhca_get_dma_mr,
	.get_link_layer = vhca_get_link_layer,
	.get_port_immutable = vhca_get_port_immutable,
	.get_vf_config = vhca_get_vf_config,
	.get_vf_guid = vhca_get_vf_guid,
	.modify_ah = vhca_modify_ah,
	.modify_cq = vhca_modify_cq,
	.modify_device = vhca_modify_device,
	.modify_port = vhca_modify_port,
	.modify_qp = vhca_modify_qp,
	.poll_cq = vhca_poll_cq,
	.post_recv = vhca_post_recv,
	.post_send = vhca_post_send,
	.process_mad = vhca_process_mad,
	.query_ah = vhca_query_ah,
	.query_device = vhca_query_device,
	.query_gid = vhca_query_gid,
	.query_pkey = vhca_query_pkey,
	.query_port = vhca_query_port,
	.query_qp = vhca_query_qp,
	.reg_user_mr = vhca_reg_user_mr,
	.req_notify_cq = vhca_req_notify_cq,
	.set_vf_guid = vhca_set_vf_guid,
	.set_vf_link_state = vhca_set_vf_link_state,

	INIT_RDMA_OBJ_SIZE(ib_ah, vhca_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, vhca_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, vhca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, vhca_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, vhca_ucontext, ibuc),
};

static const struct ib_device_ops vhca_srq_ops = {
	.create_srq = vhca_create_srq,
	.destroy_srq = vhca_destroy_srq,
	.modify_srq = vhca_modify_srq,
	.post_srq_recv = vhca_post_srq_recv,
	.query_srq = vhca_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, vhca_srq, ibsrq),
};

/*
 * For selftest/, which cannot write to debugfs from inside the kernel: the
 * same as writing @value to fault/@name, and reading a counter of stats. The
 * device must be one of ours.
 */
int vhca_test_fault(struct ib_device *ibdev, const char *name, const char *value)
{
	struct vhca_dev *dev = to_vdev(ibdev);
	u32 number;
	int ret;

	ret = vhca_trigger(dev, name, value);
	if (ret != -ENOENT)
		return ret;
	ret = kstrtou32(value, 0, &number);
	return ret ? ret : vhca_fault_write(dev, name, number);
}
EXPORT_SYMBOL_GPL(vhca_test_fault);

long long vhca_test_stat(struct ib_device *ibdev, const char *name)
{
	return vhca_stats_read(to_vdev(ibdev), name);
}
EXPORT_SYMBOL_GPL(vhca_test_stat);

static void vhca_set_ibdev(struct vhca_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = VHCA_PORT_NUM;
	ibdev->num_comp_vectors = vhca_comp_vectors;
	ibdev->node_guid = vhca_guid(dev->index, VHCA_GUID_NODE);
	ibdev->dev.parent = &dev->pdev->dev;
	snprintf(ibdev->node_desc, sizeof(ibdev->node_desc), "vhca%u",
		 dev->index);
	ib_set_device_ops(ibdev, &vhca_ops);
	if (vhca_max_srq)
		ib_set_device_ops(ibdev, &vhca_srq_ops);
}

struct vhca_dev *vhca_dev_add(unsigned int index)
{
	struct vhca_dev *dev;
	char name[IB_DEVICE_NAME_MAX];
	int ret;

	dev = ib_alloc_device(vhca_dev, ibdev);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->index = index;
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	vhca_mcast_init(dev);
	vhca_faults_init(dev);
	vhca_tap_init(dev);
	vhca_port_init(&dev->port, dev);
	vhca_sma_init(&dev->port);
	ret = vhca_stats_init(dev);
	if (ret)
		goto err_dealloc;
	/* in-tree IPoIB's ethtool needs a parent device. */
	dev->pdev = platform_device_register_simple("vhca", index, NULL, 0);
	if (IS_ERR(dev->pdev)) {
		ret = PTR_ERR(dev->pdev);
		goto err_stats;
	}
	vhca_set_ibdev(dev);
	ret = vhca_wire_start(dev);
	if (ret)
		goto err_pdev;
	ret = vhca_registry_attach(dev);
	if (ret)
		goto err_wire;
	/* With no DMA device, SGE addresses are kernel pointers. */
	snprintf(name, sizeof(name), "vhca%u", index);
	ret = ib_register_device(&dev->ibdev, name, NULL);
	if (ret)
		goto err_detach;
	vhca_debugfs_add(dev);
	vhca_port_start(&dev->port);
	return dev;

err_detach:
	vhca_registry_detach(dev);
err_wire:
	vhca_wire_stop(dev);
err_pdev:
	platform_device_unregister(dev->pdev);
err_stats:
	vhca_stats_exit(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return ERR_PTR(ret);
}

/* Does somebody answer the SA queries of this HCA? */
static bool vhca_sa_answers(struct vhca_dev *dev)
{
	struct vhca_port *sm;
	bool answers;

	if (vhca_managed)
		return true;
	vhca_fabric_read_lock();
	sm = vhca_port_by_lid(READ_ONCE(dev->port.sm_lid));
	answers = sm && vhca_port_active(sm) &&
		  READ_ONCE(sm->cap_mask) & IB_PORT_SM;
	vhca_fabric_read_unlock();
	return answers;
}

/* Every receive WR is posted: ib_mad does that when it is done with a MAD. */
static bool vhca_mads_done(struct vhca_dev *dev, u32 qpn)
{
	struct vhca_qp *qp = vhca_qp_get(dev, qpn);
	bool done;

	if (!qp)
		return true;
	spin_lock_irq(&qp->rq.lock);
	done = qp->rq.head - qp->rq.tail == qp->rq.max_wr;
	spin_unlock_irq(&qp->rq.lock);
	vhca_qp_put(qp);
	return done;
}

/*
 * ib_mad does not wait for a request that it is answering when it closes its
 * port: it may use an agent and a QP that are gone. So the port takes no more
 * requests, and those that have arrived are answered first.
 */
static void vhca_quiesce_mads(struct vhca_dev *dev)
{
	int ms;

	vhca_port_leave(&dev->port);
	vhca_registry_barrier();
	for (ms = 0; ms < 1000; ms++) {
		if (vhca_mads_done(dev, 0) && vhca_mads_done(dev, 1))
			return;
		usleep_range(1000, 2000);
	}
	dev_warn(&dev->ibdev.dev, "a MAD is still being handled at removal\n");
}

/*
 * The fabric works until the core has let the HCA go: clients leave groups and
 * take connections down on their way out. When no subnet manager is left to
 * hear of it, the link goes down first: a client that knows its groups are
 * lost does not wait for answers (a minute, with IPoIB).
 */
void vhca_dev_remove(struct vhca_dev *dev)
{
	vhca_debugfs_remove(dev);
	if (!vhca_sa_answers(dev)) {
		vhca_port_stop(&dev->port);
		flush_workqueue(ib_wq);
	}
	vhca_quiesce_mads(dev);
	vhca_port_mute(&dev->port);
	ib_unregister_device(&dev->ibdev);
	vhca_port_stop(&dev->port);
	vhca_registry_detach(dev);
	vhca_wire_stop(dev);
	platform_device_unregister(dev->pdev);
	vhca_mcast_exit(dev);
	vhca_tap_exit(dev);
	vhca_stats_exit(dev);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->mrs);
	ib_dealloc_device(&dev->ibdev);
}
