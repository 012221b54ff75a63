/* SPDX-License-Identifier: GPL-2.0-only */
/* What Rust calls and bindgen cannot reach by itself: macros and inline functions of the kernel. */
#ifndef IPOIB_HELPERS_H
#define IPOIB_HELPERS_H

#include <linux/types.h>

void __noreturn ipoib_h_bug(void);

#endif
