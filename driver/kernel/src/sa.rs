// SPDX-License-Identifier: GPL-2.0-only
//! Questions to the subnet administrator: path records and multicast membership.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use bindings::{ib_sa_client, ib_sa_mcmember_rec, ib_sa_multicast, sa_path_rec};

use crate::alloc::{Arc, Context, KBox};
use crate::error::{Errno, Result};
use crate::lock::SpinLock;
use crate::netdev::{Device, DeviceRef, Driver};
use crate::verbs::{Ah, Hca, Pd};

static CLIENT: AtomicPtr<ib_sa_client> = AtomicPtr::new(ptr::null_mut());

/// The registration with ib_sa; dropping it waits for all queries.
pub struct Client(KBox<UnsafeCell<ib_sa_client>>);

impl Client {
    /// Registers, once per module.
    pub fn start() -> Result<Self> {
        let client = KBox::new(UnsafeCell::new(ib_sa_client::default()), Context::Process)?;
        // SAFETY: the client is boxed and lives until it is unregistered.
        unsafe { bindings::ib_sa_register_client(client.get()) };
        CLIENT.store(client.get(), Ordering::Release);
        Ok(Self(client))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        CLIENT.store(ptr::null_mut(), Ordering::Release);
        // SAFETY: registered by `start`.
        unsafe { bindings::ib_sa_unregister_client(self.0.get()) };
    }
}

/// The bit of a record's n-th component in `ib_sa_comp_mask`, which is big-endian (include/rdma/ib_sa.h).
const fn component(n: u32) -> u64 {
    (1_u64 << n).to_be()
}

/// What a path is asked for.
#[derive(Clone, Copy, Debug)]
pub struct PathRequest {
    /// Port of the HCA.
    pub port: u32,
    /// Our GID.
    pub sgid: [u8; 16],
    /// The other's.
    pub dgid: [u8; 16],
    /// Partition.
    pub pkey: u16,
    /// Traffic class.
    pub traffic_class: u8,
}

/// A path.
#[derive(Clone)]
pub struct Path(sa_path_rec);

impl Path {
    pub(crate) fn as_mut_ptr(&mut self) -> *mut sa_path_rec {
        &raw mut self.0
    }

    /// Makes an address handle. Process context.
    pub fn handle(&mut self, pd: &Arc<Pd>, port: u32) -> Result<Arc<Ah>> {
        // SAFETY: PD and record are valid.
        Ah::from_raw(
            unsafe { bindings::ipoib_h_path_ah(pd.as_ptr(), port, &raw mut self.0) },
            pd,
        )
    }
}

struct Query<D> {
    dev: DeviceRef<D>,
    dgid: [u8; 16],
    done: fn(&Device<D>, [u8; 16], Result<Path>),
}

/// Asks for a path. `done` is called once, in process context, unless this fails.
pub fn query_path<D: Driver>(
    dev: &Device<D>,
    hca: &Hca,
    request: &PathRequest,
    timeout_ms: u32,
    done: fn(&Device<D>, [u8; 16], Result<Path>),
) -> Result {
    let client = CLIENT.load(Ordering::Acquire);
    if client.is_null() {
        return Err(Errno::ENODEV);
    }
    let query = Query {
        dev: dev.hold(),
        dgid: request.dgid,
        done,
    };
    let context = KBox::new(query, Context::Process)?.into_raw();
    let mut record = sa_path_rec {
        dgid: bindings::ib_gid { raw: request.dgid },
        sgid: bindings::ib_gid { raw: request.sgid },
        pkey: request.pkey.to_be(),
        numb_path: 1,
        traffic_class: request.traffic_class,
        ..Default::default()
    };
    // DGID, SGID, traffic class, number of paths, P_Key.
    let mask = component(2) | component(3) | component(10) | component(12) | component(13);
    let mut handle = ptr::null_mut();
    // SAFETY: client and HCA are valid; the record is copied; the context is a box that `path_done` takes back.
    let ret = unsafe {
        bindings::ipoib_h_path_rec(&raw mut record, hca.as_ptr(), request.port);
        bindings::ib_sa_path_rec_get(
            client,
            hca.as_ptr(),
            request.port,
            &raw mut record,
            mask,
            timeout_ms.into(),
            bindings::ipoib_h_gfp_kernel(),
            Some(path_done::<D>),
            context.cast::<c_void>(),
            &raw mut handle,
        )
    };
    Errno::check(ret).inspect_err(|_| {
        // SAFETY: the query did not start, its callback is not called.
        drop(unsafe { KBox::from_raw(context) });
    })
}

unsafe extern "C" fn path_done<D: Driver>(
    status: c_int,
    path: *mut sa_path_rec,
    _paths: c_uint,
    context: *mut c_void,
) {
    // SAFETY: the context is the box of `query_path`, and this is called once.
    let query = unsafe { KBox::from_raw(context.cast::<Query<D>>()) };
    let result = match (Errno::check(status), path.is_null()) {
        (Err(errno), _) => Err(errno),
        (Ok(()), true) => Err(Errno::EIO),
        // SAFETY: on success the record is valid.
        (Ok(()), false) => Ok(Path(unsafe { *path })),
    };
    (query.done)(&query.dev, query.dgid, result);
}

/// A group's record, as the SA gave it.
#[derive(Clone, Copy)]
pub struct Group(ib_sa_mcmember_rec);

impl Group {
    /// Returns the Q_Key.
    #[must_use]
    pub fn qkey(&self) -> u32 {
        u32::from_be(self.0.qkey)
    }

