// SPDX-License-Identifier: GPL-2.0-only
/* Completion queues: the ring, arming, moderation and the CQ event. */
#include <linux/log2.h>
#include <linux/mm.h>

#include "internal.h"

static u32 vhca_cq_count(const struct vhca_cq *cq)
{
	return cq->tail - cq->head;
}

static struct vhca_cqe *vhca_cq_slot(struct vhca_cq *cq, u32 index)
{
	return &cq->ring[index & (cq->size - 1)];
}

/* cq->lock is held: does moderation hold the event back? */
static bool vhca_cq_hold(const struct vhca_cq *cq)
{
	return cq->mod_period && !cq->error &&
	       (!cq->mod_count || cq->mod_seen < cq->mod_count);
}

/* The consumer's handler, in BH on the CPU of the vector. */
static void vhca_cq_event_work(struct work_struct *work)
{
	struct vhca_cq *cq = container_of(work, struct vhca_cq, event_work);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->event_pending = false;
	spin_unlock_irqrestore(&cq->lock, flags);

	if (cq->mad)
		vhca_count(cq->dev, mad_cq_events);
	else
		vhca_count(cq->dev, cq_events);
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);

	spin_lock_irqsave(&cq->lock, flags);
	cq->events_done++;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (wq_has_sleeper(&cq->wait))
		wake_up_all(&cq->wait);
}

static void vhca_cq_fire(struct vhca_cq *cq)
{
	int cpu = cq->vector % nr_cpu_ids;

	queue_work_on(cpu_online(cpu) ? cpu : WORK_CPU_UNBOUND, vhca_cq_wq,
		      &cq->event_work);
}

static enum hrtimer_restart vhca_cq_mod_expired(struct hrtimer *timer)
{
	struct vhca_cq *cq = container_of(timer, struct vhca_cq, mod_timer);
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	fire = cq->mod_waiting;
	cq->mod_waiting = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (fire)
		vhca_cq_fire(cq);
	return HRTIMER_NORESTART;
}

/*
 * The wire has moved its batch: tells the consumer now, or holds the event
 * back as moderation asks. No lock held, BH off.
 */
