// SPDX-License-Identifier: GPL-2.0-only
/* The part of the module that must be C: module_init, parameters, and what only macros and inline functions give. */
#include <linux/bug.h>
#include <linux/dma-mapping.h>
#include <linux/icmpv6.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/dst.h>
#include <net/icmp.h>
#include <net/sch_generic.h>

#include "bindings.h"

int ipoib_batch_init(void);
void ipoib_batch_exit(void);

char *ipoib_h_kind = "ipoib";
module_param_named(kind, ipoib_h_kind, charp, 0444);
MODULE_PARM_DESC(kind, "rtnetlink kind; another than ipoib lets ib_ipoib be loaded beside (default ipoib)");
char *ipoib_h_hcas = "";
module_param_named(hcas, ipoib_h_hcas, charp, 0444);
MODULE_PARM_DESC(hcas, "HCAs or ports to take, as mlx4_0,mlx4_1:2; empty takes all (default empty)");
unsigned int ipoib_h_send_queue_size = 512;
module_param_named(send_queue_size, ipoib_h_send_queue_size, uint, 0444);
MODULE_PARM_DESC(send_queue_size, "Slots of a new interface's transmit ring (default 512)");
unsigned int ipoib_h_recv_queue_size = 1024;
module_param_named(recv_queue_size, ipoib_h_recv_queue_size, uint, 0444);
MODULE_PARM_DESC(recv_queue_size, "Slots of a new interface's receive ring (default 1024)");
bool ipoib_h_take_accelerated;
module_param_named(take_accelerated, ipoib_h_take_accelerated, bool, 0444);
MODULE_PARM_DESC(take_accelerated, "Take ports whose HCA brings its own IPoIB acceleration, too (default N)");

unsigned int ipoib_h_cm_idle_ms = 512000;
module_param_named(cm_idle_ms, ipoib_h_cm_idle_ms, uint, 0444);
MODULE_PARM_DESC(cm_idle_ms, "Milliseconds after which an unused connection is given up (default 512000)");

void __noreturn ipoib_h_bug(void)
{
	BUG();
}

void *ipoib_h_kzalloc(size_t size, bool atomic)
{
	return kzalloc(size, (atomic ? GFP_ATOMIC : GFP_KERNEL) | __GFP_NOWARN);
}

void *ipoib_h_kvzalloc(size_t size)
{
	return kvzalloc(size, GFP_KERNEL | __GFP_NOWARN);
}

gfp_t ipoib_h_gfp_kernel(void)
{
	return GFP_KERNEL;
}

void *ipoib_h_this_module(void)
{
	return THIS_MODULE;
}

void ipoib_h_spin_init(spinlock_t *lock)
{
	spin_lock_init(lock);
}

unsigned long ipoib_h_spin_lock(spinlock_t *lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

void ipoib_h_spin_unlock(spinlock_t *lock, unsigned long flags)
{
	spin_unlock_irqrestore(lock, flags);
}

void ipoib_h_mutex_init(struct mutex *lock)
{
	mutex_init(lock);
}

void ipoib_h_mutex_lock(struct mutex *lock)
{
	mutex_lock(lock);
}

void ipoib_h_delayed_work_init(struct delayed_work *work, work_func_t func)
{
	INIT_DELAYED_WORK(work, func);
}

struct workqueue_struct *ipoib_h_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
}

bool ipoib_h_queue(struct workqueue_struct *wq, struct delayed_work *work, unsigned int ms)
{
	return queue_delayed_work(wq, work, msecs_to_jiffies(ms));
}

unsigned int ipoib_h_jiffies_ms(void)
{
	return jiffies_to_msecs(jiffies);
}

void ipoib_h_dev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

void ipoib_h_dev_put(struct net_device *dev)
{
	dev_put(dev);
}

void ipoib_h_tx_lock(struct net_device *dev)
{
	__netif_tx_lock_bh(netdev_get_tx_queue(dev, 0));
}

