// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs every case when the module is loaded; loading fails if one fails. The
 * kernel log has a line per case.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "selftest.h"

MODULE_DESCRIPTION("Verbs by the book, on two virtual HCAs");
MODULE_LICENSE("GPL");

/* Of vhca; found by name, so that this module is built without it. */
int vhca_test_fault(struct ib_device *ibdev, const char *name,
		    const char *value);
long long vhca_test_stat(struct ib_device *ibdev, const char *name);

static typeof(&vhca_test_fault) st_set;
static typeof(&vhca_test_stat) st_get;

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "Run the cases whose name contains this (all)");

static char *lookup = "";
module_param(lookup, charp, 0444);
MODULE_PARM_DESC(lookup,
		 "Instead: \"HCA P_KEY ADDRESS\", whose interface is looked up");

static struct ib_device *st_devs[2];

static int st_add_one(struct ib_device *dev)
{
	if (!strcmp(dev_name(&dev->dev), "vhca0"))
		st_devs[0] = dev;
	else if (!strcmp(dev_name(&dev->dev), "vhca1"))
		st_devs[1] = dev;
	else
		return -EOPNOTSUPP;
	return 0;
}

static void st_remove_one(struct ib_device *dev, void *data)
{
}

static struct ib_client st_client = {
	.name = "vhca_selftest",
	.add = st_add_one,
	.remove = st_remove_one,
};

int st_fault(int hca, const char *name, const char *value)
{
	return st_set(st_devs[hca], name, value);
}

/* A counter, or a negative error. */
long long st_stat(int hca, const char *name)
{
	return st_get(st_devs[hca], name);
}

/* A case that failed may have left faults behind. */
static void st_restore(void)
{
	static const struct { const char *name, *value; } sane[] = {
		{ "port", "up" }, { "pkey", "0 0xffff" }, { "loss", "0" },
		{ "loss_next", "0" }, { "duplicate", "0" },
		{ "duplicate_next", "0" }, { "reorder", "0" },
		{ "reorder_next", "0" }, { "delay", "0" }, { "delay_next", "0" },
		{ "delay_us", "1000" }, { "post_send_next", "0" },
		{ "post_send_wr", "0" }, { "post_send_errno", "12" },
		{ "post_recv_next", "0" }, { "post_recv_wr", "0" },
		{ "cqe_next", "0" }, { "cqe_recv_next", "0" },
		{ "cqe_status", "21" },
	};
	int hca, i;

	for (hca = 0; hca < 2; hca++)
		for (i = 0; i < ARRAY_SIZE(sane); i++)
			if (st_fault(hca, sane[i].name, sane[i].value))
				pr_err("vhca_selftest: cannot set %s of vhca%d\n",
				       sane[i].name, hca);
}

static int st_run(const struct st_case *c)
{
	struct st *st;
	int ret;

	st = kzalloc(sizeof(*st), GFP_KERNEL);
	if (!st)
		return -ENOMEM;
	ret = st_setup(st, st_devs[0], st_devs[1], &c->opt);
	if (ret)
		pr_err("vhca_selftest: %s: set-up: error %d\n", c->name, ret);
	else
		ret = c->run(st);
	st_teardown(st);
	kfree(st);
	st_restore();
	if (ret)
		pr_err("vhca_selftest: FAIL %s (%d)\n", c->name, ret);
	else
		pr_info("vhca_selftest: ok %s\n", c->name);
	return ret;
}

static int st_run_all(void)
{
	static const struct st_case * const tables[] = {
		st_ud_cases, st_post_cases, st_rc_cases, st_rc_error_cases,
		st_cq_cases, st_srq_cases, st_mcast_cases,
	};
	int passed = 0, failed = 0, i;
	const struct st_case *c;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (c = tables[i]; c->name; c++) {
			if (!strstr(c->name, only))
				continue;
			if (st_run(c))
				failed++;
			else
				passed++;
		}
	pr_info("vhca_selftest: %d passed, %d failed\n", passed, failed);
	return failed || !passed ? -EIO : 0;
}

static int __init st_init(void)
{
	int ret = -ENODEV;

	st_set = symbol_get(vhca_test_fault);
	st_get = symbol_get(vhca_test_stat);
	if (!st_set || !st_get) {
		pr_err("vhca_selftest: vhca is not loaded\n");
		goto out;
	}
	ret = ib_register_client(&st_client);
	if (ret)
		goto out;
	if (st_devs[0] && st_devs[1]) {
		ret = *lookup ? st_lookup(st_devs, lookup) : st_run_all();
	} else {
		pr_err("vhca_selftest: vhca has no two HCAs\n");
		ret = -ENODEV;
	}
	ib_unregister_client(&st_client);
out:
	if (st_get)
		symbol_put(vhca_test_stat);
	if (st_set)
		symbol_put(vhca_test_fault);
	return ret;
}

/* All is done at load; unloading only forgets it. */
static void __exit st_exit(void)
{
}

module_init(st_init);
module_exit(st_exit);
