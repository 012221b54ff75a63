// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The SA of the managed mode: statuses, memberships, faults.

use anyhow::{Context, ensure};

use super::{ANSWER, SILENCE, SWITCH, get, port_hex, smp, status};
use crate::guest::task::{Fabric, Task};
use crate::guest::umad::{Class, Mad, Umad, method};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new(
        "mad.sa_paths",
        "paths are found, or refused with the right status",
        paths,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "mad.sa_joins_refused",
        "what is no valid join gets the right status and makes no group",
        joins_refused,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "mad.sa_membership",
        "groups live as long as a full member, and packets follow the memberships",
        membership,
    )
    .fabric(Fabric::Managed, 3),
    Task::new(
        "mad.sa_faults",
        "the SA falls silent and rejects on demand",
        faults,
    )
    .fabric(Fabric::Managed, 2),
];

/// Attributes (IBA 15.2.5).
const CLASS_PORT_INFO: u16 = 0x01;
const SERVICE_RECORD: u16 = 0x31;
const PATH_RECORD: u16 = 0x35;
const MC_MEMBER_RECORD: u16 = 0x38;

/// Statuses of the SA (IBA 15.2.4).
const NO_RESOURCES: u16 = 0x0100;
const REQ_INVALID: u16 = 0x0200;
const NO_RECORDS: u16 = 0x0300;
const TOO_MANY_RECORDS: u16 = 0x0400;
const INVALID_GID: u16 = 0x0500;
const INSUFFICIENT_COMPONENTS: u16 = 0x0600;

/// JoinState bits.
const FULL: u8 = 1;
const NON: u8 = 2;
const SEND_ONLY_FULL: u8 = 8;

/// Components of MCMemberRecord: what a join needs, and what a new group needs besides.
const JOIN: u64 = 1 | 1 << 1 | 1 << 16;
const CREATE: u64 = JOIN | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13;
const MC_QKEY: u64 = 1 << 2;
const MC_PKEY: u64 = 1 << 7;

/// Components of PathRecord.
const DGID: u64 = 1 << 2;
const SGID: u64 = 1 << 3;
const PKEY: u64 = 1 << 13;

/// An MGID that nobody else has.
const MGID: [u8; 16] = [
    0xff, 0x15, 0xa0, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34,
];

type Gid = [u8; 16];

/// What is tried, method, attribute, component mask, record, and the status that it gets.
type Case<'a> = (&'a str, u8, u16, u64, &'a [u8], u16);

/// The SA as one HCA sees it.
struct Sa {
    umad: Umad,
    lid: u16,
    gid: Gid,
}

impl Sa {
    fn open(guest: &Guest, hca: u32) -> Result<Self> {
        let path = format!("/sys/class/infiniband/vhca{hca}/ports/1/gids/0");
        let gid = guest.read(path)?.parse::<std::net::Ipv6Addr>()?.octets();
        Ok(Self {
            umad: Umad::open(&format!("vhca{hca}"), Class::SubnAdm)?,
            lid: port_hex(guest, hca, "sm_lid")?,
            gid,
        })
    }

    fn ask(&mut self, request: &Mad) -> Result<Mad> {
        self.umad
            .ask(request, self.lid, ANSWER)?
            .context("the SA doesn't answer")
    }

    fn status(&mut self, method: u8, attribute: u16, mask: u64, record: &[u8]) -> Result<u16> {
        Ok(self
            .ask(&Mad::sa(method, attribute, mask, record))?
            .status())
    }

    /// Joins or leaves for itself; returns the status and the JoinState that is left.
    fn member(&mut self, method: u8, mask: u64, join: u8) -> Result<(u16, u8)> {
        let record = Member::new(self.gid, join).bytes();
        let answer = self.ask(&Mad::sa(method, MC_MEMBER_RECORD, mask, &record))?;
        Ok((answer.status(), answer.data()[48] & 0xf))
    }

    /// Returns the MLID of [`MGID`], or the status of the query.
    fn mlid(&mut self) -> Result<std::result::Result<u16, u16>> {
        let answer = self.ask(&Mad::sa(method::GET, MC_MEMBER_RECORD, 1, &MGID))?;
        Ok(match answer.status() {
            0 => Ok(answer.u16(36)),
            status => Err(status),
        })
    }
}

/// A MCMemberRecord to be.
#[derive(Clone, Copy)]
struct Member {
    mgid: Gid,
    port_gid: Gid,
    pkey: u16,
    join: u8,
}

impl Member {
    fn new(port_gid: Gid, join: u8) -> Self {
        Self {
            mgid: MGID,
            port_gid,
            pkey: 0xffff,
            join,
        }
    }

    fn bytes(self) -> [u8; 52] {
        let mut record = [0; 52];
        record[..16].copy_from_slice(&self.mgid);
        record[16..32].copy_from_slice(&self.port_gid);
        record[32..36].copy_from_slice(&0x0b1b_u32.to_be_bytes());
        record[40..42].copy_from_slice(&self.pkey.to_be_bytes());
        record[48] = self.join;
        record
    }
}

