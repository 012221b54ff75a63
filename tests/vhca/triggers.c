// SPDX-License-Identifier: GPL-2.0-only
/* Changes on demand: what the fabric or a subnet manager may do to a port. */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "internal.h"

/* A short line from user space, without its end. */
static int vhca_get_line(char *line, size_t size, const char __user *buf,
			 size_t count)
{
	if (count >= size)
		return -EINVAL;
	if (copy_from_user(line, buf, count))
		return -EFAULT;
	line[count] = '\0';
	strim(line);
	return 0;
}

/* "INDEX VALUE" */
static int vhca_get_pair(char *line, u32 *index, u64 *value)
{
	char *first = strsep(&line, " \t");

	if (!line)
		return -EINVAL;
	return kstrtou32(first, 0, index) ?: kstrtou64(strim(line), 0, value);
}

#define VHCA_TRIGGER(name)						\
static ssize_t vhca_##name##_write(struct file *file,			\
				   const char __user *buf,		\
				   size_t count, loff_t *pos)		\
{									\
	struct seq_file *seq = file->private_data;			\
	struct vhca_dev *dev = seq->private;				\
	char line[64];							\
	int ret = vhca_get_line(line, sizeof(line), buf, count);	\
									\
	if (!ret)							\
		ret = vhca_do_##name(&dev->port, line);			\
	return ret ? ret : count;					\
}									\
static int vhca_##name##_show(struct seq_file *seq, void *unused)	\
{									\
	struct vhca_dev *dev = seq->private;				\
									\
	return vhca_show_##name(&dev->port, seq);			\
}									\
static int vhca_##name##_open(struct inode *inode, struct file *file)	\
{									\
	return single_open(file, vhca_##name##_show, inode->i_private);	\
}									\
static const struct file_operations vhca_##name##_fops = {		\
	.owner = THIS_MODULE,						\
	.open = vhca_##name##_open,					\
	.read = seq_read,						\
	.write = vhca_##name##_write,					\
	.llseek = seq_lseek,						\
	.release = single_release,					\
}

/* port: "down" pulls the cable, "up" plugs it, "bounce" does both. */
static int vhca_do_port(struct vhca_port *port, char *line)
{
	if (!strcmp(line, "down"))
		vhca_port_set_cable(port, false);
	else if (!strcmp(line, "up"))
		vhca_port_set_cable(port, true);
	else if (!strcmp(line, "bounce"))
		vhca_port_retrain(port);
	else
		return -EINVAL;
	return 0;
}

static int vhca_show_port(struct vhca_port *port, struct seq_file *seq)
{
	static const char * const names[] = {
		"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER",
	};

	seq_printf(seq, "%s %s\n", READ_ONCE(port->cable) ? "up" : "down",
		   names[READ_ONCE(port->state)]);
	return 0;
}
VHCA_TRIGGER(port);

/*
 * lid: the base LID. A module that manages itself moves the SM LID along when
 * the port was its own SM's.
 */
static int vhca_do_lid(struct vhca_port *port, char *line)
{
	struct vhca_port *other;
	u16 lid, old;
	int ret;

	ret = kstrtou16(line, 0, &lid);
	if (ret)
		return ret;
	if (!lid || lid >= VHCA_UNICAST_LIDS ||
	    lid & ((1U << READ_ONCE(port->lmc)) - 1))
		return -ERANGE;
	vhca_fabric_read_lock();
	other = vhca_port_by_lid(lid);
	vhca_fabric_read_unlock();
	if (other && other != port)
		return -EEXIST;
	old = READ_ONCE(port->lid);
	vhca_port_set_lid(port, lid, port->lmc);
	if (vhca_managed && READ_ONCE(port->sm_lid) == old)
		vhca_port_set_sm(port, lid, port->sm_sl);
	return 0;
}

static int vhca_show_lid(struct vhca_port *port, struct seq_file *seq)
{
	seq_printf(seq, "%u\n", READ_ONCE(port->lid));
	return 0;
}
VHCA_TRIGGER(lid);

/* sm_lid: where SA queries go from now on. */
static int vhca_do_sm_lid(struct vhca_port *port, char *line)
{
	u16 lid;
	int ret;

	ret = kstrtou16(line, 0, &lid);
	if (ret)
		return ret;
	if (lid >= VHCA_UNICAST_LIDS)
		return -ERANGE;
	vhca_port_set_sm(port, lid, port->sm_sl);
	return 0;
}

