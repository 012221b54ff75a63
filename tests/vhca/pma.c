// SPDX-License-Identifier: GPL-2.0-only
/*
 * Performance management agent (IBA 16.1.3): PortCounters and
 * PortCountersExtended, fed from the counters of the HCA on the link. A port of
 * the switch shows what its HCA shows, with the directions swapped. The data
 * counters hold the payload, not the headers.
 */
#include "vhca.h"

#define PMA_RESP_TIME		18
#define ALL_PORTS		0xff

static u64 total(struct vhca_dev *dev, enum vhca_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->counters, cpu)->v[counter]);
	return sum;
}

void vhca_pma_read_port(struct vhca_port *port, u64 *c)
{
	struct vhca_dev *dev = port->dev;
	u64 mad_tx = total(dev, VHCA_CNT_mad_tx_packets);
	u64 mad_rx = total(dev, VHCA_CNT_mad_rx_packets);

	c[VHCA_PMA_XMIT_DATA] = (total(dev, VHCA_CNT_tx_bytes) +
				 mad_tx * IB_MGMT_MAD_SIZE) / 4;
	c[VHCA_PMA_RCV_DATA] = (total(dev, VHCA_CNT_rx_bytes) +
				mad_rx * IB_MGMT_MAD_SIZE) / 4;
	c[VHCA_PMA_XMIT_PKTS] = total(dev, VHCA_CNT_tx_packets) + mad_tx;
	c[VHCA_PMA_RCV_PKTS] = total(dev, VHCA_CNT_rx_packets) + mad_rx;
	c[VHCA_PMA_MC_XMIT_PKTS] = total(dev, VHCA_CNT_tx_mcast_packets);
	c[VHCA_PMA_MC_RCV_PKTS] = total(dev, VHCA_CNT_rx_mcast_packets);
	c[VHCA_PMA_UC_XMIT_PKTS] =
		c[VHCA_PMA_XMIT_PKTS] - c[VHCA_PMA_MC_XMIT_PKTS];
	c[VHCA_PMA_UC_RCV_PKTS] =
		c[VHCA_PMA_RCV_PKTS] - c[VHCA_PMA_MC_RCV_PKTS];
	c[VHCA_PMA_LINK_DOWNED] = vhca_switch_link_downed(port);
	/* A packet lost on demand is a packet with an error. */
	c[VHCA_PMA_RCV_ERRORS] = total(dev, VHCA_CNT_drop_fault);
	c[VHCA_PMA_XMIT_DISCARDS] = total(dev, VHCA_CNT_drop_port_down);
}

/* Sum over the ports that @select names, less what a Set has cleared. */
static void collect(const struct vhca_pma_ops *ops, void *arg, u8 select, u64 *sum)
{
	unsigned int port, first = select, last = select, i;
	u64 now[VHCA_PMA_NUM];

	if (select == ALL_PORTS) {
		first = ops->first_port;
		last = ops->last_port;
	}
	memset(sum, 0, VHCA_PMA_NUM * sizeof(*sum));
	for (port = first; port <= last; port++) {
		struct vhca_pma *base = ops->base(arg, port);

		ops->read(arg, port, now);
		for (i = 0; i < VHCA_PMA_NUM; i++)
			sum[i] += now[i] - base->base[i];
	}
}

static void clear(const struct vhca_pma_ops *ops, void *arg, u8 select,
		  unsigned long which)
{
	unsigned int port, first = select, last = select, i;
	u64 now[VHCA_PMA_NUM];

	if (select == ALL_PORTS) {
		first = ops->first_port;
		last = ops->last_port;
	}
	for (port = first; port <= last; port++) {
		struct vhca_pma *base = ops->base(arg, port);

		ops->read(arg, port, now);
		for_each_set_bit(i, &which, VHCA_PMA_NUM)
			base->base[i] = now[i];
	}
}

/* CounterSelect bits of the two attributes, and what they select. */
static const struct { u16 bit; u16 counter; } select_bits[] = {
	{ 0x0004, VHCA_PMA_LINK_DOWNED },	{ 0x0008, VHCA_PMA_RCV_ERRORS },
	{ 0x0040, VHCA_PMA_XMIT_DISCARDS },	{ 0x1000, VHCA_PMA_XMIT_DATA },
	{ 0x2000, VHCA_PMA_RCV_DATA },		{ 0x4000, VHCA_PMA_XMIT_PKTS },
	{ 0x8000, VHCA_PMA_RCV_PKTS },
}, select_bits_ext[] = {
	{ 0x0001, VHCA_PMA_XMIT_DATA },		{ 0x0002, VHCA_PMA_RCV_DATA },
	{ 0x0004, VHCA_PMA_XMIT_PKTS },		{ 0x0008, VHCA_PMA_RCV_PKTS },
	{ 0x0010, VHCA_PMA_UC_XMIT_PKTS },	{ 0x0020, VHCA_PMA_UC_RCV_PKTS },
	{ 0x0040, VHCA_PMA_MC_XMIT_PKTS },	{ 0x0080, VHCA_PMA_MC_RCV_PKTS },
};

static unsigned long selected(u16 mask, bool extended)
{
	unsigned long which = 0;
	unsigned int i;

	if (extended) {
		for (i = 0; i < ARRAY_SIZE(select_bits_ext); i++)
			if (mask & select_bits_ext[i].bit)
				which |= BIT(select_bits_ext[i].counter);
	} else {
		for (i = 0; i < ARRAY_SIZE(select_bits); i++)
			if (mask & select_bits[i].bit)
				which |= BIT(select_bits[i].counter);
	}
	return which;
}

