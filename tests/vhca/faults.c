// SPDX-License-Identifier: GPL-2.0-only
/* Faults on demand: their settings and the decision whether one hits. */
#include <linux/fs.h>
#include <linux/module.h>

#include "internal.h"

static const char * const vhca_fault_names[] = {
#define X(kind, name) #name,
	VHCA_FAULTS(X)
#undef X
};

static const struct {
	const char *name;
	u32 def;
	u32 least;
	u32 most;
} vhca_fault_args[] = {
#define X(name, def, least, most) { #name, def, least, most },
	VHCA_FAULT_ARGS(X)
#undef X
};

static void vhca_knob_init(struct vhca_dev *dev, struct vhca_knob *knob,
			   u32 *value, u32 least, u32 most)
{
	knob->dev = dev;
	knob->value = value;
	knob->least = least;
	knob->most = most;
}

void vhca_faults_init(struct vhca_dev *dev)
{
	struct vhca_faults *f = &dev->faults;
	struct vhca_knob *knob = f->knobs;
	int i;

	spin_lock_init(&f->lock);
	for (i = 0; i < VHCA_NUM_FAULTS; i++) {
		vhca_knob_init(dev, knob++, &f->permille[i], 0, 1000);
		vhca_knob_init(dev, knob++, &f->next[i], 0, U32_MAX);
	}
	for (i = 0; i < VHCA_NUM_FAULT_ARGS; i++) {
		f->arg[i] = vhca_fault_args[i].def;
		vhca_knob_init(dev, knob++, &f->arg[i],
			       vhca_fault_args[i].least,
			       vhca_fault_args[i].most);
	}
	prandom_seed_state(&f->rnd, f->arg[VHCA_ARG_seed]);
}

/* f->lock is held. */
static void vhca_faults_rearm(struct vhca_faults *f)
{
	unsigned long armed = 0;
	int i;

	for (i = 0; i < VHCA_NUM_FAULTS; i++)
		if (f->permille[i] || f->next[i])
			armed |= BIT(i);
	WRITE_ONCE(f->armed, armed);
}

/* Does an armed fault hit now? Any context. */
bool vhca_fault_decide(struct vhca_dev *dev, enum vhca_fault_kind kind)
{
	struct vhca_faults *f = &dev->faults;
	unsigned long flags;
	bool hit = false;

	spin_lock_irqsave(&f->lock, flags);
	if (f->next[kind]) {
		hit = true;
		if (!--f->next[kind])
			vhca_faults_rearm(f);
	} else if (f->permille[kind]) {
		hit = prandom_u32_state(&f->rnd) % 1000 < f->permille[kind];
	}
	spin_unlock_irqrestore(&f->lock, flags);
	return hit;
}

u64 vhca_fault_delay_ns(struct vhca_dev *dev)
{
	return READ_ONCE(dev->faults.arg[VHCA_ARG_delay_us]) *
	       (u64)NSEC_PER_USEC;
}

enum ib_wc_status vhca_fault_cqe_status(struct vhca_dev *dev)
{
	return READ_ONCE(dev->faults.arg[VHCA_ARG_cqe_status]);
}

/* The position of the WR that post_send refuses with -*@err, or -1. */
int vhca_fault_post_send(struct vhca_dev *dev, int *err)
{
	if (likely(!vhca_fault_hit(dev, VHCA_FAULT_POST_SEND)))
		return -1;
	vhca_count(dev, fault_post_send);
	*err = READ_ONCE(dev->faults.arg[VHCA_ARG_post_send_errno]);
	return READ_ONCE(dev->faults.arg[VHCA_ARG_post_send_wr]);
}

/* The position of the receive WR that is refused for want of memory, or -1. */
int vhca_fault_post_recv(struct vhca_dev *dev)
{
	if (likely(!vhca_fault_hit(dev, VHCA_FAULT_POST_RECV)))
		return -1;
	vhca_count(dev, fault_post_recv);
	return READ_ONCE(dev->faults.arg[VHCA_ARG_post_recv_wr]);
}

/*
 * RC keeps its order, so a delay belongs to the message and is decided when it
 * is posted: messages behind each other are late together, not in sum. UD
 * packets are delayed on their way (egress.c).
 */
u64 vhca_fault_due(struct vhca_qp *qp)
{
	if (qp->ibqp.qp_type != IB_QPT_RC ||
	    likely(!vhca_fault_hit(qp->dev, VHCA_FAULT_DELAY)))
		return 0;
	return ktime_get_ns() + vhca_fault_delay_ns(qp->dev);
}

static int vhca_knob_get(void *data, u64 *value)
{
	struct vhca_knob *knob = data;

	*value = READ_ONCE(*knob->value);
	return 0;
}

static int vhca_knob_set(void *data, u64 value)
{
	struct vhca_knob *knob = data;
	struct vhca_faults *f = &knob->dev->faults;

	if (value < knob->least || value > knob->most)
		return -ERANGE;
	spin_lock_irq(&f->lock);
	*knob->value = value;
	if (knob->value == &f->arg[VHCA_ARG_seed])
		prandom_seed_state(&f->rnd, value);
	vhca_faults_rearm(f);
	spin_unlock_irq(&f->lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(vhca_knob_fops, vhca_knob_get, vhca_knob_set,
			 "%llu\n");

/* The name of knob @i's file. */
static void vhca_knob_name(char *name, size_t size, int i)
{
	if (i < 2 * VHCA_NUM_FAULTS)
		snprintf(name, size, "%s%s", vhca_fault_names[i / 2],
			 i & 1 ? "_next" : "");
	else
		strscpy(name, vhca_fault_args[i - 2 * VHCA_NUM_FAULTS].name,
			size);
}

/* As a number written to the file of that name; -ENOENT: there is none. */
int vhca_fault_write(struct vhca_dev *dev, const char *name, u32 value)
{
	char known[32];
	int i;

	for (i = 0; i < VHCA_NUM_KNOBS; i++) {
		vhca_knob_name(known, sizeof(known), i);
		if (!strcmp(known, name))
			return vhca_knob_set(&dev->faults.knobs[i], value);
	}
	return -ENOENT;
}

void vhca_faults_add(struct vhca_dev *dev)
{
	struct dentry *dir = debugfs_create_dir("fault", dev->debugfs);
	char name[32];
	int i;

	for (i = 0; i < VHCA_NUM_KNOBS; i++) {
		vhca_knob_name(name, sizeof(name), i);
		debugfs_create_file(name, 0600, dir, &dev->faults.knobs[i],
				    &vhca_knob_fops);
	}
	vhca_triggers_add(dev, dir);
}
