// SPDX-License-Identifier: GPL-2.0-only
/* Module parameters, start and end of the module. */
#include <linux/module.h>

#include "vhca.h"

MODULE_DESCRIPTION("Software InfiniBand HCAs on a virtual switch, for tests");
MODULE_LICENSE("GPL");
