// SPDX-License-Identifier: GPL-2.0-only
/* Module parameters, start and end of the module. */
#include <linux/cpumask.h>
#include <linux/module.h>

#include "internal.h"

MODULE_DESCRIPTION("Software InfiniBand HCAs on a virtual switch, for tests");
MODULE_LICENSE("GPL");

unsigned int vhca_hcas = 2;
module_param_named(hcas, vhca_hcas, uint, 0444);
MODULE_PARM_DESC(hcas, "Number of HCAs, 1 to 64 (2)");

unsigned int vhca_oui = VHCA_OUI;
module_param_named(oui, vhca_oui, uint, 0444);
MODULE_PARM_DESC(oui, "Top 24 bits of all GUIDs, and the vendor ID (0x02c0dd)");

bool vhca_managed = true;
module_param_named(managed, vhca_managed, bool, 0444);
MODULE_PARM_DESC(managed,
		 "1: bring the ports up and answer SA queries (1); 0: wait for a subnet manager");

unsigned int vhca_mtu = 2048;
module_param_named(mtu, vhca_mtu, uint, 0444);
MODULE_PARM_DESC(mtu, "Port MTU in bytes: 2048 (default) or 4096");

unsigned int vhca_wire_batch = 16;
module_param_named(wire_batch, vhca_wire_batch, uint, 0444);
MODULE_PARM_DESC(wire_batch,
		 "Packets that a wire moves before it raises CQ events, 1 to 128 (16)");

unsigned int vhca_doorbell_ns;
module_param_named(doorbell_ns, vhca_doorbell_ns, uint, 0644);
MODULE_PARM_DESC(doorbell_ns,
		 "Modelled cost of one post_send call in ns, at most 1000000 (0)");

unsigned int vhca_max_srq = 1024;
module_param_named(max_srq, vhca_max_srq, uint, 0444);
MODULE_PARM_DESC(max_srq, "Shared receive queues per HCA; 0: an HCA without (1024)");

unsigned int vhca_max_sge = VHCA_MAX_SGE;
module_param_named(max_sge, vhca_max_sge, uint, 0444);
MODULE_PARM_DESC(max_sge, "Send SGEs per work request, 1 to 32 (32)");

unsigned int vhca_comp_vectors;
module_param_named(comp_vectors, vhca_comp_vectors, uint, 0444);
MODULE_PARM_DESC(comp_vectors,
		 "Completion vectors per HCA, 1 to 64 (0: one per online CPU)");

bool vhca_csum;
module_param_named(csum, vhca_csum, bool, 0444);
MODULE_PARM_DESC(csum, "Offload IP, TCP and UDP checksums of UD QPs (0)");

bool vhca_tso;
module_param_named(tso, vhca_tso, bool, 0444);
MODULE_PARM_DESC(tso, "Offload TCP segmentation of UD QPs; needs csum=1 (0)");

unsigned short vhca_pkeys[VHCA_NUM_PKEYS] = { 0xffff, 0x8001, 0x8002, 0x8003 };
unsigned int vhca_num_pkeys = 4;
module_param_array_named(pkeys, vhca_pkeys, ushort, &vhca_num_pkeys, 0444);
MODULE_PARM_DESC(pkeys,
		 "P_Key table when managed=1 (0xffff,0x8001,0x8002,0x8003)");

struct workqueue_struct *vhca_cq_wq;
struct workqueue_struct *vhca_event_wq;

static struct vhca_dev *vhca_made[VHCA_MAX_HCAS];

enum ib_mtu vhca_mtu_enum(void)
{
	return vhca_mtu == 4096 ? IB_MTU_4096 : IB_MTU_2048;
}

static int vhca_refuse(const char *what, unsigned int value, const char *want)
{
	pr_err("vhca: %s=%u is not valid: want %s\n", what, value, want);
	return -EINVAL;
}

