// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events of QPs, CQs and SRQs: raised anywhere, told to the
 * consumer from a work item, as the verbs promise.
 */
#include "internal.h"

static void vhca_events_work(struct work_struct *work)
{
	struct vhca_events *ev = container_of(work, struct vhca_events, work);
	struct ib_event event = { .device = ev->device };
	unsigned long bits = xchg(&ev->pending, 0);
	int bit;

	for_each_set_bit(bit, &bits, BITS_PER_LONG) {
		event.event = bit;
		switch (ev->kind) {
		case VHCA_EV_QP:
			event.element.qp = ev->object;
			event.element.qp->event_handler(&event,
							event.element.qp->qp_context);
			break;
		case VHCA_EV_CQ:
			event.element.cq = ev->object;
			if (event.element.cq->event_handler)
				event.element.cq->event_handler(&event,
								event.element.cq->cq_context);
			break;
		case VHCA_EV_SRQ:
			event.element.srq = ev->object;
			if (event.element.srq->event_handler)
				event.element.srq->event_handler(&event,
								 event.element.srq->srq_context);
			break;
		}
	}
}

void vhca_events_init(struct vhca_events *ev, struct ib_device *ibdev,
		      enum vhca_event_kind kind, void *object)
{
	ev->device = ibdev;
	ev->kind = kind;
	ev->object = object;
	ev->pending = 0;
	INIT_WORK(&ev->work, vhca_events_work);
}

/* Any context. The object lives until vhca_events_stop() has returned. */
void vhca_events_raise(struct vhca_events *ev, enum ib_event_type type)
{
	set_bit(type, &ev->pending);
	queue_work(vhca_event_wq, &ev->work);
}

/* Nothing raises events any more: none is under way after this. */
void vhca_events_stop(struct vhca_events *ev)
{
	cancel_work_sync(&ev->work);
}
