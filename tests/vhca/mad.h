/* SPDX-License-Identifier: GPL-2.0-only */
/* State that the subnet management agent keeps per port (sma.c, pma.c). */
#ifndef VHCA_MAD_H
#define VHCA_MAD_H

#include <linux/types.h>

struct vhca_sma {
	__be64 m_key;
};

#endif /* VHCA_MAD_H */
