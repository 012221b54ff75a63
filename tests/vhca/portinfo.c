// SPDX-License-Identifier: GPL-2.0-only
/*
 * PortInfo, P_KeyTable and the VL tables: what a port of a CA and a port of the
 * switch have in common (IBA 14.2.5.6, 14.2.5.7 to 14.2.5.9).
 */
#include <linux/jiffies.h>
#include <linux/unaligned.h>

#include "vhca.h"

#define SPEEDS_SUPPORTED	(IB_SPEED_SDR | IB_SPEED_DDR | IB_SPEED_QDR)
#define WIDTHS_SUPPORTED	(IB_WIDTH_1X | IB_WIDTH_4X)
#define PHYS_SLEEP		IB_PORT_PHYS_STATE_SLEEP
#define PHYS_POLLING		IB_PORT_PHYS_STATE_POLLING
#define PHYS_DISABLED		IB_PORT_PHYS_STATE_DISABLED

void vhca_sma_reset(struct vhca_sma *sma)
{
	unsigned int t, i;

	memset(sma, 0, sizeof(*sma));
	sma->width_enabled = WIDTHS_SUPPORTED;
	sma->speed_enabled = SPEEDS_SUPPORTED;
	sma->down_default = PHYS_POLLING;
	sma->op_vls = VHCA_NUM_VLS;
	for (t = 0; t < ARRAY_SIZE(sma->vl_arb); t++)
		for (i = 0; i < VHCA_NUM_VL_ARB; i++)
			sma->vl_arb[t][i].weight = i ? 0 : 1;
}

/* 0 keeps the value, all ones means all that is supported. */
static bool enabled_ok(u8 value, u8 supported, u8 all)
{
	return value == all || !(value & ~supported);
}

static bool unicast_lid(u16 lid)
{
	return lid && lid < VHCA_UNICAST_LIDS;
}

static bool state_ok(u8 now, u8 asked)
{
	switch (asked) {
	case IB_PORT_NOP:
	case IB_PORT_DOWN:
		return true;
	case IB_PORT_ARMED:
		return now == IB_PORT_INIT || now == IB_PORT_ARMED;
	case IB_PORT_ACTIVE:
		return now == IB_PORT_ARMED || now == IB_PORT_ACTIVE;
	default:
		return false;
	}
}

static bool phys_ok(u8 phys)
{
	return !phys || phys == PHYS_SLEEP || phys == PHYS_POLLING ||
	       phys == PHYS_DISABLED;
}

u16 vhca_portinfo_parse(const struct ib_port_info *pi, enum vhca_port_kind kind,
			struct vhca_portinfo_set *set)
{
	const struct vhca_portinfo_set now = *set;
	u8 down_default = pi->portphysstate_linkdown & 0xf;

	memset(set, 0, sizeof(*set));
	set->lid = be16_to_cpu(pi->lid);
	set->sm_lid = be16_to_cpu(pi->sm_lid);
	set->lmc = pi->mkeyprot_resv_lmc & 0x7;
	set->sm_sl = pi->neighbormtu_mastersmsl & 0xf;
	set->subnet_timeout = pi->clientrereg_resv_subnetto & 0x1f;
	set->reregister = pi->clientrereg_resv_subnetto & 0x80;
	set->clear_pkey_violations = !pi->pkey_violations;
	set->clear_qkey_violations = !pi->qkey_violations;

	if (kind != VHCA_PORT_SWITCH_EXT) {
		/* 0 may stay, as in a Set that only touches the link. */
		if ((set->lid != now.lid && !unicast_lid(set->lid)) ||
		    (set->sm_lid != now.sm_lid && !unicast_lid(set->sm_lid)))
			return VHCA_MAD_BAD_VALUE;
		if (set->lid & ((1U << set->lmc) - 1))
			return VHCA_MAD_BAD_VALUE;
		if (kind == VHCA_PORT_SWITCH_0)	/* a base port 0 has no more */
			return set->lmc ? VHCA_MAD_BAD_VALUE : VHCA_MAD_OK;
	}

