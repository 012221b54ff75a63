// SPDX-License-Identifier: GPL-2.0-only
/* Asks the RDMA core which interface a connection request is for, as its connection manager does. */
#include <linux/inet.h>
#include <linux/netdevice.h>
#include <rdma/ib_cache.h>

#include "selftest.h"

/* "HCA P_KEY ADDRESS", of port 1 and its first GID. The kernel log gets the answer. */
int st_lookup(struct ib_device *const *devs, const char *question)
{
	struct sockaddr_storage addr = {};
	struct net_device *found;
	unsigned int hca, pkey;
	union ib_gid gid;
	char text[64];
	int ret;

	if (sscanf(question, "%u %i %63s", &hca, &pkey, text) != 3 || hca > 1)
		return -EINVAL;
	ret = inet_pton_with_scope(&init_net, AF_UNSPEC, text, NULL, &addr);
	if (ret)
		return ret;
	ret = rdma_query_gid(devs[hca], 1, 0, &gid);
	if (ret)
		return ret;
	found = ib_get_net_dev_by_params(devs[hca], 1, pkey, &gid,
					 (struct sockaddr *)&addr);
	pr_info("vhca_selftest: lookup %s: %s\n", question,
		found ? netdev_name(found) : "none");
	dev_put(found);
	return 0;
}