void ipoib_h_tx_unlock(struct net_device *dev)
{
	__netif_tx_unlock_bh(netdev_get_tx_queue(dev, 0));
}

bool ipoib_h_xmit_more(void)
{
	return netdev_xmit_more();
}

/* Returns whether the queue is stopped, by whomever. */
bool ipoib_h_tx_sent(struct net_device *dev, unsigned int bytes, bool more)
{
	struct netdev_queue *txq = netdev_get_tx_queue(dev, 0);

	__netdev_tx_sent_queue(txq, bytes, more);
	return netif_xmit_stopped(txq);
}

void ipoib_h_tx_completed(struct net_device *dev, unsigned int packets, unsigned int bytes)
{
	netdev_tx_completed_queue(netdev_get_tx_queue(dev, 0), packets, bytes);
}

void ipoib_h_tx_reset(struct net_device *dev)
{
	netdev_tx_reset_queue(netdev_get_tx_queue(dev, 0));
}

bool ipoib_h_tx_stopped(struct net_device *dev)
{
	return netif_tx_queue_stopped(netdev_get_tx_queue(dev, 0));
}

bool ipoib_h_has_carrier(struct net_device *dev)
{
	return netif_carrier_ok(dev);
}

bool ipoib_h_has_queue(struct net_device *dev)
{
	return !qdisc_tx_is_noop(dev);
}

/* Copies up to max multicast addresses and returns how many there are. */
unsigned int ipoib_h_mc_list(struct net_device *dev, u8 *addresses, unsigned int max)
{
	struct netdev_hw_addr *ha;
	unsigned int n = 0;

	netif_addr_lock_bh(dev);
	netdev_for_each_mc_addr(ha, dev) {
		if (n < max)
			memcpy(addresses + n * INFINIBAND_ALEN, ha->addr, INFINIBAND_ALEN);
		n++;
	}
	netif_addr_unlock_bh(dev);
	return n;
}

/* NAPIs that come and go with their queues have a number, under which the kernel keeps their settings if it can. User
 * space may have asked for a device with fewer queues than we have numbers.
 */
void ipoib_h_napi_add(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *, int),
		      unsigned int number)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	if (number < dev->num_napi_configs) {
		netif_napi_add_config(dev, napi, poll, number);
		return;
	}
#endif
	netif_napi_add(dev, napi, poll);
}

u64 ipoib_h_gro_timeout(const struct net_device *dev)
{
	return READ_ONCE(dev->gro_flush_timeout);
}

u32 ipoib_h_defer_irqs(const struct net_device *dev)
{
	return READ_ONCE(dev->napi_defer_hard_irqs);
}

/* As the files of sysfs do: for all NAPIs, and those to come. RTNL is held, under which NAPIs come and go here. */
void ipoib_h_set_gro_timeout(struct net_device *dev, u64 nanoseconds)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	struct napi_struct *napi;
	unsigned int i;

	list_for_each_entry(napi, &dev->napi_list, dev_list)
		WRITE_ONCE(napi->gro_flush_timeout, nanoseconds);
	for (i = 0; i < dev->num_napi_configs; i++)
		dev->napi_config[i].gro_flush_timeout = nanoseconds;
#endif
	WRITE_ONCE(dev->gro_flush_timeout, nanoseconds);
}

void ipoib_h_set_defer_irqs(struct net_device *dev, u32 polls)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	struct napi_struct *napi;
	unsigned int i;

	list_for_each_entry(napi, &dev->napi_list, dev_list)
		WRITE_ONCE(napi->defer_hard_irqs, polls);
	for (i = 0; i < dev->num_napi_configs; i++)
		dev->napi_config[i].defer_hard_irqs = polls;
#endif
	WRITE_ONCE(dev->napi_defer_hard_irqs, polls);
}

void ipoib_h_napi_del(struct napi_struct *napi)
{
	netif_napi_del(napi);
}