	set->state = pi->linkspeed_portstate & 0xf;
	set->phys = pi->portphysstate_linkdown >> 4;
	set->mtu = pi->neighbormtu_mastersmsl >> 4;
	if (!state_ok(now.state, set->state) || !phys_ok(set->phys) ||
	    down_default > PHYS_POLLING)
		return VHCA_MAD_BAD_VALUE;
	if (set->mtu < IB_MTU_256 || set->mtu > vhca_mtu_enum())
		return VHCA_MAD_BAD_VALUE;
	if (pi->operationalvl_pei_peo_fpi_fpo >> 4 > VHCA_NUM_VLS)
		return VHCA_MAD_BAD_VALUE;
	if (!enabled_ok(pi->link_width_enabled, WIDTHS_SUPPORTED, 0xff) ||
	    !enabled_ok(pi->linkspeedactive_enabled & 0xf, SPEEDS_SUPPORTED,
			0xf))
		return VHCA_MAD_BAD_VALUE;
	return VHCA_MAD_OK;
}

void vhca_portinfo_store(struct vhca_sma *sma, const struct ib_port_info *pi,
			 enum vhca_port_kind kind)
{
	u8 speed = pi->linkspeedactive_enabled & 0xf;
	u8 width = pi->link_width_enabled;
	u8 op_vls = pi->operationalvl_pei_peo_fpi_fpo >> 4;

	if (kind != VHCA_PORT_SWITCH_EXT) {
		sma->m_key = pi->mkey;
		sma->m_key_protect = pi->mkeyprot_resv_lmc >> 6;
		sma->m_key_lease = be16_to_cpu(pi->mkey_lease_period);
		if (!pi->mkey_violations)
			sma->m_key_violations = 0;
	}
	if (kind == VHCA_PORT_SWITCH_0)
		return;
	if (width)
		sma->width_enabled = width == 0xff ? WIDTHS_SUPPORTED : width;
	if (speed)
		sma->speed_enabled = speed == 0xf ? SPEEDS_SUPPORTED : speed;
	if (pi->portphysstate_linkdown & 0xf)
		sma->down_default = pi->portphysstate_linkdown & 0xf;
	if (op_vls)
		sma->op_vls = op_vls;
	sma->enforcement = pi->operationalvl_pei_peo_fpi_fpo & 0xf;
	sma->vl_high_limit = pi->vl_high_limit;
	sma->vl_stall_hoq = pi->vlstallcnt_hoqlife;
	sma->error_thresholds = pi->localphyerrors_overrunerrors;
}

void vhca_portinfo_fill(struct ib_port_info *pi, const struct vhca_sma *sma,
			enum vhca_port_kind kind, u8 state, u8 phys, u8 mtu)
{
	bool up = phys == IB_PORT_PHYS_STATE_LINK_UP;

	pi->link_width_enabled = sma->width_enabled;
	pi->link_width_supported = WIDTHS_SUPPORTED;
	pi->link_width_active = VHCA_LINK_WIDTH;
	pi->linkspeed_portstate = SPEEDS_SUPPORTED << 4 | state;
	pi->portphysstate_linkdown = phys << 4 | sma->down_default;
	pi->linkspeedactive_enabled =
		(up ? VHCA_LINK_SPEED : IB_SPEED_SDR) << 4 | sma->speed_enabled;
	pi->neighbormtu_mastersmsl |= mtu << 4;
	pi->vlcap_inittype = VHCA_NUM_VLS << 4;
	pi->vl_high_limit = sma->vl_high_limit;
	pi->vl_arb_high_cap = VHCA_NUM_VL_ARB;
	pi->vl_arb_low_cap = VHCA_NUM_VL_ARB;
	pi->inittypereply_mtucap = vhca_mtu_enum();
	pi->vlstallcnt_hoqlife = sma->vl_stall_hoq;
	pi->operationalvl_pei_peo_fpi_fpo = sma->op_vls << 4 | sma->enforcement;
	pi->localphyerrors_overrunerrors = sma->error_thresholds;
	if (kind == VHCA_PORT_SWITCH_EXT)
		return;
	pi->mkey = sma->m_key;
	pi->mkey_lease_period = cpu_to_be16(sma->m_key_lease);
	pi->mkey_violations = cpu_to_be16(sma->m_key_violations);
	pi->mkeyprot_resv_lmc |= sma->m_key_protect << 6;
}

