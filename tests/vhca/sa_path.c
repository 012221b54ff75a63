// SPDX-License-Identifier: GPL-2.0-only
/* PathRecord of the managed mode (IBA 15.2.5.16). */
#include "sa.h"

struct path_record {
	__be64 service_id;
	union ib_gid dgid;
	union ib_gid sgid;
	__be16 dlid;
	__be16 slid;
	__be32 raw_flow_hop;
	u8 tclass;
	u8 reversible_numb;
	__be16 pkey;
	__be16 qos_sl;
	u8 mtu;
	u8 rate;
	u8 life;
	u8 preference;
	u8 resv[6];
} __packed;

/* One end of a path: the port of an HCA, or port 0 of the switch. */
struct end {
	struct vhca_port *port;		/* NULL: the switch */
	const u16 *pkeys;
	union ib_gid gid;
	u16 lid;
	u8 mtu;
};

#define NUM_ENDS	(VHCA_MAX_HCAS + 1)

/* The end number @i; false if it is not there, or its link is not ACTIVE. */
static bool get_end(unsigned int i, struct end *end)
{
	memset(end, 0, sizeof(*end));
	if (i == VHCA_MAX_HCAS) {
		end->pkeys = vhca_switch_pkeys();
		vhca_switch_gid(&end->gid);
		end->lid = vhca_switch_lid();
		end->mtu = vhca_mtu_enum();
		return true;
	}
	end->port = vhca_port_by_index(i);
	if (!end->port || !vhca_port_active(end->port))
		return false;
	end->pkeys = end->port->pkeys;
	vhca_port_gid(end->port, 0, &end->gid);
	end->lid = READ_ONCE(end->port->lid);
	end->mtu = READ_ONCE(end->port->active_mtu);
	return true;
}

static bool gid_matches(const struct end *end, const union ib_gid *gid)
{
	return gid->global.subnet_prefix == end->gid.global.subnet_prefix &&
	       (gid->global.interface_id == end->gid.global.interface_id ||
		(end->port && vhca_port_has_guid(end->port,
						 gid->global.interface_id)));
}

static bool lid_matches(const struct end *end, u16 lid)
{
	return end->port ? vhca_port_owns_lid(end->port, lid) : lid == end->lid;
}

static bool end_matches(const struct end *end, const union ib_gid *gid,
			const __be16 *lid)
{
	return (!gid || gid_matches(end, gid)) &&
	       (!lid || lid_matches(end, be16_to_cpu(*lid)));
}

static bool gid_known(const union ib_gid *gid)
{
	struct end end;
	unsigned int i;

	for (i = 0; i < NUM_ENDS; i++)
		if (get_end(i, &end) && gid_matches(&end, gid))
			return true;
	return false;
}

/* A P_Key that both ends hold, in a way that lets them talk; 0 if none. */
static u16 common_pkey(const struct end *a, const struct end *b, u16 wanted)
{
	unsigned int i, j;

	for (i = 0; i < VHCA_NUM_PKEYS; i++) {
		u16 pkey = READ_ONCE(a->pkeys[i]);

		if (!(pkey & 0x7fff) || (wanted && (pkey ^ wanted) & 0x7fff))
			continue;
		for (j = 0; j < VHCA_NUM_PKEYS; j++)
			if (vhca_pkey_match(pkey, READ_ONCE(b->pkeys[j])))
				return pkey;
	}
	return 0;
}

