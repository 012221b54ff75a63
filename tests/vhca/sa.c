// SPDX-License-Identifier: GPL-2.0-only
/*
 * Subnet administration of the managed mode (IBA 15). Every port's sm_lid is
 * the port's own LID, so each HCA asks itself and no HCA depends on another to
 * be loaded; what is known of the fabric is common to all. The answer is given
 * from process_mad: no agent, no daemon.
 */
#include <linux/slab.h>

#include "sa.h"

#define SA_RESP_TIME	16	/* 268 ms */

bool sa_table_reserve(struct sa_table *table, size_t records)
{
	u8 *data;

	if (records * table->size <= table->room)
		return true;
	data = kvmalloc_array(records, table->size, GFP_KERNEL);
	if (!data)
		return false;
	if (table->used)
		memcpy(data, table->data, table->used);
	kvfree(table->data);
	table->data = data;
	table->room = records * table->size;
	return true;
}

bool sa_table_append(struct sa_table *table, const void *record)
{
	if (table->used + table->size > table->room)
		return false;
	memcpy(table->data + table->used, record, table->size);
	table->used += table->size;
	return true;
}

bool sa_table_add(struct sa_table *table, const void *record)
{
	size_t records = table->used / table->size;

	return sa_table_append(table, record) ||
	       (sa_table_reserve(table, 2 * records + 8) &&
		sa_table_append(table, record));
}

static bool selector(u8 request, int have, int want)
{
	switch (request >> 6) {
	case IB_SA_GT:
		return have > want;
	case IB_SA_LT:
		return have < want;
	case IB_SA_EQ:
		return have == want;
	default:
		return true;
	}
}

bool sa_selector_matches(u8 request, u8 have)
{
	return selector(request, have, request & 0x3f);
}

bool sa_rate_matches(u8 request, enum ib_rate have)
{
	int want = ib_rate_to_mbps(request & 0x3f);

	return want > 0 && selector(request, ib_rate_to_mbps(have), want);
}

u8 sa_choose_mtu(u8 request, u8 limit)
{
	u8 value = request & 0x3f;

	switch (request >> 6) {
	case IB_SA_GT:
		return limit > value ? limit : 0;
	case IB_SA_LT:
		return value > IB_MTU_256 ? min_t(u8, limit, value - 1) : 0;
	case IB_SA_EQ:
		return value >= IB_MTU_256 && value <= limit ? value : 0;
	default:
		return limit;
	}
}

u8 sa_choose_rate(u8 request, enum ib_rate limit)
{
	int value = ib_rate_to_mbps(request & 0x3f);
	int most = ib_rate_to_mbps(limit);

	switch (request >> 6) {
	case IB_SA_GT:
		return most > value ? limit : 0;
	case IB_SA_LT:
		/* The one rate that the links have is all we offer. */
		return most < value ? limit : 0;
	case IB_SA_EQ:
		return value > 0 && value <= most ? request & 0x3f : 0;
	default:
		return limit;
	}
}

/* ---- requests ---------------------------------------------------------------- */

static u16 class_port_info(const struct sa_request *req)
{
	struct ib_class_port_info *cpi = (void *)req->mad->data;

	if (req->mad->mad_hdr.method != IB_MGMT_METHOD_GET)
		return VHCA_MAD_BAD_ATTR;
	memset(req->mad->data, 0, sizeof(req->mad->data));
	cpi->base_version = IB_MGMT_BASE_VERSION;
	cpi->class_version = IB_SA_CLASS_VERSION;
	ib_set_cpi_resp_time(cpi, SA_RESP_TIME);
	ib_set_cpi_capmask2(cpi, IB_SA_CAP_MASK2_SENDONLY_FULL_MEM_SUPPORT);
	return VHCA_MAD_OK;
}