static int vhca_show_sm_lid(struct vhca_port *port, struct seq_file *seq)
{
	seq_printf(seq, "%u\n", READ_ONCE(port->sm_lid));
	return 0;
}
VHCA_TRIGGER(sm_lid);

/* pkey: "INDEX VALUE" writes one entry of the table. */
static int vhca_do_pkey(struct vhca_port *port, char *line)
{
	u32 index;
	u64 value;
	u16 pkey;
	int ret;

	ret = vhca_get_pair(line, &index, &value);
	if (ret)
		return ret;
	if (index >= VHCA_NUM_PKEYS || value > U16_MAX)
		return -ERANGE;
	pkey = value;
	return vhca_port_set_pkeys(port, index, &pkey, 1);
}

static int vhca_show_pkey(struct vhca_port *port, struct seq_file *seq)
{
	u16 pkey;
	int i;

	for (i = 0; i < VHCA_NUM_PKEYS; i++) {
		pkey = READ_ONCE(port->pkeys[i]);
		if (pkey)
			seq_printf(seq, "%d 0x%04x\n", i, pkey);
	}
	return 0;
}
VHCA_TRIGGER(pkey);

/* gid_prefix: the subnet prefix, 64 bits. */
static int vhca_do_gid_prefix(struct vhca_port *port, char *line)
{
	u64 prefix;
	int ret;

	ret = kstrtou64(line, 0, &prefix);
	if (ret)
		return ret;
	vhca_port_set_gid_prefix(port, cpu_to_be64(prefix));
	return 0;
}

static int vhca_show_gid_prefix(struct vhca_port *port, struct seq_file *seq)
{
	union ib_gid gid;

	vhca_port_gid(port, 0, &gid);
	seq_printf(seq, "0x%016llx\n", be64_to_cpu(gid.global.subnet_prefix));
	return 0;
}
VHCA_TRIGGER(gid_prefix);

/* guid: "INDEX VALUE" writes an alias GUID; the port GUID, 0, is fixed. */
static int vhca_do_guid(struct vhca_port *port, char *line)
{
	u32 index;
	u64 value;
	int ret;

	ret = vhca_get_pair(line, &index, &value);
	if (ret)
		return ret;
	return vhca_port_set_guid(port, index, cpu_to_be64(value));
}

static int vhca_show_guid(struct vhca_port *port, struct seq_file *seq)
{
	union ib_gid gid;
	int i;

	for (i = 0; i < VHCA_NUM_GUIDS; i++) {
		vhca_port_gid(port, i, &gid);
		if (gid.global.interface_id)
			seq_printf(seq, "%d 0x%016llx\n", i,
				   be64_to_cpu(gid.global.interface_id));
	}
	return 0;
}
VHCA_TRIGGER(guid);

/* reregister: "1" tells the clients to join again (CLIENT_REREGISTER). */
static int vhca_do_reregister(struct vhca_port *port, char *line)
{
	if (strcmp(line, "1"))
		return -EINVAL;
	vhca_port_reregister(port);
	return 0;
}

static int vhca_show_reregister(struct vhca_port *port, struct seq_file *seq)
{
	seq_puts(seq, "0\n");
	return 0;
}
VHCA_TRIGGER(reregister);

static const struct {
	const char *name;
	int (*act)(struct vhca_port *port, char *line);
	const struct file_operations *fops;
} vhca_triggers[] = {
#define X(name) { #name, vhca_do_##name, &vhca_##name##_fops }
	X(port), X(lid), X(sm_lid), X(pkey), X(gid_prefix), X(guid),
	X(reregister),
#undef X
};

/* As a line written to the file of that name; -ENOENT: there is none. */
int vhca_trigger(struct vhca_dev *dev, const char *name, const char *value)
{
	char line[64];
	int i;

	if (strscpy(line, value, sizeof(line)) < 0)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(vhca_triggers); i++)
		if (!strcmp(vhca_triggers[i].name, name))
			return vhca_triggers[i].act(&dev->port, line);
	return -ENOENT;
}

void vhca_triggers_add(struct vhca_dev *dev, struct dentry *dir)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(vhca_triggers); i++)
		debugfs_create_file(vhca_triggers[i].name, 0600, dir, dev,
				    vhca_triggers[i].fops);
}
