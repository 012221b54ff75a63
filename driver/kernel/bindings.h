/* SPDX-License-Identifier: GPL-2.0-only */
/* What bindgen reads: the kernel headers that the driver needs, and the helpers. */
#include <linux/version.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/if_ether.h>
#include <linux/inetdevice.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/sysfs.h>
#include <linux/tcp.h>
#include <linux/workqueue.h>
#include <net/netlink.h>
#include <net/rtnetlink.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>

#include "helpers.h"