fn path_record(dgid: &Gid, sgid: &Gid, pkey: u16) -> [u8; 64] {
    let mut record = [0; 64];
    record[8..24].copy_from_slice(dgid);
    record[24..40].copy_from_slice(sgid);
    record[50..52].copy_from_slice(&pkey.to_be_bytes());
    record
}

fn paths(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let mut sa = Sa::open(guest, 0)?;
    let other = Sa::open(guest, 1)?.gid;
    let own = sa.gid;
    let good = path_record(&other, &own, 0x8001);
    let path = sa.ask(&Mad::sa(
        method::GET,
        PATH_RECORD,
        DGID | SGID | PKEY,
        &good,
    ))?;
    guest.same("status of a path", path.status(), 0)?;
    let lids = (path.u16(40), path.u16(42));
    let wanted = (port_hex(guest, 1, "lid")?, port_hex(guest, 0, "lid")?);
    guest.same("LIDs of the path", lids, wanted)?;
    guest.same("P_Key of the path", path.u16(50), 0x8001)?;
    guest.same("hop limit", path.data()[47], 0)?;

    let stranger = path_record(&[0xfe; 16], &own, 0);
    let foreign = path_record(&other, &own, 0x8123);
    let cases: [Case<'_>; 7] = [
        (
            "no source",
            method::GET,
            PATH_RECORD,
            DGID,
            &good,
            INSUFFICIENT_COMPONENTS,
        ),
        (
            "unknown GID",
            method::GET,
            PATH_RECORD,
            DGID | SGID,
            &stranger,
            INVALID_GID,
        ),
        (
            "P_Key of nobody",
            method::GET,
            PATH_RECORD,
            DGID | SGID | PKEY,
            &foreign,
            NO_RECORDS,
        ),
        (
            "Set of a path",
            method::SET,
            PATH_RECORD,
            DGID | SGID,
            &good,
            status::BAD_ATTRIBUTE,
        ),
        (
            "services",
            method::GET,
            SERVICE_RECORD,
            0,
            &[],
            status::BAD_ATTRIBUTE,
        ),
        (
            "method",
            method::SEND,
            PATH_RECORD,
            0,
            &[],
            status::BAD_METHOD,
        ),
        ("ClassPortInfo", method::GET, CLASS_PORT_INFO, 0, &[], 0),
    ];
    for (what, method, attribute, mask, record, wanted) in cases {
        guest.same(what, sa.status(method, attribute, mask, record)?, wanted)?;
    }
    let old = Mad::sa(method::GET, CLASS_PORT_INFO, 0, &[]).version(1);
    guest.same("class version", sa.ask(&old)?.status(), status::BAD_VERSION)?;

    guest.vhca(1).fault("port", "down")?;
    let lost = sa.status(method::GET, PATH_RECORD, DGID | SGID | PKEY, &good)?;
    guest.same("a port without a link", lost, INVALID_GID)
}

fn joins_refused(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let mut sa = Sa::open(guest, 0)?;
    let good = Member::new(sa.gid, FULL);
    let no_mgid = Member {
        mgid: [0xfe; 16],
        ..good
    };
    let flags = Member {
        mgid: {
            let mut mgid = MGID;
            mgid[1] = 0x45;
            mgid
        },
        ..good
    };
    let stranger = Member {
        port_gid: [0xfe; 16],
        ..good
    };
    let foreign = Member {
        pkey: 0x8123,
        ..good
    };
    let cases = [
        (
            "no port GID",
            CREATE & !(1 << 1),
            good,
            INSUFFICIENT_COMPONENTS,
        ),
        (
            "no JoinState",
            CREATE & !(1 << 16),
            good,
            INSUFFICIENT_COMPONENTS,
        ),
        (
            "a group that is not there",
            JOIN,
            good,
            INSUFFICIENT_COMPONENTS,
        ),
        ("no Q_Key", CREATE & !MC_QKEY, good, INSUFFICIENT_COMPONENTS),
        (
            "JoinState 0",
            CREATE,
            Member { join: 0, ..good },
            REQ_INVALID,
        ),
        (
            "a non-member first",
            CREATE,
            Member { join: NON, ..good },
            REQ_INVALID,
        ),
        ("no multicast GID", CREATE, no_mgid, REQ_INVALID),
        ("reserved flags", CREATE, flags, REQ_INVALID),
        ("a port that is not there", CREATE, stranger, INVALID_GID),
        (
            "a P_Key that the port has not",
            CREATE,
            foreign,
            REQ_INVALID,
        ),
    ];
    for (what, mask, member, wanted) in cases {
        let found = sa.status(method::SET, MC_MEMBER_RECORD, mask, &member.bytes())?;
        guest.same(what, found, wanted)?;
        guest.same("the group after it", sa.mlid()?, Err(NO_RECORDS))?;
    }
    let many = sa.status(method::GET, MC_MEMBER_RECORD, 0, &[])?;
    guest.same("Get of all groups", many, TOO_MANY_RECORDS)?;

    // A group that is there: what is asked for must be what it has.
    guest.same("join", sa.member(method::SET, CREATE, FULL)?, (0, FULL))?;
    let mut other_key = good.bytes();
    other_key[35] ^= 1;
    let found = sa.status(method::SET, MC_MEMBER_RECORD, JOIN | MC_QKEY, &other_key)?;
    guest.same("another Q_Key", found, REQ_INVALID)?;
    let other_pkey = Member {
        pkey: 0x8001,
        ..good
    }
    .bytes();
    let found = sa.status(method::SET, MC_MEMBER_RECORD, JOIN | MC_PKEY, &other_pkey)?;
    guest.same("another P_Key", found, REQ_INVALID)
}

