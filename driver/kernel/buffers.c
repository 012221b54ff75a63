// SPDX-License-Identifier: GPL-2.0-only
/* Receive buffers: pools of pages, and packets of what a device wrote to them. */
#include <linux/skbuff.h>
#include <net/page_pool/helpers.h>

#include "bindings.h"

/* Receive buffers come from a pool of pages of their own: those that come back are neither zeroed nor given to the page
 * allocator in between, which costs more than all else that a receive does. Pages are large enough for some buffers each.
 */
#define IPOIB_H_POOL_ORDER 2

struct page_pool *ipoib_h_pool(unsigned int buffers)
{
	struct page_pool_params params = {
		.order = IPOIB_H_POOL_ORDER,
		.pool_size = min(buffers, 1024u),
		.nid = NUMA_NO_NODE,
	};

	return page_pool_create(&params);
}

void ipoib_h_pool_free(struct page_pool *pool)
{
	page_pool_destroy(pool);
}

/* Room for an skb's shared information is a part of a buffer; what follows the headroom is mapped. NAPI, or BHs off. */
bool ipoib_h_buffer_new(struct page_pool *pool, struct ib_device *hca, unsigned int headroom, unsigned int bytes,
		    struct ipoib_h_buffer *buffer)
{
	buffer->size = SKB_HEAD_ALIGN(headroom + bytes);
	buffer->start = page_pool_dev_alloc_va(pool, &buffer->size);
	if (unlikely(!buffer->start))
		return false;
	buffer->address = ib_dma_map_single(hca, buffer->start + headroom, bytes, DMA_FROM_DEVICE);
	if (likely(!ib_dma_mapping_error(hca, buffer->address)))
		return true;
	page_pool_free_va(pool, buffer->start, false);
	return false;
}

bool ipoib_h_buffer_new_bh(struct page_pool *pool, struct ib_device *hca, unsigned int headroom, unsigned int bytes,
		       struct ipoib_h_buffer *buffer)
{
	bool done;

	local_bh_disable();
	done = ipoib_h_buffer_new(pool, hca, headroom, bytes, buffer);
	local_bh_enable();
	return done;
}

void ipoib_h_buffer_free(struct page_pool *pool, struct ib_device *hca, unsigned int bytes,
			 const struct ipoib_h_buffer *buffer)
{
	ib_dma_unmap_single(hca, buffer->address, bytes, DMA_FROM_DEVICE);
	page_pool_free_va(pool, buffer->start, false);
}

/* Makes a packet of @used of the @bytes that the device could write, or frees the buffer. NAPI. */
struct sk_buff *ipoib_h_build_skb(struct page_pool *pool, struct ib_device *hca, unsigned int headroom,
				  unsigned int bytes, unsigned int used, const struct ipoib_h_buffer *buffer)
{
	struct sk_buff *skb;

	ib_dma_unmap_single(hca, buffer->address, bytes, DMA_FROM_DEVICE);
	skb = napi_build_skb(buffer->start, buffer->size);
	if (unlikely(!skb)) {
		page_pool_free_va(pool, buffer->start, false);
		return NULL;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, headroom);
	__skb_put(skb, used);
	return skb;
}

/* Pages of connections' buffers come from a pool of their own, too. */
struct page_pool *ipoib_h_page_pool(unsigned int pages)
{
	struct page_pool_params params = {
		.pool_size = min(pages, 2048u),
		.nid = NUMA_NO_NODE,
	};

	return page_pool_create(&params);
}

/* Gives back pages that are mapped and that the device no longer uses. */
void ipoib_h_pages_free(struct page_pool *pool, struct ib_device *hca, const struct ipoib_h_page *pages,
			unsigned int count)
{
	while (count--) {
		ib_dma_unmap_page(hca, pages[count].address, PAGE_SIZE, DMA_FROM_DEVICE);
		page_pool_put_full_page(pool, pages[count].page, false);
	}
}

/* Takes and maps as many pages, or none. NAPI, or BHs off. */
static bool ipoib_h_pages_take(struct page_pool *pool, struct ib_device *hca, struct ipoib_h_page *pages,
			       unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct page *page = page_pool_dev_alloc_pages(pool);

		if (unlikely(!page))
			goto undo;
		pages[i].page = page;
		pages[i].address = ib_dma_map_page(hca, page, 0, PAGE_SIZE, DMA_FROM_DEVICE);
		if (unlikely(ib_dma_mapping_error(hca, pages[i].address))) {
			page_pool_put_full_page(pool, page, false);
			goto undo;
		}
	}
	return true;
undo:
	ipoib_h_pages_free(pool, hca, pages, i);
	return false;
}

bool ipoib_h_pages_new(struct page_pool *pool, struct ib_device *hca, struct ipoib_h_page *pages, unsigned int count,
		       bool in_poll)
{
	bool done;

	if (in_poll)
		return ipoib_h_pages_take(pool, hca, pages, count);
	local_bh_disable();
	done = ipoib_h_pages_take(pool, hca, pages, count);
	local_bh_enable();
	return done;
}

/* An skb that holds the first bytes of a page, which the device keeps. */
struct sk_buff *ipoib_h_rc_head(struct napi_struct *napi, struct ib_device *hca, struct page *page, u64 address,
				unsigned int bytes)
{
	struct sk_buff *skb = napi_alloc_skb(napi, bytes + INFINIBAND_ALEN);

	if (!skb)
		return NULL;
	skb_reserve(skb, INFINIBAND_ALEN);
	ib_dma_sync_single_for_cpu(hca, address, bytes, DMA_FROM_DEVICE);
	skb_put_data(skb, page_address(page), bytes);
	ib_dma_sync_single_for_device(hca, address, bytes, DMA_FROM_DEVICE);
	return skb;
}

/* Gives pages to an skb: @bytes that begin at @offset of the first one. */
void ipoib_h_rc_frags(struct sk_buff *skb, struct ib_device *hca, const struct ipoib_h_page *pages, unsigned int offset,
		      unsigned int bytes)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	unsigned int n;

	skb_mark_for_recycle(skb);
	skb->len += bytes;
	skb->data_len += bytes;
	for (n = 0; bytes && n < MAX_SKB_FRAGS; n++) {
		unsigned int part = min_t(unsigned int, bytes, PAGE_SIZE - offset);

		ib_dma_unmap_page(hca, pages[n].address, PAGE_SIZE, DMA_FROM_DEVICE);
		skb_frag_fill_page_desc(&info->frags[n], pages[n].page, offset, part);
		/* Memory of the reserves is not for every socket. */
		if (page_is_pfmemalloc(pages[n].page))
			skb->pfmemalloc = true;
		bytes -= part;
		offset = 0;
	}
	info->nr_frags = n;
	skb->truesize += n * PAGE_SIZE;
}
