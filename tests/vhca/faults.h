/* SPDX-License-Identifier: GPL-2.0-only */
/* Faults on demand: what debugfs .../vhcaN/fault/ sets (faults.c). */
#ifndef VHCA_FAULTS_H
#define VHCA_FAULTS_H

#include <linux/types.h>

struct vhca_dev;

struct vhca_faults {
	bool any;
};

/*
 * What the SA that answers on @dev does with the next request (sa.c asks once
 * per request): answer it, stay silent, or reply with *@status, a MAD status
 * in host order (IBA 13.4.7, 15.2.4).
 */
enum vhca_sa_fault { VHCA_SA_OK, VHCA_SA_DROP, VHCA_SA_REJECT };
enum vhca_sa_fault vhca_fault_sa(struct vhca_dev *dev, u16 *status);

#endif /* VHCA_FAULTS_H */
