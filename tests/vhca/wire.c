// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire: one thread per HCA that takes turns between the QPs that have
 * work, and raises the CQ events of what it moved after each batch.
 */
#include <linux/hrtimer.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "internal.h"

static int vhca_wire_main(void *data);

int vhca_wire_start(struct vhca_dev *dev)
{
	struct vhca_wire *wire = &dev->wire;

	wire->dev = dev;
	spin_lock_init(&wire->lock);
	INIT_LIST_HEAD(&wire->run);
	INIT_LIST_HEAD(&wire->events);
	timerqueue_init_head(&wire->timers);
	wire->scratch = kmalloc(VHCA_SCRATCH_BYTES, GFP_KERNEL);
	if (!wire->scratch)
		return -ENOMEM;
	wire->task = kthread_run(vhca_wire_main, wire, "vhca-wire/%u",
				 dev->index);
	if (IS_ERR(wire->task)) {
		kfree(wire->scratch);
		return PTR_ERR(wire->task);
	}
	return 0;
}

/* All QPs are gone; packets that are still delayed are lost. */
void vhca_wire_stop(struct vhca_dev *dev)
{
	struct vhca_wire *wire = &dev->wire;
	struct timerqueue_node *node;
	struct vhca_timed *timed;

	kthread_stop(wire->task);
	while ((node = timerqueue_getnext(&wire->timers))) {
		timed = container_of(node, struct vhca_timed, node);
		timerqueue_del(&wire->timers, node);
		vhca_delayed_free(wire, timed);
	}
	kfree(wire->scratch);
}

/* The QP has something to do. Any context. */
void vhca_wire_kick(struct vhca_qp *qp)
{
	struct vhca_wire *wire = &qp->dev->wire;
	unsigned long flags;

	if (test_bit(VHCA_QP_DEAD, &qp->flags) ||
	    test_and_set_bit(VHCA_QP_SCHED, &qp->flags))
		return;
	refcount_inc(&qp->refs);
	spin_lock_irqsave(&wire->lock, flags);
	list_add_tail(&qp->run_node, &wire->run);
	spin_unlock_irqrestore(&wire->lock, flags);
	wake_up_process(wire->task);
}

/* wire->lock is held. */
static void vhca_timed_add(struct vhca_wire *wire, struct vhca_timed *timed,
			   u64 until_ns)
{
	timed->node.expires = ns_to_ktime(until_ns);
	timed->queued = true;
	timerqueue_add(&wire->timers, &timed->node);
}

/* wire->lock is held. */
static bool vhca_timed_del(struct vhca_wire *wire, struct vhca_timed *timed)
{
	if (!timed->queued)
		return false;
	timed->queued = false;
	timerqueue_del(&wire->timers, &timed->node);
	return true;
}

/* On the wire, tx_mutex held: the QP rests until then. U64_MAX: for ever. */
void vhca_wire_wait(struct vhca_wire *wire, struct vhca_qp *qp, u64 until_ns)
{
	qp->req.waiting = true;
	qp->req.resume_ns = until_ns;
	if (until_ns == U64_MAX)
		return;
	spin_lock_irq(&wire->lock);
	if (!qp->timed.queued && !test_bit(VHCA_QP_DEAD, &qp->flags)) {
		refcount_inc(&qp->refs);
		vhca_timed_add(wire, &qp->timed, until_ns);
	}
	spin_unlock_irq(&wire->lock);
}

void vhca_wire_disarm(struct vhca_qp *qp)
{
	struct vhca_wire *wire = &qp->dev->wire;
	bool was;

	spin_lock_irq(&wire->lock);
	was = vhca_timed_del(wire, &qp->timed);
	spin_unlock_irq(&wire->lock);
	if (was)
		vhca_qp_put(qp);
}

void vhca_wire_delay(struct vhca_wire *wire, struct vhca_timed *timed,
		     u64 until_ns)
{
	spin_lock_irq(&wire->lock);
	vhca_timed_add(wire, timed, until_ns);
	spin_unlock_irq(&wire->lock);
}

bool vhca_wire_cancel_delay(struct vhca_wire *wire, struct vhca_timed *timed)
{
	bool was;

	spin_lock_irq(&wire->lock);
	was = vhca_timed_del(wire, timed);
	spin_unlock_irq(&wire->lock);
	return was;
}

