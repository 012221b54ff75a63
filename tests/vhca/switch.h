/* SPDX-License-Identifier: GPL-2.0-only */
/* The virtual switch, as its own files see it (switch*.c). */
#ifndef VHCA_SWITCH_H
#define VHCA_SWITCH_H

#include "vhca.h"

#define SW_NUM_MLIDS		1024
#define SW_MFT_BLOCK		32	/* MLIDs of a block */
#define SW_MFT_PORTS		16	/* ports of a position */
#define SW_MFT_POSITIONS	(VHCA_MAX_HCAS / SW_MFT_PORTS + 1)
#define SW_LFT_BLOCK		64
#define SW_NO_PORT		0xff

/*
 * One port; 0 is the switch's own. @hca is written with the fabric lock held
 * for writing, the rest under vhca_sw.lock; @state, @phys and @hca may be read
 * without it.
 */
struct vhca_sw_port {
	struct vhca_port *hca;
	u8 state;			/* enum ib_port_state */
	u8 phys;			/* enum ib_port_phys_state */
	u8 mtu;				/* enum ib_mtu */
	u8 phys_admin;			/* what the SM asked for last */
	u32 link_downed;
	u8 sl_to_vl[VHCA_MAX_HCAS + 1][VHCA_SL_TO_VL_BYTES]; /* by output */
	struct vhca_sma sma;
};

/* Port i + 1 belongs to HCA i. Forwarding tables are read without the lock. */
struct vhca_sw {
	spinlock_t lock;
	unsigned int num_ports;
	__be64 guid;
	__be64 gid_prefix;
	u16 lid;
	u16 sm_lid;
	u8 sm_sl;
	u8 default_port;
	u8 mcast_primary_port;
	u8 mcast_other_port;
	u8 life_time;			/* 5 bits */
	bool port_state_change;
	u16 linear_top;
	u16 mcast_top;
	u16 pkeys[VHCA_NUM_PKEYS];	/* of port 0 */
	struct vhca_sw_port port[VHCA_MAX_HCAS + 1];
	u8 lft[VHCA_UNICAST_LIDS];
	u16 mft[SW_NUM_MLIDS][SW_MFT_POSITIONS];
};

extern struct vhca_sw vhca_sw;

/*
 * The HCA behind the port that leads to @dlid; NULL if there is none or the
 * link cannot carry the packet: it has to be up for an SMP (@vl15), ACTIVE for
 * the rest. Fabric lock held for reading.
 */
struct vhca_port *vhca_switch_out(u16 dlid, bool vl15);

/* An SMP, or a GMP for the switch itself, arrives from @src (switch_smp.c). */
unsigned int vhca_switch_smp(struct vhca_port *src, const struct vhca_pkt *pkt);
unsigned int vhca_switch_gmp(struct vhca_port *src, const struct vhca_pkt *pkt);

/*
 * The switch's SMA (switch_sma.c). Turns the request that came in by @in_port
 * into its response; false: no response.
 */
bool vhca_switch_sma(struct ib_smp *smp, u8 in_port);

#endif /* VHCA_SWITCH_H */