void vhca_cq_raise(struct vhca_cq *cq)
{
	unsigned long flags;
	u64 hold_ns = 0;

	spin_lock_irqsave(&cq->lock, flags);
	if (vhca_cq_hold(cq)) {
		cq->mod_waiting = true;
		hold_ns = cq->mod_period * NSEC_PER_USEC;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	if (hold_ns)
		hrtimer_start(&cq->mod_timer, ns_to_ktime(hold_ns),
			      HRTIMER_MODE_REL);
	else
		vhca_cq_fire(cq);
}

/* cq->lock is held: puts the CQ on the wire's list of owed events. */
static void vhca_cq_note_event(struct vhca_wire *wire, struct vhca_cq *cq,
			       bool solicited)
{
	if (cq->event_pending) {
		cq->mod_seen++;
		if (cq->mod_waiting && !vhca_cq_hold(cq)) {
			cq->mod_waiting = false;
			list_add_tail(&cq->event_node, &wire->events);
		}
		return;
	}
	if (cq->arm == VHCA_CQ_IDLE)
		return;
	if (cq->arm == VHCA_CQ_ARM_SOLICITED && !solicited)
		return;
	cq->arm = VHCA_CQ_IDLE;
	cq->event_pending = true;
	cq->mod_seen = 1;
	cq->events_raised++;
	list_add_tail(&cq->event_node, &wire->events);
}

/*
 * Adds a CQE. False: the CQ is in error, or has just come into it because it
 * was full (overrun); the QP that lost the CQE must not go on.
 */
bool vhca_cq_add(struct vhca_wire *wire, struct vhca_cq *cq,
		 const struct ib_wc *wc, u32 sq_retire, bool is_send,
		 bool solicited)
{
	bool overrun = false, lost;
	struct vhca_cqe *cqe;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (!cq->error && (vhca_cq_count(cq) >= cq->ibcq.cqe ||
			   (!cq->mad && vhca_fault_cq_overrun(cq->dev)))) {
		cq->error = true;
		overrun = true;
	}
	lost = cq->error;
	if (!lost) {
		cqe = vhca_cq_slot(cq, cq->tail++);
		cqe->wc = *wc;
		cqe->sq_retire = sq_retire;
		cqe->is_send = is_send;
		vhca_cq_note_event(wire, cq,
				   solicited || wc->status != IB_WC_SUCCESS);
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	if (overrun) {
		vhca_count(cq->dev, cq_overruns);
		vhca_events_raise(&cq->events, IB_EVENT_CQ_ERR);
	}
	if (lost)
		vhca_count(cq->dev, drop_cq_error);
	return !lost;
}

int vhca_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct vhca_cq *cq = to_vcq(ibcq);
	struct vhca_cqe *cqe;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < n && cq->head != cq->tail; i++) {
		cqe = vhca_cq_slot(cq, cq->head++);
		wc[i] = cqe->wc;
		if (cqe->is_send)
			WRITE_ONCE(to_vqp(cqe->wc.qp)->sq.retired,
				   cqe->sq_retire);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

int vhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags notify)
{
	struct vhca_cq *cq = to_vcq(ibcq);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&cq->lock, flags);
	if ((notify & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP)
		cq->arm = VHCA_CQ_ARM_NEXT;
	else if (cq->arm == VHCA_CQ_IDLE)
		cq->arm = VHCA_CQ_ARM_SOLICITED;
	if (notify & IB_CQ_REPORT_MISSED_EVENTS && cq->head != cq->tail)
		ret = 1;
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/* Takes out the CQEs of a QP that is destroyed or reset: no WC names it. */
void vhca_cq_purge(struct vhca_cq *cq, struct vhca_qp *qp)
{
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	for (from = to = cq->head; from != cq->tail; from++) {
		if (vhca_cq_slot(cq, from)->wc.qp == &qp->ibqp)
			continue;
		if (from != to)
			*vhca_cq_slot(cq, to) = *vhca_cq_slot(cq, from);
		to++;
	}
	cq->tail = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}

static bool vhca_cq_events_done(struct vhca_cq *cq, u64 upto)
{
	unsigned long flags;
	bool done;

	spin_lock_irqsave(&cq->lock, flags);
	done = cq->events_done >= upto;
	spin_unlock_irqrestore(&cq->lock, flags);
	return done;
}

/* Waits until the handler has returned for each event raised so far. */
void vhca_cq_wait_events(struct vhca_cq *cq)
{
	unsigned long flags;
	u64 upto;

	spin_lock_irqsave(&cq->lock, flags);
	upto = cq->events_raised;
	spin_unlock_irqrestore(&cq->lock, flags);
	wait_event(cq->wait, vhca_cq_events_done(cq, upto));
}

int vhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs)
{
	struct vhca_cq *cq = to_vcq(ibcq);

	if (attrs)
		return -EOPNOTSUPP;
	if (attr->flags || !attr->cqe || attr->cqe > VHCA_MAX_CQE ||
	    attr->comp_vector >= vhca_comp_vectors)
		return -EINVAL;
	cq->dev = to_vdev(ibcq->device);
	cq->vector = attr->comp_vector;
	/* Real HCAs round up, too, and keep one slot to tell full from empty. */
	cq->size = roundup_pow_of_two(attr->cqe + 1);
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	ibcq->cqe = cq->size - 1;
	spin_lock_init(&cq->lock);
	init_waitqueue_head(&cq->wait);
	INIT_LIST_HEAD(&cq->event_node);
	INIT_WORK(&cq->event_work, vhca_cq_event_work);
	hrtimer_setup(&cq->mod_timer, vhca_cq_mod_expired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
	vhca_events_init(&cq->events, ibcq->device, VHCA_EV_CQ, ibcq);
	return 0;
}

/* All QPs of the CQ are gone, so nothing raises events any more. */
int vhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct vhca_cq *cq = to_vcq(ibcq);

	vhca_cq_wait_events(cq);
	hrtimer_cancel(&cq->mod_timer);
	cancel_work_sync(&cq->event_work);
	vhca_events_stop(&cq->events);
	kvfree(cq->ring);
	return 0;
}

/* CQ moderation: an event per @count CQEs or @period microseconds. */
int vhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct vhca_cq *cq = to_vcq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->mod_count = count;
	cq->mod_period = period;
	spin_unlock_irqrestore(&cq->lock, flags);
	return 0;
}
