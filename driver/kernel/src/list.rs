// SPDX-License-Identifier: GPL-2.0-only
//! A list that grows, without bounds of its own.

use crate::alloc::{Context, KBox};
use crate::error::Result;

struct Node<T> {
    value: T,
    next: Option<KBox<Self>>,
}

/// A singly linked list.
pub struct List<T> {
    first: Option<KBox<Node<T>>>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { first: None }
    }
}

impl<T> List<T> {
    /// Adds a value in front.
    pub fn push(&mut self, value: T, context: Context) -> Result<&mut T> {
        let next = self.first.take();
        match KBox::new(Node { value, next: None }, context) {
            Ok(mut node) => {
                node.next = next;
                Ok(&mut self.first.insert(node).value)
            }
            Err(errno) => {
                self.first = next;
                Err(errno)
            }
        }
    }

    /// Takes the first value.
    pub fn pop(&mut self) -> Option<()> {
        let mut node = self.first.take()?;
        self.first = node.next.take();
        Some(())
    }

    /// Moves the first value out.
    pub fn take(&mut self) -> Option<T> {
        let mut node = self.first.take()?;
        self.first = node.next.take();
        Some(node.into_inner().value)
    }

    /// Says whether there is no value.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the values.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self.first.as_deref())
    }

    /// Returns the values, to change.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        IterMut(self.first.as_deref_mut())
    }

    /// Drops the values that `keep` refuses.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let mut at = &mut self.first;
        while let Some(node) = at {
            if keep(&mut node.value) {
                // Borrowed anew, or the borrow of the refused case would last too long.
                match at {
                    Some(node) => at = &mut node.next,
                    None => return,
                }
            } else {
                let next = node.next.take();
                *at = next;
            }
        }
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        // One by one: dropping the first would recurse.
        while self.pop().is_some() {}
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The values of a list.
pub struct Iter<'a, T>(Option<&'a Node<T>>);

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        let node = self.0?;
        self.0 = node.next.as_deref();
        Some(&node.value)
    }
}

/// The values of a list, to change.
pub struct IterMut<'a, T>(Option<&'a mut Node<T>>);

impl<'a, T> Iterator for IterMut<'a, T> {
    type Item = &'a mut T;

    fn next(&mut self) -> Option<&'a mut T> {
        let node = self.0.take()?;
        self.0 = node.next.as_deref_mut();
        Some(&mut node.value)
    }
}