void ipoib_h_tx_stop(struct net_device *dev)
{
	netif_tx_stop_queue(netdev_get_tx_queue(dev, 0));
}

/* Softirqs run when BHs are enabled again: without that a poll from process context waits for the next interrupt. */
void ipoib_h_napi_kick(struct napi_struct *napi)
{
	local_bh_disable();
	napi_schedule(napi);
	local_bh_enable();
}

struct net_device *ipoib_h_to_net_dev(struct device *dev)
{
	return to_net_dev(dev);
}

const char *ipoib_h_parent_name(struct net_device *dev)
{
	return dev->dev.parent ? dev_name(dev->dev.parent) : NULL;
}

int ipoib_h_restart_syscall(void)
{
	return restart_syscall();
}

netdev_features_t ipoib_h_fixed_features(void)
{
	return NETIF_F_VLAN_CHALLENGED | NETIF_F_HIGHDMA | NETIF_F_GRO;
}

netdev_features_t ipoib_h_rx_checksum(void)
{
	return NETIF_F_RXCSUM;
}

netdev_features_t ipoib_h_offloads(bool checksum, bool segment)
{
	/* Datagrams of one flow that arrive together go up the stack as a list, and are single ones again at the socket. */
	netdev_features_t features = NETIF_F_SG | NETIF_F_GRO_FRAGLIST;

	/* What the driver does itself is cheaper there than in the stack. */
	if (!checksum)
		return features | NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_GSO_UDP_L4;
	if (checksum)
		features |= NETIF_F_IP_CSUM | NETIF_F_RXCSUM;
	if (checksum && segment)
		features |= NETIF_F_TSO;
	return features;
}

/* The list of devices, for who may not wait for RTNL. */
static DEFINE_MUTEX(ipoib_h_list);

void ipoib_h_list_lock(void)
{
	mutex_lock(&ipoib_h_list);
}

void ipoib_h_list_unlock(void)
{
	mutex_unlock(&ipoib_h_list);
}

/* Says whether a device, or one on top of it such as a bond, has an address. */
bool ipoib_h_has_address(struct net_device *dev, const struct sockaddr *address)
{
	struct net *net = dev_net(dev);
	struct net_device *owner = NULL;
	bool has;

	if (!address)
		return false;
	rcu_read_lock();
	if (address->sa_family == AF_INET)
		owner = __ip_dev_find(net, ((const struct sockaddr_in *)address)->sin_addr.s_addr, false);
#if IS_ENABLED(CONFIG_IPV6)
	else if (address->sa_family == AF_INET6)
		owner = ipv6_dev_find(net, &((const struct sockaddr_in6 *)address)->sin6_addr, dev);
#endif
	has = owner && (owner == dev || netdev_has_upper_dev_all_rcu(dev, owner));
	rcu_read_unlock();
	return has;
}

struct net_device *ipoib_h_dev_get(struct net *net, int ifindex)
{
	return __dev_get_by_index(net, ifindex);
}

/* For an skb at its encapsulation header: the stack wants a link-layer header of 24 bytes with the mac header set. */
void ipoib_h_receive(struct napi_struct *napi, struct sk_buff *skb, struct net_device *dev, u8 type, bool csum_ok)
{
	skb->protocol = *(__be16 *)skb->data;
	memset(__skb_push(skb, INFINIBAND_ALEN), 0, INFINIBAND_ALEN);
	skb_reset_mac_header(skb);
	__skb_pull(skb, INFINIBAND_ALEN + 4);
	skb->pkt_type = type;
	skb->dev = dev;
	if (csum_ok)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	napi_gro_receive(napi, skb);
}

bool ipoib_h_csum_partial(const struct sk_buff *skb)
{
	return skb->ip_summed == CHECKSUM_PARTIAL;
}

/* Headers in front of each segment, up to 128 bytes, must be in the linear part; a segment's payload can be in any of the
 * fragments, for each of which a request needs an entry. What is not so is segmented by the stack.
 */
