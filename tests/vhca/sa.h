/* SPDX-License-Identifier: GPL-2.0-only */
/* Subnet administration of the managed mode, as its own files see it (sa*.c). */
#ifndef VHCA_SA_H
#define VHCA_SA_H

#include <rdma/ib_sa.h>

#include "vhca.h"

/* MAD status of class SA, host order (IBA 15.2.4). */
#define SA_ERR_NO_RESOURCES	0x0100
#define SA_ERR_REQ_INVALID	0x0200
#define SA_ERR_NO_RECORDS	0x0300
#define SA_ERR_TOO_MANY_RECORDS	0x0400
#define SA_ERR_REQ_INVALID_GID	0x0500
#define SA_ERR_INSUFFICIENT	0x0600	/* components */

/* The SM_Key that makes a requester trusted: opensm's default, so saquery's. */
#define SA_TRUSTED_KEY		cpu_to_be64(1)

#define SA_PACKET_LIFE		14	/* 4.096 us * 2^14 = 67 ms */

/*
 * One request. @from is the port that asked, found by SLID. @mask is the
 * component mask: test it with sa_has(). Fabric lock held for reading.
 */
struct sa_request {
	struct vhca_port *port;
	struct vhca_port *from;
	const struct ib_wc *wc;
	struct ib_sa_mad *mad;
	ib_sa_comp_mask mask;
};

static inline bool sa_has(const struct sa_request *req, ib_sa_comp_mask bits)
{
	return (req->mask & bits) == bits;
}

/* Records of @size bytes (a multiple of 8) that answer a query. */
struct sa_table {
	u8 *data;
	size_t size;
	size_t used;
	size_t room;
};

/* Makes room for @records in all; false if there is no memory. May sleep. */
bool sa_table_reserve(struct sa_table *table, size_t records);
/* Appends a copy of @record; false if there is no room. */
bool sa_table_append(struct sa_table *table, const void *record);
/* Appends a copy of @record; false if there is no memory. May sleep. */
bool sa_table_add(struct sa_table *table, const void *record);

/*
 * Compares value @have of a group with a request's selector and value byte: 2
 * bits enum ib_sa_selector, 6 bits value. For rates both are enum ib_rate.
 */
bool sa_selector_matches(u8 request, u8 have);
bool sa_rate_matches(u8 request, enum ib_rate have);
/*
 * The value to use for a request's selector byte when at most @limit can be
 * had; 0 if none fits.
 */
u8 sa_choose_mtu(u8 request, u8 limit);
u8 sa_choose_rate(u8 request, enum ib_rate limit);

/*
 * Lists: each appends the records that match the request, and returns a MAD
 * status. sa.c makes a Get or a GetTable of them.
 */
u16 sa_list_paths(const struct sa_request *req, struct sa_table *table);
u16 sa_list_groups(const struct sa_request *req, struct sa_table *table);
u16 sa_list_nodes(const struct sa_request *req, struct sa_table *table);
u16 sa_list_ports(const struct sa_request *req, struct sa_table *table);
u16 sa_list_links(const struct sa_request *req, struct sa_table *table);

#define SA_PATH_RECORD_SIZE	64
#define SA_MCMEMBER_RECORD_SIZE	56
#define SA_NODE_RECORD_SIZE	112
#define SA_PORT_RECORD_SIZE	72
#define SA_LINK_RECORD_SIZE	8

/* Set and Delete of MCMemberRecord: the answer replaces the MAD's data. */
u16 sa_join(const struct sa_request *req);
u16 sa_leave(const struct sa_request *req);
int sa_mcast_init(void);
void sa_mcast_exit(void);

/*
 * RMPP (IBA 13.6), the sender's half. start() makes @req->mad the first segment
 * of the table and keeps the rest, which follows as the receiver opens its
 * window; it takes over the table's memory. input() takes ACK, STOP and ABORT.
 */
u16 sa_rmpp_start(const struct sa_request *req, struct sa_table *table);
void sa_rmpp_input(const struct sa_request *req);
void sa_rmpp_exit(void);

#endif /* VHCA_SA_H */
