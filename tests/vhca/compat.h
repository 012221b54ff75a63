/* SPDX-License-Identifier: GPL-2.0-only */
/* Differences between Linux 6.12 and 7.x, all in one place. */
#ifndef VHCA_COMPAT_H
#define VHCA_COMPAT_H

#include <linux/version.h>

#endif /* VHCA_COMPAT_H */