netdev_features_t ipoib_h_features_check(struct sk_buff *skb, netdev_features_t features, unsigned int max_sge)
{
	unsigned int headers;

	if (!skb_is_gso(skb))
		return features;
	headers = skb_transport_offset(skb) + (skb_is_gso_tcp(skb) ? tcp_hdrlen(skb) : sizeof(struct udphdr));
	if (headers > 128 || headers > skb_headlen(skb) || skb_has_frag_list(skb) ||
	    skb_shinfo(skb)->nr_frags + 2 > max_sge)
		features &= ~NETIF_F_GSO_MASK;
	return features;
}

/* Tells the headers of a large packet that begins with its encapsulation header; false for another. */
bool ipoib_h_shape(const struct sk_buff *skb, struct ipoib_h_train *train)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	train->tcp = info->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6);
	train->mss = info->gso_size;
	train->ip = skb_network_offset(skb);
	train->transport = skb_transport_offset(skb);
	train->length = train->transport + (train->tcp ? tcp_hdrlen(skb) : sizeof(struct udphdr));
	return train->tcp || info->gso_type & SKB_GSO_UDP_L4;
}

bool ipoib_h_map_header(struct ib_device *hca, void *data, size_t size, u64 *address)
{
	*address = ib_dma_map_single(hca, data, size, DMA_TO_DEVICE);
	return !ib_dma_mapping_error(hca, *address);
}

/* Fills in the checksum if the header is ours to write, and nobody else writes to the rest; false otherwise. The kernel's
 * own walk through all kinds of packets costs more than the sum of a small one.
 */
static bool ipoib_h_checksum_here(struct sk_buff *skb)
{
	unsigned int start = skb_checksum_start_offset(skb), at = start + skb->csum_offset, i;
	unsigned int bytes = skb_headlen(skb) - start;
	__wsum sum;

	if (skb_has_frag_list(skb) || skb_has_shared_frag(skb) || at + sizeof(__sum16) > skb_headlen(skb) ||
	    (skb_cloned(skb) && !skb_clone_writable(skb, at + sizeof(__sum16))))
		return false;
	sum = csum_partial(skb->data + start, bytes, 0);
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		/* There is no high memory on x86-64. */
		sum = csum_block_add(sum, csum_partial(skb_frag_address(frag), skb_frag_size(frag), 0), bytes);
		bytes += skb_frag_size(frag);
	}
	*(__sum16 *)(skb->data + at) = csum_fold(sum) ?: CSUM_MANGLED_0;
	skb->ip_summed = CHECKSUM_NONE;
	return true;
}

/* Fills in the checksum of a packet for a device that does not. */
bool ipoib_h_checksum(struct sk_buff *skb)
{
	return skb->ip_summed != CHECKSUM_PARTIAL || ipoib_h_checksum_here(skb) || !skb_checksum_help(skb);
}

void ipoib_h_max_segments(struct net_device *dev, unsigned int segments)
{
	netif_set_tso_max_segs(dev, segments);
}

int ipoib_h_skb_linearize(struct sk_buff *skb)
{
	return skb_linearize(skb);
}

/* Sums some bytes, which begin after @done of part @part: the linear part, when @head says so, or a fragment. */
u32 ipoib_h_sum(const struct sk_buff *skb, bool head, unsigned int part, unsigned int done, unsigned int from,
		unsigned int length)
{
	const skb_frag_t *frag;

	if (head && !part--)
		return done + length <= skb_headlen(skb) ? csum_partial(skb->data + done, length, 0) :
							   skb_checksum(skb, from, length, 0);
	if (part >= skb_shinfo(skb)->nr_frags)
		return skb_checksum(skb, from, length, 0);
	frag = &skb_shinfo(skb)->frags[part];
	/* Mostly it is one piece, which needs no walk through all of them. There is no high memory on x86-64. */
	if (done + length <= skb_frag_size(frag))
		return csum_partial(skb_frag_address(frag) + done, length, 0);
	return skb_checksum(skb, from, length, 0);
}

