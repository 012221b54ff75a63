/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Management datagrams: what the agents of this module share (mad.c, sma.c,
 * portinfo.c, pma.c, switch.c, switch_sma.c, trap.c, sa*.c), and the state
 * that the subnet management agent keeps per port.
 *
 * Wire formats: IBA volume 1, chapters 13 (common header), 14 (subnet
 * management), 15 (subnet administration), 16 (performance management).
 */
#ifndef VHCA_MAD_H
#define VHCA_MAD_H

#include <linux/types.h>
#include <rdma/ib_pma.h>
#include <rdma/ib_smi.h>

struct ib_sa_mad;
struct ib_wc;
struct vhca_port;
struct vhca_pkt;

/* The MAD status that an agent answers with, host order (IBA 13.4.7). */
#define VHCA_MAD_OK			IB_MGMT_MAD_STATUS_SUCCESS
#define VHCA_MAD_BAD_VERSION		IB_MGMT_MAD_STATUS_BAD_VERSION
#define VHCA_MAD_BAD_METHOD		IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD
#define VHCA_MAD_BAD_ATTR		IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB
#define VHCA_MAD_BAD_VALUE		IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE
/* Not a status: the MAD gets no answer. */
#define VHCA_MAD_DROP			0xffff

#define VHCA_NUM_VL_ARB			8	/* entries of each arbitration table */
#define VHCA_VL_ARB_BLOCK		32	/* entries of an SMP's block */

/* ---- counters of performance management (pma.c) --------------------------- */

enum vhca_pma_counter {
	VHCA_PMA_XMIT_DATA,		/* in units of 4 bytes */
	VHCA_PMA_RCV_DATA,
	VHCA_PMA_XMIT_PKTS,
	VHCA_PMA_RCV_PKTS,
	VHCA_PMA_UC_XMIT_PKTS,
	VHCA_PMA_UC_RCV_PKTS,
	VHCA_PMA_MC_XMIT_PKTS,
	VHCA_PMA_MC_RCV_PKTS,
	VHCA_PMA_LINK_DOWNED,
	VHCA_PMA_RCV_ERRORS,
	VHCA_PMA_XMIT_DISCARDS,
	VHCA_PMA_NUM
};

/* What the counters stood at when a Set cleared them. */
struct vhca_pma {
	u64 base[VHCA_PMA_NUM];
};

/* ---- state of one port ----------------------------------------------------- */

/*
 * The part of PortInfo and of the VL tables that is only stored, of a CA port
 * or a switch port. Guarded by the port's lock, or by the switch's.
 */
struct vhca_sma {
	__be64 m_key;
	u16 m_key_lease;		/* seconds; 0: for ever */
	u16 m_key_violations;
	u8 m_key_protect;		/* 0..3 */
	unsigned long lease_end;	/* jiffies; 0: the lease timer stands */
	u8 width_enabled;		/* enum ib_port_width */
	u8 speed_enabled;		/* PortInfo's 4 bits */
	u8 down_default;		/* 1 Sleep, 2 Polling */
	u8 op_vls;
	u8 enforcement;			/* PEI, PEO, FPI, FPO: 4 bits */
	u8 vl_high_limit;
	u8 vl_stall_hoq;		/* VLStallCount, HOQLife */
	u8 error_thresholds;
	u8 sl_to_vl[8];			/* 16 nibbles; CA ports */
	struct ib_vl_weight_elem vl_arb[4][VHCA_VL_ARB_BLOCK];
	struct vhca_pma pma;
};

/* Puts @sma into the state after power-on. */
void vhca_sma_reset(struct vhca_sma *sma);

/* ---- PortInfo, P_KeyTable, VL tables (portinfo.c) --------------------------- */

enum vhca_port_kind { VHCA_PORT_CA, VHCA_PORT_SWITCH_0, VHCA_PORT_SWITCH_EXT };

/* A Set(PortInfo), checked and in host order. State and phys: 0 no change. */
struct vhca_portinfo_set {
	u16 lid;
	u16 sm_lid;
	u8 lmc;
	u8 sm_sl;
	u8 state;
	u8 phys;
	u8 mtu;
	u8 subnet_timeout;
	bool reregister;
	bool clear_pkey_violations;
	bool clear_qkey_violations;
};

/*
 * Reads a Set(PortInfo). @set holds the port's state, LID and SM LID on entry,
 * what was asked for on return. Returns a MAD status; on any but VHCA_MAD_OK
 * nothing may be applied.
 */
u16 vhca_portinfo_parse(const struct ib_port_info *pi, enum vhca_port_kind kind,
			struct vhca_portinfo_set *set);
/* Stores what only has to be stored. Lock of @sma held. */
void vhca_portinfo_store(struct vhca_sma *sma, const struct ib_port_info *pi,
			 enum vhca_port_kind kind);
/* Fills what every kind of port has. Lock of @sma held. */
void vhca_portinfo_fill(struct ib_port_info *pi, const struct vhca_sma *sma,
			enum vhca_port_kind kind, u8 state, u8 phys, u8 mtu);

/*
 * SLtoVLMappingTable (one @table; a switch has one per pair of ports) and
 * VLArbitrationTable of one port. Lock of @sma held.
 */
#define VHCA_SL_TO_VL_BYTES	8
u16 vhca_sma_sl_to_vl(u8 *table, struct ib_smp *smp, bool set);
u16 vhca_sma_vl_arb(struct vhca_sma *sma, struct ib_smp *smp, bool set);