static u16 query(const struct sa_request *req, size_t size,
		 u16 (*list)(const struct sa_request *, struct sa_table *))
{
	struct ib_sa_mad *mad = req->mad;
	struct sa_table table = { .size = size };
	u16 status;

	if (mad->mad_hdr.method != IB_MGMT_METHOD_GET &&
	    mad->mad_hdr.method != IB_SA_METHOD_GET_TABLE)
		return VHCA_MAD_BAD_ATTR;
	status = list(req, &table);
	if (status)
		goto out;
	mad->sa_hdr.attr_offset = cpu_to_be16(size / 8);
	if (mad->mad_hdr.method == IB_SA_METHOD_GET_TABLE)
		return sa_rmpp_start(req, &table);

	if (!table.used) {
		status = SA_ERR_NO_RECORDS;
	} else if (table.used > size) {
		status = SA_ERR_TOO_MANY_RECORDS;
	} else {
		memset(mad->data, 0, sizeof(mad->data));
		memcpy(mad->data, table.data, size);
	}
out:
	kvfree(table.data);
	return status;
}

static u16 mcmember(const struct sa_request *req)
{
	switch (req->mad->mad_hdr.method) {
	case IB_MGMT_METHOD_SET:
		return sa_join(req);
	case IB_SA_METHOD_DELETE:
		return sa_leave(req);
	default:
		return query(req, SA_MCMEMBER_RECORD_SIZE, sa_list_groups);
	}
}

static u16 answer(const struct sa_request *req)
{
	struct ib_mad_hdr *hdr = &req->mad->mad_hdr;

	if (hdr->class_version != IB_SA_CLASS_VERSION)
		return VHCA_MAD_BAD_VERSION;
	switch (hdr->method) {
	case IB_MGMT_METHOD_GET:
	case IB_MGMT_METHOD_SET:
	case IB_SA_METHOD_GET_TABLE:
	case IB_SA_METHOD_DELETE:
		break;
	default:
		return VHCA_MAD_BAD_METHOD;
	}
	/* Not from a port of this fabric, or its LID has just changed. */
	if (!req->from)
		return SA_ERR_REQ_INVALID;
	switch (be16_to_cpu(hdr->attr_id)) {
	case IB_SA_ATTR_CLASS_PORTINFO:
		return class_port_info(req);
	case IB_SA_ATTR_PATH_REC:
		return query(req, SA_PATH_RECORD_SIZE, sa_list_paths);
	case IB_SA_ATTR_MC_MEMBER_REC:
		return mcmember(req);
	case IB_SA_ATTR_NODE_REC:
		return query(req, SA_NODE_RECORD_SIZE, sa_list_nodes);
	case IB_SA_ATTR_PORT_INFO_REC:
		return query(req, SA_PORT_RECORD_SIZE, sa_list_ports);
	case IB_SA_ATTR_LINK_REC:
		return query(req, SA_LINK_RECORD_SIZE, sa_list_links);
	default:
		return VHCA_MAD_BAD_ATTR;
	}
}

int vhca_sa_process(struct vhca_port *port, const struct ib_wc *wc,
		    struct ib_sa_mad *mad)
{
	struct sa_request req = {
		.port = port,
		.from = wc ? vhca_port_by_lid(wc->slid) : NULL,
		.wc = wc,
		.mad = mad,
		.mask = mad->sa_hdr.comp_mask,
	};

	/* A response, for a client on this port that asked. */
	if (!wc || mad->mad_hdr.method & IB_MGMT_METHOD_RESP)
		return IB_MAD_RESULT_SUCCESS;
	if (ib_get_rmpp_flags(&mad->rmpp_hdr) & IB_MGMT_RMPP_FLAG_ACTIVE &&
	    mad->rmpp_hdr.rmpp_type != IB_MGMT_RMPP_TYPE_DATA) {
		sa_rmpp_input(&req);
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	}
	memset(&mad->rmpp_hdr, 0, sizeof(mad->rmpp_hdr));
	vhca_mad_respond(&mad->mad_hdr, answer(&req));
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

int vhca_sa_init(void)
{
	return sa_mcast_init();
}

void vhca_sa_exit(void)
{
	sa_rmpp_exit();
	sa_mcast_exit();
}