unsigned int ipoib_h_tcp_headers(const struct sk_buff *skb)
{
	return skb_tcp_all_headers(skb);
}

/* Maps the skb for the device: the head, when it has data, and each fragment. Returns the number of SGEs, or -EIO. */
int ipoib_h_map_tx(struct ib_device *hca, struct sk_buff *skb, struct ib_sge *sge, u32 lkey)
{
	unsigned int head = skb_headlen(skb), frags = skb_shinfo(skb)->nr_frags, n = 0, i;

	if (head) {
		u64 addr = ib_dma_map_single(hca, skb->data, head, DMA_TO_DEVICE);

		if (unlikely(ib_dma_mapping_error(hca, addr)))
			return -EIO;
		sge[n++] = (struct ib_sge){ addr, head, lkey };
	}
	for (i = 0; i < frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		unsigned int bytes = skb_frag_size(frag);
		u64 addr = ib_dma_map_page(hca, skb_frag_page(frag), skb_frag_off(frag), bytes, DMA_TO_DEVICE);

		if (unlikely(ib_dma_mapping_error(hca, addr))) {
			ipoib_h_unmap_tx(hca, head, sge, n);
			return -EIO;
		}
		sge[n++] = (struct ib_sge){ addr, bytes, lkey };
	}
	return n;
}

void ipoib_h_unmap_tx(struct ib_device *hca, bool head, const struct ib_sge *sge, unsigned int count)
{
	unsigned int i = 0;

	if (head && count) {
		ib_dma_unmap_single(hca, sge[0].addr, sge[0].length, DMA_TO_DEVICE);
		i = 1;
	}
	for (; i < count; i++)
		ib_dma_unmap_page(hca, sge[i].addr, sge[i].length, DMA_TO_DEVICE);
}

void ipoib_h_keep_routes(struct net_device *dev, bool keep)
{
	if (keep)
		dev->priv_flags &= ~IFF_XMIT_DST_RELEASE;
	else
		dev->priv_flags |= IFF_XMIT_DST_RELEASE;
}

void ipoib_h_drop_route(struct sk_buff *skb)
{
	skb_dst_drop(skb);
}

void ipoib_h_learn_mtu(struct sk_buff *skb, unsigned int mtu)
{
	skb_dst_update_pmtu_no_confirm(skb, mtu);
}

