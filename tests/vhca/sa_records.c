// SPDX-License-Identifier: GPL-2.0-only
/*
 * NodeRecord, PortInfoRecord and LinkRecord (IBA 15.2.5.2, 15.2.5.3, 15.2.5.13)
 * of the managed mode.
 */
#include "sa.h"

struct node_record {
	__be16 lid;
	__be16 resv;
	struct ib_node_info info;
	u8 description[IB_DEVICE_NODE_DESC_MAX];
	u8 pad[4];
} __packed;

struct port_record {
	__be16 lid;
	u8 port;
	u8 options;
	struct ib_port_info info;
	u8 pad[4];
} __packed;

struct link_record {
	__be16 from_lid;
	u8 from_port;
	u8 to_port;
	__be16 to_lid;
	u8 pad[2];
} __packed;

/* Component mask bit n of a record: where its field is. */
struct field {
	u8 offset;
	u8 bytes;
};

#define FIELD(type, member)						\
	{ offsetof(struct type, member), sizeof_field(struct type, member) }

static const struct field node_fields[] = {
	FIELD(node_record, lid),
	{},			/* reserved */
	FIELD(node_record, info.base_version),
	FIELD(node_record, info.class_version),
	FIELD(node_record, info.node_type),
	FIELD(node_record, info.num_ports),
	FIELD(node_record, info.sys_guid),
	FIELD(node_record, info.node_guid),
	FIELD(node_record, info.port_guid),
	FIELD(node_record, info.partition_cap),
	FIELD(node_record, info.device_id),
	FIELD(node_record, info.revision),
	FIELD(node_record, info.local_port_num),
	FIELD(node_record, info.vendor_id),
	FIELD(node_record, description),
};

/* The rest of PortInfo cannot be asked for. */
static const struct field port_fields[] = {
	FIELD(port_record, lid),
	FIELD(port_record, port),
};

static const struct field link_fields[] = {
	FIELD(link_record, from_lid),
	FIELD(link_record, from_port),
	FIELD(link_record, to_port),
	FIELD(link_record, to_lid),
};

static bool fields_known(const struct sa_request *req, size_t n)
{
	return !(be64_to_cpu((__force __be64)req->mask) >> n);
}

static bool matches(const struct sa_request *req, const struct field *fields,
		    size_t n, const void *record)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (sa_has(req, IB_SA_COMP_MASK(i)) &&
		    memcmp(req->mad->data + fields[i].offset,
			   record + fields[i].offset, fields[i].bytes))
			return false;
	return true;
}

static bool add_node(const struct sa_request *req, struct sa_table *table,
		     const struct node_record *rec)
{
	return !matches(req, node_fields, ARRAY_SIZE(node_fields), rec) ||
	       sa_table_add(table, rec);
}

u16 sa_list_nodes(const struct sa_request *req, struct sa_table *table)
{
	struct node_record rec = {};
	struct vhca_port *port;
	unsigned int i;

	BUILD_BUG_ON(sizeof(rec) != SA_NODE_RECORD_SIZE);
	if (!fields_known(req, ARRAY_SIZE(node_fields)))
		return SA_ERR_REQ_INVALID;
	rec.lid = cpu_to_be16(vhca_switch_lid());
	vhca_switch_get_nodeinfo(0, &rec.info);
	memcpy(rec.description, vhca_switch_node_desc(),
	       sizeof(rec.description));
	if (!add_node(req, table, &rec))
		return SA_ERR_NO_RESOURCES;
	vhca_for_each_port(i, port) {
		rec.lid = cpu_to_be16(READ_ONCE(port->lid));
		vhca_sma_get_nodeinfo(port, &rec.info);
		memcpy(rec.description, port->dev->ibdev.node_desc,
		       sizeof(rec.description));
		if (!add_node(req, table, &rec))
			return SA_ERR_NO_RESOURCES;
	}
	return VHCA_MAD_OK;
}

static bool add_port(const struct sa_request *req, struct sa_table *table,
		     const struct port_record *rec)
{
	return !matches(req, port_fields, ARRAY_SIZE(port_fields), rec) ||
	       sa_table_add(table, rec);
}

u16 sa_list_ports(const struct sa_request *req, struct sa_table *table)
{
	struct port_record rec = {};
	struct vhca_port *port;
	unsigned int i;

	BUILD_BUG_ON(sizeof(rec) != SA_PORT_RECORD_SIZE);
	if (!fields_known(req, ARRAY_SIZE(port_fields)))
		return SA_ERR_REQ_INVALID;
	for (i = 0; i <= vhca_switch_num_ports(); i++) {
		rec.lid = cpu_to_be16(vhca_switch_lid());
		rec.port = i;
		vhca_switch_get_portinfo(i, 0, &rec.info);
		rec.info.mkey = 0;
		if (!add_port(req, table, &rec))
			return SA_ERR_NO_RESOURCES;
	}
	vhca_for_each_port(i, port) {
		rec.lid = cpu_to_be16(READ_ONCE(port->lid));
		rec.port = VHCA_PORT_NUM;
		vhca_sma_get_portinfo(port, &rec.info);
		rec.info.mkey = 0;
		if (!add_port(req, table, &rec))
			return SA_ERR_NO_RESOURCES;
	}
	return VHCA_MAD_OK;
}

static bool add_link(const struct sa_request *req, struct sa_table *table,
		     const struct link_record *rec)
{
	return !matches(req, link_fields, ARRAY_SIZE(link_fields), rec) ||
	       sa_table_add(table, rec);
}

/* Each link that is up, from both of its ends. */
u16 sa_list_links(const struct sa_request *req, struct sa_table *table)
{
	struct vhca_port *port;
	unsigned int i;

	BUILD_BUG_ON(sizeof(struct link_record) != SA_LINK_RECORD_SIZE);
	if (!fields_known(req, ARRAY_SIZE(link_fields)))
		return SA_ERR_REQ_INVALID;
	vhca_for_each_port(i, port) {
		__be16 sw = cpu_to_be16(vhca_switch_lid());
		__be16 lid = cpu_to_be16(READ_ONCE(port->lid));
		struct link_record out = {
			.from_lid = lid, .from_port = VHCA_PORT_NUM,
			.to_lid = sw, .to_port = i + 1,
		}, in = {
			.from_lid = sw, .from_port = i + 1,
			.to_lid = lid, .to_port = VHCA_PORT_NUM,
		};

		if (!vhca_port_link_up(port))
			continue;
		if (!add_link(req, table, &out) || !add_link(req, table, &in))
			return SA_ERR_NO_RESOURCES;
	}
	return VHCA_MAD_OK;
}