/// Returns which ports of the switch an MLID goes to, as bits.
fn mcast_ports(umad: &mut Umad, mlid: u16) -> Result<u16> {
    let index = usize::from(mlid - 0xc000);
    let block = u32::try_from(index / 32)?;
    Ok(get(umad, SWITCH, smp::MCAST_TABLE, block)?.u16(index % 32 * 2))
}

fn membership(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let mut switch = Umad::open("vhca0", Class::SubnDirected)?;
    let (mut a, mut b, mut c) = (
        Sa::open(guest, 0)?,
        Sa::open(guest, 1)?,
        Sa::open(guest, 2)?,
    );
    guest.same("creator", a.member(method::SET, CREATE, FULL)?, (0, FULL))?;
    let mlid = a
        .mlid()?
        .map_err(|status| anyhow::anyhow!("status {status:#06x}"))?;
    let mut ports = || mcast_ports(&mut switch, mlid);
    guest.same("ports with one member", ports()?, 1 << 1)?;

    let joined = b.member(method::SET, JOIN, SEND_ONLY_FULL)?;
    guest.same("send-only member", joined, (0, SEND_ONLY_FULL))?;
    guest.same("a send-only member gets nothing", ports()?, 1 << 1)?;
    let joined = b.member(method::SET, JOIN, FULL)?;
    guest.same("bits add up", joined, (0, SEND_ONLY_FULL | FULL))?;
    guest.same("ports with two members", ports()?, 1 << 1 | 1 << 2)?;
    guest.same("non-member", c.member(method::SET, JOIN, NON)?, (0, NON))?;
    guest.same("a non-member listens", ports()?, 1 << 1 | 1 << 2 | 1 << 3)?;

    let refused = b.member(method::DELETE, JOIN, NON)?.0;
    guest.same("leaving what was not joined", refused, REQ_INVALID)?;
    let foreign = Member::new(b.gid, FULL).bytes();
    let refused = c.status(method::DELETE, MC_MEMBER_RECORD, JOIN, &foreign)?;
    guest.same("leaving for another port", refused, REQ_INVALID)?;
    let left = b.member(method::DELETE, JOIN, FULL)?;
    guest.same("what is left", left, (0, SEND_ONLY_FULL))?;
    guest.same("ports after it left", ports()?, 1 << 1 | 1 << 3)?;

    guest.same("creator leaves", a.member(method::DELETE, JOIN, FULL)?.0, 0)?;
    guest.same("a send-only full member keeps it", c.mlid()?, Ok(mlid))?;
    let left = b.member(method::DELETE, JOIN, SEND_ONLY_FULL)?;
    guest.same("the last full member leaves", left, (0, 0))?;
    guest.same("the group", c.mlid()?, Err(NO_RECORDS))?;
    guest.same("its ports, the non-member's too", ports()?, 0)?;

    guest.same(
        "made again",
        b.member(method::SET, CREATE, FULL)?,
        (0, FULL),
    )?;
    guest.same("its MLID is used again", c.mlid()?, Ok(mlid))?;
    guest.vhca(1).fault("port", "down")?;
    guest.same("after the member's link went", c.mlid()?, Err(NO_RECORDS))?;
    guest.same("its ports", ports()?, 0)
}

fn faults(guest: &mut Guest) -> Result {
    guest.load("ib_umad")?;
    let hca = guest.vhca(0);
    let (mut sa, mut other) = (Sa::open(guest, 0)?, Sa::open(guest, 1)?);
    let before = hca.stats()?;
    let request = Mad::sa(method::GET, CLASS_PORT_INFO, 0, &[]);
    hca.fault("sa_next", "1")?;
    ensure!(
        sa.umad.ask(&request, sa.lid, SILENCE)?.is_none(),
        "the SA answered in spite of the fault"
    );
    guest.same("the next answer", sa.ask(&request)?.status(), 0)?;
    hca.fault("sa_status", &NO_RESOURCES.to_string())?;
    hca.fault("sa_next", "1")?;
    guest.same("another HCA's SA", other.ask(&request)?.status(), 0)?;
    guest.same("rejected", sa.ask(&request)?.status(), NO_RESOURCES)?;
    guest.same("the next answer", sa.ask(&request)?.status(), 0)?;
    let counted = hca.stats()?.since(&before).get("fault_sa")?;
    guest.same("faults that were counted", counted, 2)
}
