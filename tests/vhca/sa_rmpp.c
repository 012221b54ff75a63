// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables that do not fit into one MAD go out by RMPP (IBA 13.6.2). The first
 * segment is the reply; the others follow, from a work item, as far as the
 * receiver's ACKs open its window. Nothing is sent again: on this fabric a
 * segment is only lost on demand, and then the requester asks again.
 */
#include <linux/slab.h>

#include "sa.h"

#define MAX_TRANSFERS	16
#define SA_HDR_BYTES	(IB_MGMT_SA_HDR - IB_MGMT_RMPP_HDR)

struct transfer {
	struct list_head node;		/* oldest first */
	unsigned int hca;		/* that answers */
	u16 peer_lid;
	u32 peer_qpn;
	u32 segments;
	u32 sent;
	u32 window;			/* last segment that may be sent */
	struct sa_table table;
	struct ib_sa_mad mad;		/* headers; data of the last one sent */
};

static DEFINE_MUTEX(transfers_mutex);
static LIST_HEAD(transfers);
static unsigned int num_transfers;

static void send_work_fn(struct work_struct *work);
static DECLARE_WORK(send_work, send_work_fn);

static void free_transfer(struct transfer *t)
{
	list_del(&t->node);
	num_transfers--;
	kvfree(t->table.data);
	kfree(t);
}

static struct transfer *find(const struct sa_request *req)
{
	struct transfer *t;

	list_for_each_entry(t, &transfers, node)
		if (t->hca == req->port->dev->index &&
		    t->peer_lid == req->wc->slid &&
		    t->peer_qpn == req->wc->src_qp &&
		    t->mad.mad_hdr.tid == req->mad->mad_hdr.tid)
			return t;
	return NULL;
}

/* Makes @mad, whose other headers are right, segment @n (from 1) of @table. */
static void fill_segment(struct ib_sa_mad *mad, const struct sa_table *table,
			 u32 n, u32 segments)
{
	size_t off = (size_t)(n - 1) * IB_MGMT_SA_DATA;
	size_t len = min_t(size_t, table->used - off, IB_MGMT_SA_DATA);
	u8 flags = IB_MGMT_RMPP_FLAG_ACTIVE;
	u32 paylen = 0;

	if (n == 1) {
		flags |= IB_MGMT_RMPP_FLAG_FIRST;
		paylen = table->used + segments * SA_HDR_BYTES;
	}
	if (n == segments) {
		flags |= IB_MGMT_RMPP_FLAG_LAST;
		paylen = len + SA_HDR_BYTES;
	}
	memset(&mad->rmpp_hdr, 0, sizeof(mad->rmpp_hdr));
	mad->rmpp_hdr.rmpp_version = IB_MGMT_RMPP_VERSION;
	mad->rmpp_hdr.rmpp_type = IB_MGMT_RMPP_TYPE_DATA;
	ib_set_rmpp_resptime(&mad->rmpp_hdr, IB_MGMT_RMPP_NO_RESPTIME);
	ib_set_rmpp_flags(&mad->rmpp_hdr, flags);
	mad->rmpp_hdr.seg_num = cpu_to_be32(n);
	mad->rmpp_hdr.paylen_newwin = cpu_to_be32(paylen);
	memset(mad->data, 0, sizeof(mad->data));
	if (len)
		memcpy(mad->data, table->data + off, len);
}

u16 sa_rmpp_start(const struct sa_request *req, struct sa_table *table)
{
	u32 segments = max_t(u32, 1, DIV_ROUND_UP(table->used,
						  IB_MGMT_SA_DATA));
	struct transfer *t, *old;

	if (segments == 1) {
		fill_segment(req->mad, table, 1, 1);
		kvfree(table->data);
		return VHCA_MAD_OK;
	}
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t) {
		kvfree(table->data);
		return SA_ERR_NO_RESOURCES;
	}
	fill_segment(req->mad, table, 1, segments);
	t->hca = req->port->dev->index;
	t->peer_lid = req->wc->slid;
	t->peer_qpn = req->wc->src_qp;
	t->segments = segments;
	t->sent = 1;
	t->window = 1;
	t->table = *table;
	t->mad = *req->mad;
	vhca_mad_respond(&t->mad.mad_hdr, VHCA_MAD_OK);

	mutex_lock(&transfers_mutex);
	old = find(req);	/* the same query, asked again */
	if (!old && num_transfers == MAX_TRANSFERS)
		old = list_first_entry(&transfers, struct transfer, node);
	if (old)
		free_transfer(old);
	list_add_tail(&t->node, &transfers);
	num_transfers++;
	mutex_unlock(&transfers_mutex);
	return VHCA_MAD_OK;
}

void sa_rmpp_input(const struct sa_request *req)
{
	const struct ib_rmpp_hdr *rmpp = &req->mad->rmpp_hdr;
	struct transfer *t;

	mutex_lock(&transfers_mutex);
	t = find(req);
	if (!t)
		goto out;
	if (rmpp->rmpp_type != IB_MGMT_RMPP_TYPE_ACK ||
	    be32_to_cpu(rmpp->seg_num) >= t->segments) {
		free_transfer(t);
	} else {
		t->window = min(be32_to_cpu(rmpp->paylen_newwin), t->segments);
		queue_work(system_unbound_wq, &send_work);
	}
out:
	mutex_unlock(&transfers_mutex);
}

static void send_work_fn(struct work_struct *work)
{
	struct transfer *t, *next;

	vhca_fabric_read_lock();
	mutex_lock(&transfers_mutex);
	list_for_each_entry_safe(t, next, &transfers, node) {
		struct vhca_port *port = vhca_port_by_index(t->hca);

		if (!port) {
			free_transfer(t);
			continue;
		}
		while (t->sent < t->window) {
			fill_segment(&t->mad, &t->table, ++t->sent,
				     t->segments);
			vhca_mad_send(port, t->peer_lid, 1, t->peer_qpn,
				      &t->mad);
		}
	}
	mutex_unlock(&transfers_mutex);
	vhca_fabric_read_unlock();
}

void sa_rmpp_exit(void)
{
	struct transfer *t, *next;

	cancel_work_sync(&send_work);
	list_for_each_entry_safe(t, next, &transfers, node)
		free_transfer(t);
}
