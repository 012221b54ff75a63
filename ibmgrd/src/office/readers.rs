// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading the kernel beside the loop, so that readers wait for no change, and no change for readers.

use std::sync::{Arc, Mutex, PoisonError};

use ibmgr_api::{ErrorCode, Failure};
use ibmgrd_hw::port::KernelPort;
use tokio::sync::Semaphore;

/// Lists that are read at a time: each takes milliseconds of a CPU and memory for all interfaces.
const LISTS: usize = 2;

/// Connections to the kernel that are kept open between requests.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    ports: Arc<Mutex<Vec<KernelPort>>>,
    lists: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new() -> Self {
        Self {
            ports: Arc::default(),
            lists: Arc::new(Semaphore::new(LISTS)),
        }
    }

    /// Reads something short, here and now.
    pub(super) fn read<T>(&self, read: impl FnOnce(&mut KernelPort) -> T) -> T {
        // A reader that panicked took its port along.
        let ports = || self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let port = ports().pop();
        let mut port = port.unwrap_or_default();
        let done = read(&mut port);
        let mut ports = ports();
        if ports.len() < LISTS {
            ports.push(port);
        }
        done
    }

    /// Reads something long, such as all interfaces, in a thread of its own; a few of these at a time.
    pub(super) async fn read_long<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut KernelPort) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = Arc::clone(&self.lists).acquire_owned().await;
        let ending = |_| Failure::new(ErrorCode::Busy, "the daemon is ending; try again later");
        let turn = turn.map_err(ending)?;
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let done = readers.read(read);
            drop(turn);
            done
        });
        task.await
            .map_err(|_| Failure::new(ErrorCode::Internal, "reading the kernel broke off"))
    }
}