/* The device's own functions for that: they don't trust skb->cb, and undo a source NAT. */
void ipoib_h_tell_too_large(struct sk_buff *skb, unsigned int mtu)
{
	local_bh_disable();
	if (skb->protocol == htons(ETH_P_IP))
		icmp_ndo_send(skb, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
	else if (skb->protocol == htons(ETH_P_IPV6))
		icmpv6_ndo_send(skb, ICMPV6_PKT_TOOBIG, 0, mtu);
	local_bh_enable();
}

/* RC messages have no checksum offload, and no segmentation. */
netdev_features_t ipoib_h_connected_features(netdev_features_t features)
{
	return features & ~(NETIF_F_CSUM_MASK | NETIF_F_GSO_MASK);
}

/* The signature changed: the module has one kind, so one function. */
static ipoib_h_newlink_t ipoib_h_newlink;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
static int ipoib_h_newlink_cb(struct net_device *dev, struct rtnl_newlink_params *params,
			      struct netlink_ext_ack *extack)
{
	return ipoib_h_newlink(rtnl_newlink_link_net(params), dev, params->tb, params->data, extack);
}
#else
static int ipoib_h_newlink_cb(struct net *net, struct net_device *dev, struct nlattr **tb, struct nlattr **data,
			      struct netlink_ext_ack *extack)
{
	return ipoib_h_newlink(net, dev, tb, data, extack);
}
#endif

void ipoib_h_link_ops(struct rtnl_link_ops *ops, ipoib_h_newlink_t newlink)
{
	ipoib_h_newlink = newlink;
	ops->newlink = ipoib_h_newlink_cb;
}

void ipoib_h_attribute(struct device_attribute *attribute, const char *name, umode_t mode,
		       ssize_t (*show)(struct device *, struct device_attribute *, char *),
		       ssize_t (*store)(struct device *, struct device_attribute *, const char *, size_t))
{
	attribute->attr.name = name;
	attribute->attr.mode = mode;
	attribute->show = show;
	attribute->store = store;
}

static ipoib_h_only_t ipoib_h_only;

static umode_t ipoib_h_is_visible(struct kobject *kobj, struct attribute *attribute, int n)
{
	return ipoib_h_only(kobj_to_dev(kobj), attribute) ? attribute->mode : 0;
}

void ipoib_h_group(struct attribute_group *group, const char *name, struct attribute **attributes,
		   ipoib_h_only_t only)
{
	if (only) {
		ipoib_h_only = only;
		group->is_visible = ipoib_h_is_visible;
	}
	group->name = name;
	group->attrs = attributes;
}

void ipoib_h_same_net(struct net_device *dev, struct net_device *parent)
{
	dev_net_set(dev, dev_net(parent));
}

void ipoib_h_set_parent(struct net_device *dev, struct ib_device *hca)
{
	SET_NETDEV_DEV(dev, hca->dev.parent);
}

bool ipoib_h_hca_get(struct ib_device *hca)
{
	return ib_device_try_get(hca);
}

bool ipoib_h_is_ib_port(struct ib_device *hca, u32 port)
{
	return rdma_protocol_ib(hca, port);
}

bool ipoib_h_is_accelerated(struct ib_device *hca, u32 port)
{
	struct rdma_netdev_alloc_params params;

	return hca->ops.rdma_netdev_get_params &&
	       !hca->ops.rdma_netdev_get_params(hca, port, RDMA_NETDEV_IPOIB, &params);
}

unsigned int ipoib_h_mtu_bytes(struct ib_device *hca, u32 port, int mtu)
{
	int bytes = rdma_mtu_enum_to_int(hca, port, mtu);

	return bytes < 0 ? 0 : bytes;
}

struct ib_ah *ipoib_h_mcast_ah(struct ib_pd *pd, u32 port, struct ib_sa_mcmember_rec *rec)
{
	struct rdma_ah_attr av = {};

	av.type = rdma_ah_find_type(pd->device, port);
	rdma_ah_set_dlid(&av, be16_to_cpu(rec->mlid));
	rdma_ah_set_port_num(&av, port);
	rdma_ah_set_sl(&av, rec->sl);
	rdma_ah_set_static_rate(&av, rec->rate);
	rdma_ah_set_grh(&av, &rec->mgid, be32_to_cpu(rec->flow_label), 0, rec->hop_limit, rec->traffic_class);
	return rdma_create_ah(pd, &av, RDMA_CREATE_AH_SLEEPABLE);
}

struct ib_ah *ipoib_h_path_ah(struct ib_pd *pd, u32 port, struct sa_path_rec *rec)
{
	struct rdma_ah_attr av;
	struct ib_ah *ah;
	int ret;

	ret = ib_init_ah_attr_from_path(pd->device, port, rec, &av, NULL);
	if (ret)
		return ERR_PTR(ret);
	ah = rdma_create_ah(pd, &av, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&av);
	return ah;
}

void ipoib_h_event_init(struct ib_event_handler *handler, struct ib_device *hca,
			void (*func)(struct ib_event_handler *, struct ib_event *))
{
	INIT_IB_EVENT_HANDLER(handler, hca, func);
}

void ipoib_h_path_rec(struct sa_path_rec *rec, struct ib_device *hca, u32 port)
{
	rec->rec_type = rdma_cap_opa_ah(hca, port) ? SA_PATH_REC_TYPE_OPA : SA_PATH_REC_TYPE_IB;
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