/* One block of 32 P_Keys, wire order, from or to @table of @size entries. */
#define VHCA_PKEY_BLOCK		32
void vhca_pkey_block_get(const u16 *table, unsigned int block, u8 *data);
void vhca_pkey_block_set(u16 *table, unsigned int block, const u8 *data);

/*
 * M_Key check (IBA 14.2.4). Lock of @sma held. *@hide is set when the answer
 * to a Get must not show the M_Key. Returns false if the SMP must be dropped.
 */
bool vhca_mkey_ok(struct vhca_sma *sma, const struct ib_smp *smp, bool *hide);

/* ---- agents ------------------------------------------------------------------ */

/* Turns the request at @hdr into its response with @status (host order). */
void vhca_mad_respond(struct ib_mad_hdr *hdr, u16 status);

/*
 * Sends the 256 bytes at @mad from QP @qpn (0 or 1) of @src, or of the switch
 * when @src is NULL, to QP @dst_qpn of the port that has @dlid. Returns the
 * number of ports reached. May sleep; fabric lock held for reading.
 */
unsigned int vhca_mad_send(struct vhca_port *src, u16 dlid, u32 qpn,
			   u32 dst_qpn, void *mad);

/*
 * A CA's SMA (sma.c), a CA's PMA (pma.c). @mad is the request, and the response
 * on return. The result is what process_mad returns.
 */
int vhca_sma_process(struct vhca_port *port, struct ib_smp *smp);
int vhca_pma_process(struct vhca_port *port, struct ib_pma_mad *mad);

/* PortInfo of a CA port as Get(PortInfo) shows it. */
void vhca_sma_get_portinfo(struct vhca_port *port, struct ib_port_info *pi);
/* NodeInfo of a CA. */
void vhca_sma_get_nodeinfo(struct vhca_port *port, struct ib_node_info *ni);

/*
 * The core of a PMA: fills the answer for @ports counters' sets. @read gives
 * the counters of a port, @base its struct vhca_pma; both get @arg.
 */
struct vhca_pma_ops {
	unsigned int first_port;
	unsigned int last_port;
	void (*read)(void *arg, unsigned int port, u64 *counters);
	struct vhca_pma *(*base)(void *arg, unsigned int port);
};
u16 vhca_pma_answer(struct ib_pma_mad *mad, const struct vhca_pma_ops *ops,
		    void *arg);
/* Counters of a CA port, as seen from the CA. */
void vhca_pma_read_port(struct vhca_port *port, u64 *counters);

/*
 * The cap mask (@flags 0) or another local property of a CA port changed
 * (IB_NOTICE_TRAP_NODE_DESC_CHG and friends): tells the SM by trap 144. Never
 * sleeps; no lock of this module may be held but the fabric's.
 */
void vhca_sma_local_change(struct vhca_port *port, u8 flags);

/* ---- the switch, for the agents (switch.c, switch_sma.c) ----------------------- */

/* RespTimeValue of the SMAs: 4.096 us * 2^16 = 268 ms. */
#define VHCA_RESP_TIME		16

/* Link local (IBA 4.1.1). */
#define VHCA_DEFAULT_GID_PREFIX	0xfe80000000000000ULL

u16 vhca_switch_lid(void);			/* of port 0; 0: none yet */
u16 vhca_switch_sm_lid(__be64 *m_key);		/* and port 0's M_Key */
u32 vhca_switch_link_downed(struct vhca_port *port);
/* Sends @pkt from port 0; returns the number of ports reached. As forward(). */
unsigned int vhca_switch_send(const struct vhca_pkt *pkt);
/* Puts an HCA's port on the list that multicast LID @mlid goes to, or off it. */
void vhca_switch_set_mcast(u16 mlid, unsigned int hca, bool member);
/*
 * What the switch's port @n shows, 0 to vhca_switch_num_ports(), to who asks
 * through @in_port.
 */
void vhca_switch_get_portinfo(unsigned int n, unsigned int in_port,
			      struct ib_port_info *pi);
void vhca_switch_get_nodeinfo(unsigned int in_port, struct ib_node_info *ni);
const char *vhca_switch_node_desc(void);
unsigned int vhca_switch_num_ports(void);
void vhca_switch_gid(union ib_gid *gid);	/* of port 0 */
const u16 *vhca_switch_pkeys(void);		/* VHCA_NUM_PKEYS of port 0 */

/* ---- subnet administration (sa.c) ----------------------------------------------- */

/*
 * A MAD of class SA that came to @port; only asked in managed mode. Turns @mad
 * into the response if there is one. The result is what process_mad returns.
 * Fabric lock held for reading.
 */
int vhca_sa_process(struct vhca_port *port, const struct ib_wc *wc,
		    struct ib_sa_mad *mad);

/* ---- traps (trap.c) ------------------------------------------------------------ */

int vhca_trap_init(void);
void vhca_trap_exit(void);
/* The state of a port of the switch changed: trap 128. Never sleeps. */
void vhca_trap_link_state(void);
/* An HCA leaves: its trap is forgotten. Fabric lock held for writing. */
void vhca_trap_forget(struct vhca_port *port);
/* TrapRepress with @tid for @port, or for the switch when NULL. */
void vhca_trap_repress(struct vhca_port *port, __be64 tid);

#endif /* VHCA_MAD_H */
