// SPDX-License-Identifier: GPL-2.0-only
//! Stands in for Rust's compiler_builtins.
//!
//! rustc wants a crate of this name. The real one brings floating point code that objtool refuses, and
//! memory functions that the kernel has. Should an intrinsic be needed after all, modpost names it as
//! an undefined symbol.
#![feature(compiler_builtins)]
#![allow(internal_features)]
#![compiler_builtins]
#![no_builtins]
#![no_std]