/* Turns the request in @rec into the path from @src to @dst, if there is one. */
static bool make_path(const struct sa_request *req, struct path_record *rec,
		      const struct end *src, const struct end *dst)
{
	bool by_pkey = sa_has(req, IB_SA_PATH_REC_PKEY);
	u32 flow_hop = be32_to_cpu(rec->raw_flow_hop);
	u8 mtu = min(src->mtu, dst->mtu);
	u8 rate = VHCA_LINK_RATE, life = SA_PACKET_LIFE;
	u16 pkey;

	if (by_pkey && !(be16_to_cpu(rec->pkey) & 0x7fff))
		return false;
	if (sa_has(req, IB_SA_PATH_REC_RAW_TRAFFIC) && flow_hop >> 31)
		return false;
	pkey = common_pkey(src, dst, by_pkey ? be16_to_cpu(rec->pkey) : 0);
	if (sa_has(req, IB_SA_PATH_REC_MTU_SELECTOR | IB_SA_PATH_REC_MTU))
		mtu = sa_choose_mtu(rec->mtu, mtu);
	if (sa_has(req, IB_SA_PATH_REC_RATE_SELECTOR | IB_SA_PATH_REC_RATE))
		rate = sa_choose_rate(rec->rate, rate);
	if (sa_has(req, IB_SA_PATH_REC_PACKET_LIFE_TIME_SELECTOR |
			IB_SA_PATH_REC_PACKET_LIFE_TIME) &&
	    !sa_selector_matches(rec->life, life))
		return false;
	if (!pkey || !mtu || !rate)
		return false;

	if (!sa_has(req, IB_SA_PATH_REC_SERVICE_ID))
		rec->service_id = 0;
	if (!sa_has(req, IB_SA_PATH_REC_DGID))
		rec->dgid = dst->gid;
	if (!sa_has(req, IB_SA_PATH_REC_SGID))
		rec->sgid = src->gid;
	if (!sa_has(req, IB_SA_PATH_REC_DLID))
		rec->dlid = cpu_to_be16(dst->lid);
	if (!sa_has(req, IB_SA_PATH_REC_SLID))
		rec->slid = cpu_to_be16(src->lid);
	if (!sa_has(req, IB_SA_PATH_REC_FLOW_LABEL))
		flow_hop = 0;
	/* One subnet: no raw traffic, hop limit 0, so no GRH is needed. */
	rec->raw_flow_hop = cpu_to_be32(flow_hop & 0x0fffff00);
	if (!sa_has(req, IB_SA_PATH_REC_TRAFFIC_CLASS))
		rec->tclass = 0;
	rec->reversible_numb = 0x81;
	rec->pkey = cpu_to_be16(pkey);
	if (!sa_has(req, IB_SA_PATH_REC_QOS_CLASS))
		rec->qos_sl &= cpu_to_be16(0x000f);
	if (!sa_has(req, IB_SA_PATH_REC_SL))
		rec->qos_sl &= cpu_to_be16(0xfff0);
	rec->mtu = IB_SA_EQ << 6 | mtu;
	rec->rate = IB_SA_EQ << 6 | rate;
	rec->life = IB_SA_EQ << 6 | life;
	rec->preference = 0;
	memset(rec->resv, 0, sizeof(rec->resv));
	return true;
}

u16 sa_list_paths(const struct sa_request *req, struct sa_table *table)
{
	const struct path_record *want = (const void *)req->mad->data;
	const union ib_gid *dgid, *sgid;
	const __be16 *dlid, *slid;
	struct end src, dst;
	unsigned int i, j;

	BUILD_BUG_ON(sizeof(*want) != SA_PATH_RECORD_SIZE);
	dgid = sa_has(req, IB_SA_PATH_REC_DGID) ? &want->dgid : NULL;
	sgid = sa_has(req, IB_SA_PATH_REC_SGID) ? &want->sgid : NULL;
	dlid = sa_has(req, IB_SA_PATH_REC_DLID) ? &want->dlid : NULL;
	slid = sa_has(req, IB_SA_PATH_REC_SLID) ? &want->slid : NULL;

	if (req->mad->mad_hdr.method == IB_MGMT_METHOD_GET &&
	    ((!dgid && !dlid) || (!sgid && !slid)))
		return SA_ERR_INSUFFICIENT;
	if ((dgid && !gid_known(dgid)) || (sgid && !gid_known(sgid)))
		return SA_ERR_REQ_INVALID_GID;

	for (i = 0; i < NUM_ENDS; i++) {
		if (!get_end(i, &src) || !end_matches(&src, sgid, slid))
			continue;
		for (j = 0; j < NUM_ENDS; j++) {
			struct path_record rec = *want;

			if (get_end(j, &dst) && end_matches(&dst, dgid, dlid) &&
			    make_path(req, &rec, &src, &dst) &&
			    !sa_table_add(table, &rec))
				return SA_ERR_NO_RESOURCES;
		}
	}
	return VHCA_MAD_OK;
}