/*
 * With a single data VL there is nothing to choose: only VL0 and VL15 (discard)
 * make sense, the rest is refused.
 */
u16 vhca_sma_sl_to_vl(u8 *table, struct ib_smp *smp, bool set)
{
	unsigned int i;

	if (set) {
		for (i = 0; i < 2 * VHCA_SL_TO_VL_BYTES; i++) {
			u8 vl = smp->data[i / 2] >> (i & 1 ? 0 : 4) & 0xf;

			if (vl >= VHCA_NUM_VLS && vl != 15)
				return VHCA_MAD_BAD_VALUE;
		}
		memcpy(table, smp->data, VHCA_SL_TO_VL_BYTES);
	}
	memset(smp->data, 0, sizeof(smp->data));
	memcpy(smp->data, table, VHCA_SL_TO_VL_BYTES);
	return VHCA_MAD_OK;
}

u16 vhca_sma_vl_arb(struct vhca_sma *sma, struct ib_smp *smp, bool set)
{
	unsigned int block = be32_to_cpu(smp->attr_mod) >> 16;
	const size_t bytes = VHCA_NUM_VL_ARB * sizeof(sma->vl_arb[0][0]);

	/* 1, 2: low priority, lower and upper half; 3, 4: high priority. */
	if (block < 1 || block > ARRAY_SIZE(sma->vl_arb))
		return VHCA_MAD_BAD_VALUE;
	/* Entries past the capability, so all of each upper half, read as 0. */
	if (set && (block & 1))
		memcpy(sma->vl_arb[block - 1], smp->data, bytes);
	memset(smp->data, 0, sizeof(smp->data));
	if (block & 1)
		memcpy(smp->data, sma->vl_arb[block - 1], bytes);
	return VHCA_MAD_OK;
}

void vhca_pkey_block_get(const u16 *table, unsigned int block, u8 *data)
{
	unsigned int i;

	for (i = 0; i < VHCA_PKEY_BLOCK; i++)
		put_unaligned_be16(table[block * VHCA_PKEY_BLOCK + i],
				   data + 2 * i);
}

void vhca_pkey_block_set(u16 *table, unsigned int block, const u8 *data)
{
	unsigned int i;

	for (i = 0; i < VHCA_PKEY_BLOCK; i++)
		table[block * VHCA_PKEY_BLOCK + i] =
			get_unaligned_be16(data + 2 * i);
}

bool vhca_mkey_ok(struct vhca_sma *sma, const struct ib_smp *smp, bool *hide)
{
	*hide = false;
	if (sma->lease_end && time_after(jiffies, sma->lease_end)) {
		sma->lease_end = 0;
		sma->m_key_protect = 0;
	}
	if (!sma->m_key || sma->m_key == smp->mkey) {
		sma->lease_end = 0;
		return true;
	}
	if (smp->method == IB_MGMT_METHOD_GET && sma->m_key_protect < 2) {
		*hide = sma->m_key_protect == 1;
		return true;
	}
	if (sma->m_key_violations != U16_MAX)
		sma->m_key_violations++;
	if (sma->m_key_lease && !sma->lease_end)
		sma->lease_end = (jiffies + sma->m_key_lease * HZ) ?: 1;
	return false;
}