    /// Returns the multicast LID.
    #[must_use]
    pub fn mlid(&self) -> u16 {
        u16::from_be(self.0.mlid)
    }

    /// Returns the MTU in the SA's encoding.
    #[must_use]
    pub fn mtu(&self) -> u8 {
        self.0.mtu
    }

    /// Returns the traffic class.
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        self.0.traffic_class
    }

    /// Makes an address handle. Process context.
    pub fn handle(&mut self, pd: &Arc<Pd>, port: u32) -> Result<Arc<Ah>> {
        // SAFETY: PD and record are valid.
        Ah::from_raw(
            unsafe { bindings::ipoib_h_mcast_ah(pd.as_ptr(), port, &raw mut self.0) },
            pd,
        )
    }
}

/// How a group is joined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Membership {
    /// Sends and receives.
    Full,
    /// Sends only.
    SendOnly,
}

/// What is joined.
pub struct JoinRequest<'a> {
    /// Port of the HCA.
    pub port: u32,
    /// The group.
    pub mgid: [u8; 16],
    /// Our GID.
    pub port_gid: [u8; 16],
    /// Partition.
    pub pkey: u16,
    /// Full or send-only.
    pub membership: Membership,
    /// The broadcast group, whose parameters each other group of the link shares (RFC 4391, 4).
    pub like: Option<&'a Group>,
}

struct JoinContext<D> {
    dev: DeviceRef<D>,
    result: SpinLock<Option<Result<Group>>>,
    changed: fn(&Device<D>),
}

/// A membership, or the wish for one; dropping it leaves the group. Drop it in process context, and not from `changed`.
pub struct Join<D: Driver> {
    raw: *mut ib_sa_multicast,
    context: KBox<JoinContext<D>>,
}

// SAFETY: ib_sa's functions can be called from any thread.
unsafe impl<D: Driver> Send for Join<D> {}
// SAFETY: as above.
unsafe impl<D: Driver> Sync for Join<D> {}

impl<D: Driver> Join<D> {
    /// Asks to join. `changed` is called, in process context, when there is a result.
    pub fn start(
        dev: &Device<D>,
        hca: &Hca,
        request: &JoinRequest<'_>,
        changed: fn(&Device<D>),
    ) -> Result<Self> {
        let client = CLIENT.load(Ordering::Acquire);
        if client.is_null() {
            return Err(Errno::ENODEV);
        }
        let context = JoinContext {
            dev: dev.hold(),
            result: SpinLock::new(None)?,
            changed,
        };
        let context = KBox::new(context, Context::Process)?;
        let mut record = ib_sa_mcmember_rec {
            mgid: bindings::ib_gid { raw: request.mgid },
            port_gid: bindings::ib_gid {
                raw: request.port_gid,
            },
            pkey: request.pkey.to_be(),
            join_state: match request.membership {
                Membership::Full => 1,
                Membership::SendOnly => 8,
            },
            ..Default::default()
        };
        // MGID, port GID, P_Key, join state.
        let mut mask = component(0) | component(1) | component(7) | component(16);
        if let Some(Group(like)) = request.like {
            record.qkey = like.qkey;
            record.mtu_selector = bindings::IB_SA_EQ as u8;
            record.mtu = like.mtu;
            record.traffic_class = like.traffic_class;
            record.rate_selector = bindings::IB_SA_EQ as u8;
            record.rate = like.rate;
            record.sl = like.sl;
            record.flow_label = like.flow_label;
            record.hop_limit = like.hop_limit;
            // Q_Key, MTU and its selector, traffic class, rate and its selector, SL, flow label, hop limit.
            for n in [2, 4, 5, 6, 8, 9, 12, 13, 14] {
                mask |= component(n);
            }
        }
        // SAFETY: client and HCA are valid; the record is copied; the context lives until the group is left.
        let raw = Errno::check_ptr(unsafe {
            bindings::ib_sa_join_multicast(
                client,
                hca.as_ptr(),
                request.port,
                &raw mut record,
                mask,
                bindings::ipoib_h_gfp_kernel(),
                Some(join_done::<D>),
                context.as_ptr().cast::<c_void>(),
            )
        })?;
        Ok(Self { raw, context })
    }

    /// Takes the result, once it is there.
    pub fn result(&self) -> Option<Result<Group>> {
        self.context.result.lock().take()
    }
}

impl<D: Driver> Drop for Join<D> {
    fn drop(&mut self) {
        // SAFETY: the join is owned: `join_done` never asks ib_sa to free it. This waits for callbacks under way.
        unsafe { bindings::ib_sa_free_multicast(self.raw) };
    }
}

unsafe extern "C" fn join_done<D: Driver>(status: c_int, multicast: *mut ib_sa_multicast) -> c_int {
    // SAFETY: the context lives until the group is left, which waits for this.
    unsafe {
        let context = &*(*multicast).context.cast::<JoinContext<D>>();
        let result = Errno::check(status).map(|()| Group((*multicast).rec));
        *context.result.lock() = Some(result);
        (context.changed)(&context.dev);
    }
    // Also after a failure the join stays ours.
    0
}

/// Says whether somebody on this host is a member of a group.
#[must_use]
pub fn is_known(hca: &Hca, port: u32, mgid: &[u8; 16]) -> bool {
    let mut gid = bindings::ib_gid { raw: *mgid };
    let mut record = ib_sa_mcmember_rec::default();
    // SAFETY: the HCA is valid.
    unsafe {
        bindings::ib_sa_get_mcmember_rec(hca.as_ptr(), port, &raw mut gid, &raw mut record) == 0
    }
}
