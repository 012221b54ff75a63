/* SPDX-License-Identifier: GPL-2.0-only */
/* What Rust calls and bindgen cannot reach by itself: macros and inline functions of the kernel. */
#ifndef IPOIB_HELPERS_H
#define IPOIB_HELPERS_H

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <net/rtnetlink.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>

enum {
	IPOIB_H_COALESCE = ETHTOOL_COALESCE_RX_USECS | ETHTOOL_COALESCE_RX_MAX_FRAMES | ETHTOOL_COALESCE_TX_MAX_FRAMES,
	/* Receive queues that a device is allocated with, of which it has one: Linux keeps settings of so many NAPIs. */
	IPOIB_H_RX_QUEUES = LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0) ? 4 : 1,
};

/* Module parameters, see helpers.c. */
extern char *ipoib_h_kind;
extern char *ipoib_h_hcas;
extern unsigned int ipoib_h_send_queue_size;
extern unsigned int ipoib_h_recv_queue_size;
extern bool ipoib_h_take_accelerated;
extern unsigned int ipoib_h_cm_idle_ms;

void __noreturn ipoib_h_bug(void);
void *ipoib_h_kzalloc(size_t size, bool atomic);
void *ipoib_h_kvzalloc(size_t size);
gfp_t ipoib_h_gfp_kernel(void);
void *ipoib_h_this_module(void);

void ipoib_h_spin_init(spinlock_t *lock);
unsigned long ipoib_h_spin_lock(spinlock_t *lock);
void ipoib_h_spin_unlock(spinlock_t *lock, unsigned long flags);
void ipoib_h_mutex_init(struct mutex *lock);
void ipoib_h_mutex_lock(struct mutex *lock);

void ipoib_h_delayed_work_init(struct delayed_work *work, work_func_t func);
struct workqueue_struct *ipoib_h_workqueue(const char *name);
bool ipoib_h_queue(struct workqueue_struct *wq, struct delayed_work *work, unsigned int ms);
unsigned int ipoib_h_jiffies_ms(void);

void ipoib_h_dev_hold(struct net_device *dev);
void ipoib_h_dev_put(struct net_device *dev);
void ipoib_h_tx_lock(struct net_device *dev);
void ipoib_h_tx_unlock(struct net_device *dev);
bool ipoib_h_xmit_more(void);
bool ipoib_h_tx_sent(struct net_device *dev, unsigned int bytes, bool more);
void ipoib_h_tx_completed(struct net_device *dev, unsigned int packets, unsigned int bytes);
void ipoib_h_tx_reset(struct net_device *dev);
bool ipoib_h_tx_stopped(struct net_device *dev);
bool ipoib_h_has_carrier(struct net_device *dev);
bool ipoib_h_has_queue(struct net_device *dev);
unsigned int ipoib_h_mc_list(struct net_device *dev, u8 *addresses, unsigned int max);
void ipoib_h_napi_add(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *, int),
		      unsigned int number);
u64 ipoib_h_gro_timeout(const struct net_device *dev);
void ipoib_h_set_gro_timeout(struct net_device *dev, u64 nanoseconds);
u32 ipoib_h_defer_irqs(const struct net_device *dev);
void ipoib_h_set_defer_irqs(struct net_device *dev, u32 polls);
void ipoib_h_napi_del(struct napi_struct *napi);
void ipoib_h_tx_stop(struct net_device *dev);
void ipoib_h_napi_kick(struct napi_struct *napi);
struct net_device *ipoib_h_to_net_dev(struct device *dev);
const char *ipoib_h_parent_name(struct net_device *dev);
int ipoib_h_restart_syscall(void);
netdev_features_t ipoib_h_fixed_features(void);
netdev_features_t ipoib_h_rx_checksum(void);
netdev_features_t ipoib_h_offloads(bool checksum, bool segment);
void ipoib_h_list_lock(void);
void ipoib_h_list_unlock(void);
bool ipoib_h_has_address(struct net_device *dev, const struct sockaddr *address);
struct net_device *ipoib_h_dev_get(struct net *net, int ifindex);

/* A receive buffer that is mapped for the device. */
struct ipoib_h_buffer {
	void *start;
	u64 address;
	unsigned int size;
};

struct page_pool *ipoib_h_pool(unsigned int buffers);
void ipoib_h_pool_free(struct page_pool *pool);
bool ipoib_h_buffer_new(struct page_pool *pool, struct ib_device *hca, unsigned int headroom, unsigned int bytes,
		    struct ipoib_h_buffer *buffer);
bool ipoib_h_buffer_new_bh(struct page_pool *pool, struct ib_device *hca, unsigned int headroom, unsigned int bytes,
		       struct ipoib_h_buffer *buffer);
void ipoib_h_buffer_free(struct page_pool *pool, struct ib_device *hca, unsigned int bytes,
			 const struct ipoib_h_buffer *buffer);