static int vhca_check_params(void)
{
	if (vhca_hcas < 1 || vhca_hcas > VHCA_MAX_HCAS)
		return vhca_refuse("hcas", vhca_hcas, "1 to 64");
	if (!vhca_oui || vhca_oui >= 1 << 24)
		return vhca_refuse("oui", vhca_oui, "1 to 0xffffff");
	if (vhca_mtu != 2048 && vhca_mtu != 4096)
		return vhca_refuse("mtu", vhca_mtu, "2048 or 4096");
	if (vhca_wire_batch < 1 || vhca_wire_batch > 128)
		return vhca_refuse("wire_batch", vhca_wire_batch, "1 to 128");
	if (vhca_doorbell_ns > 1000000)
		return vhca_refuse("doorbell_ns", vhca_doorbell_ns,
				   "0 to 1000000");
	if (vhca_max_sge < 1 || vhca_max_sge > VHCA_MAX_SGE)
		return vhca_refuse("max_sge", vhca_max_sge, "1 to 32");
	if (vhca_max_srq > 65536)
		return vhca_refuse("max_srq", vhca_max_srq, "0 to 65536");
	if (vhca_comp_vectors > 64)
		return vhca_refuse("comp_vectors", vhca_comp_vectors,
				   "0 to 64");
	if (vhca_tso && !vhca_csum)
		return vhca_refuse("tso", vhca_tso, "csum=1 beside it");
	if (!vhca_comp_vectors)
		vhca_comp_vectors = min(num_online_cpus(), 64U);
	return 0;
}

/*
 * Last made, first to go: a subnet manager mostly sits on the first HCA, and
 * what the others still ask of it (leave a group) would run into its timeouts.
 */
static void vhca_remove_all(void)
{
	unsigned int i;

	for (i = VHCA_MAX_HCAS; i-- > 0;) {
		if (vhca_made[i])
			vhca_dev_remove(vhca_made[i]);
		vhca_made[i] = NULL;
	}
}

static int __init vhca_init(void)
{
	struct vhca_dev *dev;
	unsigned int i;
	int ret;

	ret = vhca_check_params();
	if (ret)
		return ret;
	ret = vhca_registry_init();
	if (ret)
		return ret;
	ret = -ENOMEM;
	vhca_cq_wq = alloc_workqueue("vhca_cq", WQ_BH | WQ_PERCPU, 0);
	if (!vhca_cq_wq)
		goto err_registry;
	vhca_event_wq = alloc_workqueue("vhca_event", WQ_UNBOUND, 0);
	if (!vhca_event_wq)
		goto err_cq_wq;
	ret = vhca_switch_init();
	if (ret)
		goto err_event_wq;
	ret = vhca_sa_init();
	if (ret)
		goto err_switch;
	vhca_debugfs_init();

	for (i = 0; i < vhca_hcas; i++) {
		dev = vhca_dev_add(i);
		if (IS_ERR(dev)) {
			ret = PTR_ERR(dev);
			pr_err("vhca: vhca%u could not be made: error %d\n",
			       i, ret);
			goto err_devs;
		}
		vhca_made[i] = dev;
	}
	pr_info("vhca: %u HCAs, MTU %u, %s\n", vhca_hcas, vhca_mtu,
		vhca_managed ? "managed by the module" : "waiting for a subnet manager");
	return 0;

err_devs:
	vhca_remove_all();
	vhca_debugfs_exit();
	vhca_sa_exit();
err_switch:
	vhca_switch_exit();
err_event_wq:
	destroy_workqueue(vhca_event_wq);
err_cq_wq:
	destroy_workqueue(vhca_cq_wq);
err_registry:
	vhca_registry_exit();
	return ret;
}

static void __exit vhca_exit(void)
{
	vhca_remove_all();
	vhca_debugfs_exit();
	vhca_sa_exit();
	vhca_switch_exit();
	destroy_workqueue(vhca_event_wq);
	destroy_workqueue(vhca_cq_wq);
	vhca_registry_exit();
}

module_init(vhca_init);
module_exit(vhca_exit);