/* These counters stop at their largest value. */
static void fill_counters(struct ib_pma_portcounters *p, const u64 *c)
{
	p->link_downed_counter = min_t(u64, c[VHCA_PMA_LINK_DOWNED], U8_MAX);
	p->port_rcv_errors =
		cpu_to_be16(min_t(u64, c[VHCA_PMA_RCV_ERRORS], U16_MAX));
	p->port_xmit_discards =
		cpu_to_be16(min_t(u64, c[VHCA_PMA_XMIT_DISCARDS], U16_MAX));
	p->port_xmit_data =
		cpu_to_be32(min_t(u64, c[VHCA_PMA_XMIT_DATA], U32_MAX));
	p->port_rcv_data =
		cpu_to_be32(min_t(u64, c[VHCA_PMA_RCV_DATA], U32_MAX));
	p->port_xmit_packets =
		cpu_to_be32(min_t(u64, c[VHCA_PMA_XMIT_PKTS], U32_MAX));
	p->port_rcv_packets =
		cpu_to_be32(min_t(u64, c[VHCA_PMA_RCV_PKTS], U32_MAX));
}

static void fill_extended(struct ib_pma_portcounters_ext *p, const u64 *c)
{
	p->port_xmit_data = cpu_to_be64(c[VHCA_PMA_XMIT_DATA]);
	p->port_rcv_data = cpu_to_be64(c[VHCA_PMA_RCV_DATA]);
	p->port_xmit_packets = cpu_to_be64(c[VHCA_PMA_XMIT_PKTS]);
	p->port_rcv_packets = cpu_to_be64(c[VHCA_PMA_RCV_PKTS]);
	p->port_unicast_xmit_packets = cpu_to_be64(c[VHCA_PMA_UC_XMIT_PKTS]);
	p->port_unicast_rcv_packets = cpu_to_be64(c[VHCA_PMA_UC_RCV_PKTS]);
	p->port_multicast_xmit_packets = cpu_to_be64(c[VHCA_PMA_MC_XMIT_PKTS]);
	p->port_multicast_rcv_packets = cpu_to_be64(c[VHCA_PMA_MC_RCV_PKTS]);
}

/* Both attributes start with a reserved byte, PortSelect and CounterSelect. */
static u16 counters(struct ib_pma_mad *mad, const struct vhca_pma_ops *ops,
		    void *arg, bool extended)
{
	struct ib_pma_portcounters *head = (void *)mad->data;
	u16 mask = be16_to_cpu(head->counter_select);
	u8 select = head->port_select;
	u64 sum[VHCA_PMA_NUM];

	if (select != ALL_PORTS &&
	    (select < ops->first_port || select > ops->last_port))
		return VHCA_MAD_BAD_VALUE;
	if (mad->mad_hdr.method == IB_MGMT_METHOD_SET)
		clear(ops, arg, select, selected(mask, extended));
	collect(ops, arg, select, sum);
	memset(mad->data, 0, sizeof(mad->data));
	head->port_select = select;
	head->counter_select = cpu_to_be16(mask);
	if (extended)
		fill_extended((void *)mad->data, sum);
	else
		fill_counters(head, sum);
	return VHCA_MAD_OK;
}

u16 vhca_pma_answer(struct ib_pma_mad *mad, const struct vhca_pma_ops *ops,
		    void *arg)
{
	struct ib_class_port_info *cpi = (void *)mad->data;

	if (mad->mad_hdr.class_version != 1)
		return VHCA_MAD_BAD_VERSION;
	if (mad->mad_hdr.method != IB_MGMT_METHOD_GET &&
	    mad->mad_hdr.method != IB_MGMT_METHOD_SET)
		return VHCA_MAD_BAD_METHOD;
	switch (mad->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		if (mad->mad_hdr.method == IB_MGMT_METHOD_SET)
			return VHCA_MAD_BAD_ATTR;
		memset(mad->data, 0, sizeof(mad->data));
		cpi->base_version = IB_MGMT_BASE_VERSION;
		cpi->class_version = 1;
		cpi->capability_mask = IB_PMA_CLASS_CAP_ALLPORTSELECT |
				       IB_PMA_CLASS_CAP_EXT_WIDTH;
		ib_set_cpi_resp_time(cpi, PMA_RESP_TIME);
		return VHCA_MAD_OK;
	case IB_PMA_PORT_COUNTERS:
		return counters(mad, ops, arg, false);
	case IB_PMA_PORT_COUNTERS_EXT:
		return counters(mad, ops, arg, true);
	default:
		return VHCA_MAD_BAD_ATTR;
	}
}

static void read_ca(void *arg, unsigned int port, u64 *counters)
{
	vhca_pma_read_port(arg, counters);
}

static struct vhca_pma *base_ca(void *arg, unsigned int port)
{
	return &((struct vhca_port *)arg)->sma.pma;
}

int vhca_pma_process(struct vhca_port *port, struct ib_pma_mad *mad)
{
	static const struct vhca_pma_ops ops = {
		.first_port = VHCA_PORT_NUM,
		.last_port = VHCA_PORT_NUM,
		.read = read_ca,
		.base = base_ca,
	};

	if (mad->mad_hdr.method & IB_MGMT_METHOD_RESP)
		return IB_MAD_RESULT_SUCCESS;
	vhca_mad_respond(&mad->mad_hdr, vhca_pma_answer(mad, &ops, port));
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
