// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Telling what happens: to the log, and to whoever follows.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ibmgr_api::status::Record;
use ibmgrd_hw::watch::Event;
use tokio::sync::broadcast;

/// Records that a slow reader may lag behind before it loses some.
const RECORDS: usize = 1024;

/// Where records and notifications go to. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    records: broadcast::Sender<Arc<Record>>,
    events: broadcast::Sender<Event>,
}

impl Told {
    pub(crate) fn new() -> Self {
        Self {
            records: broadcast::Sender::new(RECORDS),
            events: broadcast::Sender::new(RECORDS),
        }
    }

    /// Logs a record, and hands it to whoever follows.
    pub(crate) fn record(&self, mut record: Record) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        record.time_ms = u64::try_from(millis).unwrap_or(u64::MAX);
        crate::log::record(&record);
        if self.records.receiver_count() > 0 {
            // They may have gone away meanwhile.
            let _ = self.records.send(Arc::new(record));
        }
    }

    /// Hands a notification of the kernel to whoever follows these.
    pub(crate) fn event(&self, event: &Event) {
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(event.clone());
        }
    }

    pub(super) fn records(&self) -> broadcast::Receiver<Arc<Record>> {
        self.records.subscribe()
    }

    pub(super) fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }
}