struct sk_buff *ipoib_h_build_skb(struct page_pool *pool, struct ib_device *hca, unsigned int headroom,
				  unsigned int bytes, unsigned int used, const struct ipoib_h_buffer *buffer);
void ipoib_h_receive(struct napi_struct *napi, struct sk_buff *skb, struct net_device *dev, u8 type, bool csum_ok);
bool ipoib_h_csum_partial(const struct sk_buff *skb);
/* A large packet: offsets from its first byte, bytes of its headers, payload of a segment. */
struct ipoib_h_train {
	u32 mss;
	u16 ip;
	u16 transport;
	u16 length;
	bool tcp;
};

netdev_features_t ipoib_h_features_check(struct sk_buff *skb, netdev_features_t features, unsigned int max_sge);
bool ipoib_h_shape(const struct sk_buff *skb, struct ipoib_h_train *train);
bool ipoib_h_map_header(struct ib_device *hca, void *data, size_t size, u64 *address);
bool ipoib_h_checksum(struct sk_buff *skb);
void ipoib_h_max_segments(struct net_device *dev, unsigned int segments);
int ipoib_h_skb_linearize(struct sk_buff *skb);
u32 ipoib_h_sum(const struct sk_buff *skb, bool head, unsigned int part, unsigned int done, unsigned int from,
		unsigned int length);
unsigned int ipoib_h_tcp_headers(const struct sk_buff *skb);
int ipoib_h_map_tx(struct ib_device *hca, struct sk_buff *skb, struct ib_sge *sge, u32 lkey);
void ipoib_h_unmap_tx(struct ib_device *hca, bool head, const struct ib_sge *sge, unsigned int count);

/* A page that is mapped for the device. */
struct ipoib_h_page {
	struct page *page;
	u64 address;
};

struct page_pool *ipoib_h_page_pool(unsigned int pages);
bool ipoib_h_pages_new(struct page_pool *pool, struct ib_device *hca, struct ipoib_h_page *pages, unsigned int count,
		       bool in_poll);
void ipoib_h_pages_free(struct page_pool *pool, struct ib_device *hca, const struct ipoib_h_page *pages,
			unsigned int count);
struct sk_buff *ipoib_h_rc_head(struct napi_struct *napi, struct ib_device *hca, struct page *page, u64 address,
				unsigned int bytes);
void ipoib_h_rc_frags(struct sk_buff *skb, struct ib_device *hca, const struct ipoib_h_page *pages, unsigned int offset,
		      unsigned int bytes);
void ipoib_h_keep_routes(struct net_device *dev, bool keep);
void ipoib_h_drop_route(struct sk_buff *skb);
void ipoib_h_learn_mtu(struct sk_buff *skb, unsigned int mtu);
void ipoib_h_tell_too_large(struct sk_buff *skb, unsigned int mtu);
netdev_features_t ipoib_h_connected_features(netdev_features_t features);

typedef int (*ipoib_h_newlink_t)(struct net *net, struct net_device *dev, struct nlattr **tb, struct nlattr **data,
				 struct netlink_ext_ack *extack);
void ipoib_h_link_ops(struct rtnl_link_ops *ops, ipoib_h_newlink_t newlink);
void ipoib_h_attribute(struct device_attribute *attribute, const char *name, umode_t mode,
		       ssize_t (*show)(struct device *, struct device_attribute *, char *),
		       ssize_t (*store)(struct device *, struct device_attribute *, const char *, size_t));
typedef bool (*ipoib_h_only_t)(struct device *dev, struct attribute *attribute);
/* One function for all groups that are not every interface's. */
void ipoib_h_group(struct attribute_group *group, const char *name, struct attribute **attributes,
		   ipoib_h_only_t only);
void ipoib_h_same_net(struct net_device *dev, struct net_device *parent);
void ipoib_h_set_parent(struct net_device *dev, struct ib_device *hca);
bool ipoib_h_hca_get(struct ib_device *hca);
bool ipoib_h_is_ib_port(struct ib_device *hca, u32 port);
bool ipoib_h_is_accelerated(struct ib_device *hca, u32 port);
unsigned int ipoib_h_mtu_bytes(struct ib_device *hca, u32 port, int mtu);
struct ib_ah *ipoib_h_mcast_ah(struct ib_pd *pd, u32 port, struct ib_sa_mcmember_rec *rec);
struct ib_ah *ipoib_h_path_ah(struct ib_pd *pd, u32 port, struct sa_path_rec *rec);
void ipoib_h_event_init(struct ib_event_handler *handler, struct ib_device *hca,
			void (*func)(struct ib_event_handler *, struct ib_event *));
void ipoib_h_path_rec(struct sa_path_rec *rec, struct ib_device *hca, u32 port);

#endif
