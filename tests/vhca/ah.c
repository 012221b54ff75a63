// SPDX-License-Identifier: GPL-2.0-only
/* Address handles and address vectors. */
#include "internal.h"

int vhca_av_from_attr(struct vhca_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	if (rdma_ah_get_port_num(attr) != VHCA_PORT_NUM)
		return -EINVAL;
	memset(av, 0, sizeof(*av));
	av->dlid = rdma_ah_get_dlid(attr);
	av->sl = rdma_ah_get_sl(attr);
	av->src_path_bits = rdma_ah_get_path_bits(attr);
	av->static_rate = rdma_ah_get_static_rate(attr);
	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH)) {
		/* IBA 8.3.1: multicast always has a GRH. */
		return av->dlid >= VHCA_UNICAST_LIDS &&
		       av->dlid != VHCA_PERMISSIVE_LID ? -EINVAL : 0;
	}
	if (grh->sgid_index >= VHCA_NUM_GUIDS)
		return -EINVAL;
	av->has_grh = true;
	av->sgid_index = grh->sgid_index;
	av->hop_limit = grh->hop_limit;
	av->traffic_class = grh->traffic_class;
	av->flow_label = grh->flow_label;
	av->dgid = grh->dgid;
	return 0;
}

/* No sgid_attr: the caller would have to own a reference to it. */
void vhca_av_to_attr(const struct vhca_av *av, struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(attr, VHCA_PORT_NUM);
	rdma_ah_set_dlid(attr, av->dlid);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_path_bits(attr, av->src_path_bits);
	rdma_ah_set_static_rate(attr, av->static_rate);
	if (!av->has_grh)
		return;
	rdma_ah_set_grh(attr, (union ib_gid *)&av->dgid, av->flow_label,
			av->sgid_index, av->hop_limit, av->traffic_class);
}

/* May be called with spinlocks held: the object comes from the core. */
int vhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata)
{
	return vhca_av_from_attr(&to_vah(ibah)->av, init->ah_attr);
}

int vhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	vhca_av_to_attr(&to_vah(ibah)->av, attr);
	return 0;
}

int vhca_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct vhca_av av;
	int ret;

	ret = vhca_av_from_attr(&av, attr);
	if (!ret)
		to_vah(ibah)->av = av;
	return ret;
}

/* Work requests hold a copy of the address vector: nothing to wait for. */
int vhca_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
