// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs: a tap on the cable of an HCA. Shows what left it, with every header
 * that a test may want to compare, and sends packets of any make.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

#define VHCA_TAP_MAX_FRAMES	4096
#define VHCA_TAP_MAX_PAYLOAD	8192

/* Of each frame, payload behind it; what tests/src/guest/tap.rs reads. */
struct vhca_tap_head {
	__le32 length;		/* of the payload */
	__le32 src_qpn;
	__le32 dst_qpn;
	__le32 qkey;
	__le16 slid;
	__le16 dlid;
	__le16 pkey;
	u8 sl;
	u8 has_grh;
	struct ib_grh grh;	/* as on the wire; zero without one */
} __packed;

struct vhca_frame {
	struct list_head node;
	struct vhca_tap_head head;
	u8 payload[];
};

void vhca_tap_init(struct vhca_dev *dev)
{
	mutex_init(&dev->tap.lock);
	INIT_LIST_HEAD(&dev->tap.frames);
	dev->tap.left = 0;
}

static void vhca_tap_empty(struct vhca_tap *tap)
{
	struct vhca_frame *frame, *next;

	list_for_each_entry_safe(frame, next, &tap->frames, node)
		kfree(frame);
	INIT_LIST_HEAD(&tap->frames);
}

/* The wire has ended. */
void vhca_tap_exit(struct vhca_dev *dev)
{
	vhca_tap_empty(&dev->tap);
}

/* On the wire: keeps a copy. */
void vhca_tap_take(struct vhca_dev *dev, const struct vhca_pkt *pkt)
{
	struct vhca_tap *tap = &dev->tap;
	struct vhca_tap_head *head;
	struct vhca_frame *frame;

	frame = kzalloc(struct_size(frame, payload, pkt->length), GFP_KERNEL);
	mutex_lock(&tap->lock);
	if (!frame || !tap->left) {
		mutex_unlock(&tap->lock);
		kfree(frame);
		return;
	}
	head = &frame->head;
	head->length = cpu_to_le32(pkt->length);
	head->src_qpn = cpu_to_le32(pkt->src_qpn);
	head->dst_qpn = cpu_to_le32(pkt->dst_qpn);
	head->qkey = cpu_to_le32(pkt->qkey);
	head->slid = cpu_to_le16(pkt->slid);
	head->dlid = cpu_to_le16(pkt->dlid);
	head->pkey = cpu_to_le16(pkt->pkey);
	head->sl = pkt->sl;
	head->has_grh = pkt->has_grh;
	if (pkt->has_grh)
		head->grh = pkt->grh;
	vhca_pkt_copy_out(pkt, 0, frame->payload, pkt->length);
	list_add_tail(&frame->node, &tap->frames);
	tap->left--;
	mutex_unlock(&tap->lock);
}

static int vhca_capture_show(struct seq_file *seq, void *unused)
{
	struct vhca_dev *dev = seq->private;
	struct vhca_frame *frame;

	mutex_lock(&dev->tap.lock);
	list_for_each_entry(frame, &dev->tap.frames, node) {
		seq_write(seq, &frame->head, sizeof(frame->head));
		seq_write(seq, frame->payload, le32_to_cpu(frame->head.length));
	}
	mutex_unlock(&dev->tap.lock);
	return 0;
}

static int vhca_capture_open(struct inode *inode, struct file *file)
{
	return single_open(file, vhca_capture_show, inode->i_private);
}

/* Forgets what was kept, and keeps that many frames from now on. */
static ssize_t vhca_capture_write(struct file *file, const char __user *buf,
				  size_t count, loff_t *pos)
{
	struct seq_file *seq = file->private_data;
	struct vhca_dev *dev = seq->private;
	unsigned int value;
	int ret;

	ret = kstrtouint_from_user(buf, count, 0, &value);
	if (ret)
		return ret;
	if (value > VHCA_TAP_MAX_FRAMES)
		return -ERANGE;
	mutex_lock(&dev->tap.lock);
	vhca_tap_empty(&dev->tap);
	WRITE_ONCE(dev->tap.left, value);
	mutex_unlock(&dev->tap.lock);
	return count;
}

static const struct file_operations vhca_capture_fops = {
	.owner = THIS_MODULE,
	.open = vhca_capture_open,
	.read = seq_read,
	.write = vhca_capture_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* One frame per call, made like those that are read. */
static ssize_t vhca_inject_write(struct file *file, const char __user *buf,
				 size_t count, loff_t *pos)
{
	struct vhca_dev *dev = file->private_data;
	struct vhca_tap_head *head;
	struct vhca_pkt pkt = {};
	struct ib_sge sge;
	u8 *frame;
	u32 length;

	if (count < sizeof(*head) ||
	    count > sizeof(*head) + VHCA_TAP_MAX_PAYLOAD)
		return -EINVAL;
	frame = memdup_user(buf, count);
	if (IS_ERR(frame))
		return PTR_ERR(frame);
	head = (struct vhca_tap_head *)frame;
	length = count - sizeof(*head);
	if (le32_to_cpu(head->length) != length || head->has_grh > 1) {
		kfree(frame);
		return -EINVAL;
	}
	pkt.slid = le16_to_cpu(head->slid);
	pkt.dlid = le16_to_cpu(head->dlid);
	pkt.sl = head->sl;
	pkt.pkey = le16_to_cpu(head->pkey);
	pkt.src_qpn = le32_to_cpu(head->src_qpn);
	pkt.dst_qpn = le32_to_cpu(head->dst_qpn);
	pkt.qkey = le32_to_cpu(head->qkey);
	pkt.has_grh = head->has_grh;
	pkt.grh = head->grh;
	vhca_pkt_set_payload(&pkt, &sge, frame + sizeof(*head), length);
	vhca_emit(&dev->port, &pkt);
	kfree(frame);
	return count;
}

static const struct file_operations vhca_inject_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = vhca_inject_write,
};

void vhca_tap_add(struct vhca_dev *dev)
{
	debugfs_create_file("capture", 0600, dev->debugfs, dev,
			    &vhca_capture_fops);
	debugfs_create_file("inject", 0200, dev->debugfs, dev,
			    &vhca_inject_fops);
}
