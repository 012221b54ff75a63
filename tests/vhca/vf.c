// SPDX-License-Identifier: GPL-2.0-only
/* Virtual functions that exist on paper: what is set for them is kept and shown, and goes nowhere. */
#include <linux/if_link.h>
#include <linux/seq_file.h>

#include "internal.h"

static struct vhca_vf *vhca_vf(struct ib_device *ibdev, int vf, u32 port)
{
	if (vf < 0 || vf >= VHCA_NUM_VFS || port != VHCA_PORT_NUM)
		return NULL;
	return &to_vdev(ibdev)->vfs[vf];
}

int vhca_set_vf_guid(struct ib_device *ibdev, int vf, u32 port, u64 guid,
		     int type)
{
	struct vhca_vf *v = vhca_vf(ibdev, vf, port);

	if (!v)
		return -EINVAL;
	if (type == IFLA_VF_IB_NODE_GUID)
		v->node_guid = guid;
	else if (type == IFLA_VF_IB_PORT_GUID)
		v->port_guid = guid;
	else
		return -EINVAL;
	return 0;
}

int vhca_get_vf_guid(struct ib_device *ibdev, int vf, u32 port,
		     struct ifla_vf_guid *node, struct ifla_vf_guid *port_guid)
{
	struct vhca_vf *v = vhca_vf(ibdev, vf, port);

	if (!v)
		return -EINVAL;
	node->guid = v->node_guid;
	port_guid->guid = v->port_guid;
	return 0;
}

int vhca_set_vf_link_state(struct ib_device *ibdev, int vf, u32 port,
			   int state)
{
	struct vhca_vf *v = vhca_vf(ibdev, vf, port);

	if (!v)
		return -EINVAL;
	v->link_state = state;
	return 0;
}

int vhca_get_vf_config(struct ib_device *ibdev, int vf, u32 port,
		       struct ifla_vf_info *info)
{
	struct vhca_vf *v = vhca_vf(ibdev, vf, port);

	if (!v)
		return -EINVAL;
	memset(info, 0, sizeof(*info));
	info->vf = vf;
	info->linkstate = v->link_state;
	return 0;
}

static int vhca_vfs_show(struct seq_file *seq, void *unused)
{
	struct vhca_dev *dev = seq->private;
	int i;

	for (i = 0; i < VHCA_NUM_VFS; i++)
		seq_printf(seq, "%d node %016llx port %016llx state %d\n", i,
			   dev->vfs[i].node_guid, dev->vfs[i].port_guid,
			   dev->vfs[i].link_state);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vhca_vfs);

void vhca_vfs_add(struct vhca_dev *dev)
{
	debugfs_create_file("vfs", 0400, dev->debugfs, dev, &vhca_vfs_fops);
}
