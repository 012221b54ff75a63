// SPDX-License-Identifier: GPL-2.0-only
/* debugfs: counters and the state of the QPs, per HCA. */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

static struct dentry *vhca_debugfs_root;

static const char * const vhca_counter_names[] = {
#define X(name) #name,
	VHCA_COUNTERS(X)
#undef X
};

int vhca_stats_init(struct vhca_dev *dev)
{
	dev->counters = alloc_percpu(struct vhca_counters);
	dev->counters_base = kzalloc(sizeof(*dev->counters_base), GFP_KERNEL);
	if (dev->counters && dev->counters_base)
		return 0;
	vhca_stats_exit(dev);
	return -ENOMEM;
}

void vhca_stats_exit(struct vhca_dev *dev)
{
	free_percpu(dev->counters);
	kfree(dev->counters_base);
}

static u64 vhca_stats_sum(struct vhca_dev *dev, int i)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->counters, cpu)->v[i]);
	return sum;
}

/* A counter by its name, or -ENOENT. */
long long vhca_stats_read(struct vhca_dev *dev, const char *name)
{
	int i;

	for (i = 0; i < VHCA_NUM_COUNTERS; i++)
		if (!strcmp(vhca_counter_names[i], name))
			return vhca_stats_sum(dev, i) -
			       READ_ONCE(dev->counters_base->v[i]);
	return -ENOENT;
}

static int vhca_stats_show(struct seq_file *seq, void *unused)
{
	struct vhca_dev *dev = seq->private;
	int i;

	for (i = 0; i < VHCA_NUM_COUNTERS; i++)
		seq_printf(seq, "%s %llu\n", vhca_counter_names[i],
			   vhca_stats_sum(dev, i) -
			   READ_ONCE(dev->counters_base->v[i]));
	return 0;
}

static int vhca_stats_open(struct inode *inode, struct file *file)
{
	return single_open(file, vhca_stats_show, inode->i_private);
}

/*
 * "0" starts the counters anew. They are never written, so none is lost: what
 * they are now is subtracted from what is shown.
 */
static ssize_t vhca_stats_write(struct file *file, const char __user *buf,
				size_t count, loff_t *pos)
{
	struct seq_file *seq = file->private_data;
	struct vhca_dev *dev = seq->private;
	unsigned int value;
	int i, ret;

	ret = kstrtouint_from_user(buf, count, 0, &value);
	if (ret)
		return ret;
	if (value)
		return -EINVAL;
	for (i = 0; i < VHCA_NUM_COUNTERS; i++)
		WRITE_ONCE(dev->counters_base->v[i], vhca_stats_sum(dev, i));
	return count;
}

static const struct file_operations vhca_stats_fops = {
	.owner = THIS_MODULE,
	.open = vhca_stats_open,
	.read = seq_read,
	.write = vhca_stats_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static const char *vhca_type_name(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_SMI:
		return "SMI";
	case IB_QPT_GSI:
		return "GSI";
	case IB_QPT_UD:
		return "UD";
	default:
		return "RC";
	}
}

static int vhca_qps_show(struct seq_file *seq, void *unused)
{
	static const char * const states[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
	};
	struct vhca_dev *dev = seq->private;
	unsigned long qpn;
	struct vhca_qp *qp;

	xa_lock(&dev->qps);
	xa_for_each(&dev->qps, qpn, qp)
		seq_printf(seq,
			   "%lu %s %s peer %u sq %u/%u/%u of %u rq %u/%u of %u%s%s\n",
			   qpn, vhca_type_name(qp->ibqp.qp_type),
			   states[READ_ONCE(qp->state)],
			   READ_ONCE(qp->attr.dest_qp_num),
			   READ_ONCE(qp->sq.retired), READ_ONCE(qp->sq.exec),
			   READ_ONCE(qp->sq.head), qp->sq.max_wr,
			   READ_ONCE(qp->rq.tail), READ_ONCE(qp->rq.head),
			   qp->rq.max_wr, qp->ibqp.srq ? " srq" : "",
			   READ_ONCE(qp->req.waiting) ? " waits" : "");
	xa_unlock(&dev->qps);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vhca_qps);

void vhca_debugfs_init(void)
{
	vhca_debugfs_root = debugfs_create_dir("vhca", NULL);
}

void vhca_debugfs_exit(void)
{
	debugfs_remove(vhca_debugfs_root);
}

void vhca_debugfs_add(struct vhca_dev *dev)
{
	dev->debugfs = debugfs_create_dir(dev_name(&dev->ibdev.dev),
					  vhca_debugfs_root);
	debugfs_create_file("stats", 0600, dev->debugfs, dev, &vhca_stats_fops);
	debugfs_create_file("qps", 0400, dev->debugfs, dev, &vhca_qps_fops);
	vhca_tap_add(dev);
	vhca_vfs_add(dev);
	vhca_faults_add(dev);
}

/* No file of the HCA is open or can be opened after this. */
void vhca_debugfs_remove(struct vhca_dev *dev)
{
	debugfs_remove(dev->debugfs);
}