/* What is due: delayed packets leave, QPs get their turn. */
static void vhca_wire_expire(struct vhca_wire *wire)
{
	struct timerqueue_node *node;
	struct vhca_timed *timed;
	struct vhca_qp *qp;

	for (;;) {
		timed = NULL;
		spin_lock_irq(&wire->lock);
		node = timerqueue_getnext(&wire->timers);
		if (node && node->expires <= ktime_get()) {
			timed = container_of(node, struct vhca_timed, node);
			vhca_timed_del(wire, timed);
		}
		spin_unlock_irq(&wire->lock);
		if (!timed)
			return;
		if (timed->is_qp) {
			qp = container_of(timed, struct vhca_qp, timed);
			vhca_wire_kick(qp);
			vhca_qp_put(qp);
		} else {
			vhca_delayed_run(wire, timed);
		}
	}
}

static struct vhca_qp *vhca_wire_pop(struct vhca_wire *wire)
{
	struct vhca_qp *qp;

	spin_lock_irq(&wire->lock);
	qp = list_first_entry_or_null(&wire->run, struct vhca_qp, run_node);
	if (qp) {
		list_del_init(&qp->run_node);
		/* Whoever kicks from now on is heard. */
		clear_bit(VHCA_QP_SCHED, &qp->flags);
	}
	spin_unlock_irq(&wire->lock);
	return qp;
}

/* tx_mutex is held. */
static void vhca_qp_flush(struct vhca_wire *wire, struct vhca_qp *qp)
{
	vhca_flush_send(wire, qp);
	vhca_flush_recv(wire, qp);
	if (qp->ibqp.srq && !test_and_set_bit(VHCA_QP_LAST_WQE, &qp->flags))
		vhca_events_raise(&qp->events, IB_EVENT_QP_LAST_WQE_REACHED);
}

static bool vhca_qp_resting(struct vhca_qp *qp)
{
	if (!qp->req.waiting)
		return false;
	if (ktime_get_ns() < qp->req.resume_ns)
		return true;
	qp->req.waiting = false;
	return false;
}

static void vhca_qp_run(struct vhca_wire *wire, struct vhca_qp *qp)
{
	mutex_lock(&qp->tx_mutex);
	if (test_bit(VHCA_QP_DEAD, &qp->flags))
		goto out;
	if (test_bit(VHCA_QP_ERR_ASKED, &qp->flags))
		vhca_qp_to_error(qp);
	if (qp->state == IB_QPS_RTS && !vhca_qp_resting(qp)) {
		if (qp->ibqp.qp_type == IB_QPT_RC)
			vhca_rc_run(wire, qp);
		else
			vhca_ud_run(wire, qp);
		/* Its batch is over, its work is not. */
		if (qp->state == IB_QPS_RTS && !qp->req.waiting &&
		    vhca_sq_next(&qp->sq))
			vhca_wire_kick(qp);
	}
	if (qp->state == IB_QPS_SQE)
		vhca_flush_send(wire, qp);
	else if (qp->state == IB_QPS_ERR)
		vhca_qp_flush(wire, qp);
out:
	mutex_unlock(&qp->tx_mutex);
}

static void vhca_wire_raise(struct vhca_wire *wire)
{
	struct vhca_cq *cq, *next;

	wire->packets = 0;
	if (list_empty(&wire->events))
		return;
	local_bh_disable();
	list_for_each_entry_safe(cq, next, &wire->events, event_node) {
		list_del_init(&cq->event_node);
		vhca_cq_raise(cq);
	}
	local_bh_enable();
}

/* One batch. False: there was nothing to do. */
static bool vhca_wire_round(struct vhca_wire *wire)
{
	struct vhca_qp *qp;
	bool worked = false;

	vhca_fabric_read_lock();
	vhca_wire_expire(wire);
	while (wire->packets < vhca_wire_batch && (qp = vhca_wire_pop(wire))) {
		vhca_qp_run(wire, qp);
		vhca_qp_put(qp);
		worked = true;
	}
	vhca_fabric_read_unlock();
	vhca_wire_raise(wire);
	return worked;
}

/* Sleeps until there is work or the first timer is due. */
static void vhca_wire_sleep(struct vhca_wire *wire)
{
	struct timerqueue_node *node;
	ktime_t due = KTIME_MAX;
	bool idle;

	set_current_state(TASK_IDLE);
	spin_lock_irq(&wire->lock);
	idle = list_empty(&wire->run);
	node = timerqueue_getnext(&wire->timers);
	if (node)
		due = node->expires;
	spin_unlock_irq(&wire->lock);
	if (idle && !kthread_should_stop()) {
		if (node)
			schedule_hrtimeout(&due, HRTIMER_MODE_ABS);
		else
			schedule();
	}
	__set_current_state(TASK_RUNNING);
}

static int vhca_wire_main(void *data)
{
	struct vhca_wire *wire = data;

	while (!kthread_should_stop()) {
		if (vhca_wire_round(wire))
			cond_resched();
		else
			vhca_wire_sleep(wire);
	}
	return 0;
}
