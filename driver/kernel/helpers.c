// SPDX-License-Identifier: GPL-2.0-only
/* The part of the module that must be C: module_init, parameters, and what only macros and inline functions give. */
#include <linux/bug.h>
#include <linux/module.h>

#include "bindings.h"

int ipoib_batch_init(void);
void ipoib_batch_exit(void);

void __noreturn ipoib_h_bug(void)
{
	BUG();
}

static int __init ipoib_h_init(void)
{
	return ipoib_batch_init();
}

static void __exit ipoib_h_exit(void)
{
	ipoib_batch_exit();
}

module_init(ipoib_h_init);
module_exit(ipoib_h_exit);
MODULE_DESCRIPTION("IP over InfiniBand that batches transmits");
MODULE_AUTHOR("The ibmgr project");
MODULE_LICENSE("GPL");
