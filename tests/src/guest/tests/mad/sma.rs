// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subnet management agents of the HCAs and of the switch.

use std::time::Duration;

use anyhow::ensure;

use super::{NEIGHBOUR, SWITCH, answered, get, good, port_hex, set, smp, status};
use crate::guest::task::{Fabric, Task};
use crate::guest::umad::{Class, Mad, Umad, method};
use crate::guest::{Guest, Result};

/// The tests.
pub(super) const TESTS: &[Task] = &[
    Task::new("mad.sma_nodes", "each node says what it is", nodes).fabric(Fabric::Managed, 3),
    Task::new(
        "mad.sma_refuses",
        "what an SMA can't do gets the right status and changes nothing",
        refuses,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "mad.sma_tables",
        "P_Key, GUID and VL tables keep what is set",
        tables,
    )
    .fabric(Fabric::Managed, 2),
    Task::new(
        "mad.sma_port_states",
        "a port goes from INIT to ACTIVE only step by step",
        port_states,
    )
    .fabric(Fabric::None, 2),
    Task::new(
        "mad.sma_m_key",
        "an M_Key protects a port, and its lease ends",
        m_key,
    )
    .fabric(Fabric::Managed, 2),
];

/// State of a master in SMInfo.
const SM_MASTER: u8 = 3;

/// Offsets in PortInfo (IBA 14.2.5.6).
const M_KEY: usize = 0;
const LID: usize = 16;
const M_KEY_LEASE: usize = 26;
const STATE: usize = 32;
const PROTECT_LMC: usize = 34;
const MTU_SMSL: usize = 36;
const M_KEY_VIOLATIONS: usize = 44;
const REREGISTER: usize = 51;

fn open(guest: &Guest) -> Result<Umad> {
    guest.load("ib_umad")?;
    Umad::open("vhca0", Class::SubnDirected)
}

fn nodes(guest: &mut Guest) -> Result {
    let mut umad = open(guest)?;
    let own = get(&mut umad, &[], smp::NODE_INFO, 0)?;
    let switch = get(&mut umad, SWITCH, smp::NODE_INFO, 0)?;
    let other = get(&mut umad, NEIGHBOUR, smp::NODE_INFO, 0)?;
    let kinds = [&own, &switch, &other].map(|info| (info.data()[2], info.data()[3]));
    guest.same("node types and ports", kinds, [(1, 1), (2, 3), (1, 1)])?;
    // By which port of the switch, and of the neighbour, the SMP came in.
    guest.same("the switch's local port", switch.data()[36], 1)?;
    guest.same("the neighbour's local port", other.data()[36], 1)?;
    for (info, index) in [(&own, 0), (&other, 1)] {
        let text = guest.read(format!("/sys/class/infiniband/vhca{index}/node_guid"))?;
        let guid = u64::from_str_radix(&text.replace(':', ""), 16)?;
        guest.same("node GUID", info.u64(12), guid)?;
    }
    let guids = [own.u64(12), switch.u64(12), other.u64(12)];
    ensure!(
        guids[0] != guids[1] && guids[1] != guids[2] && guids[0] != guids[2],
        "GUIDs are not unique: {guids:x?}"
    );
    let text = get(&mut umad, NEIGHBOUR, smp::NODE_DESCRIPTION, 0)?;
    guest.same("description", &text.data()[..6], b"vhca1\0".as_slice())?;
    let port = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 0)?;
    guest.same("LID", port.u16(LID), port_hex(guest, 1, "lid")?)?;
    let sm = get(&mut umad, NEIGHBOUR, smp::SM_INFO, 0)?;
    guest.same("SM state", sm.data()[20] & 0xf, SM_MASTER)?;
    let switch_info = get(&mut umad, SWITCH, smp::SWITCH_INFO, 0)?;
    guest.same("LIDs of the switch", switch_info.u16(0), 0xc000)?;
    guest.same("MLIDs of the switch", switch_info.u16(4), 1024)?;
    for port in 0..=3 {
        let info = get(&mut umad, SWITCH, smp::PORT_INFO, port)?;
        guest.same("state of the switch's port", info.data()[STATE] & 0xf, 4)?;
    }
    Ok(())
}

fn refuses(guest: &mut Guest) -> Result {
    let mut umad = open(guest)?;
    for path in [&[][..], NEIGHBOUR, SWITCH] {
        let cases = [
            (method::GET, 0x31, 0, status::BAD_ATTRIBUTE),
            (method::GET, 0xff90, 0, status::BAD_ATTRIBUTE),
            (method::SET, smp::NODE_INFO, 0, status::BAD_ATTRIBUTE),
            (method::SEND, smp::NODE_INFO, 0, status::BAD_METHOD),
            (method::GET, smp::PORT_INFO, 9, status::BAD_VALUE),
            (method::GET, smp::GUID_INFO, 1, status::BAD_VALUE),
            (method::GET, smp::PKEY_TABLE, 2, status::BAD_VALUE),
            (method::GET, smp::VL_ARBITRATION, 5 << 16, status::BAD_VALUE),
        ];
        for (method, attribute, modifier, wanted) in cases {
            let request = Mad::directed(method, attribute, modifier, path);
            let answer = answered(&mut umad, &request)?;
            let what = format!("status of {method:#x} {attribute:#x} at {path:?}");
            guest.same(&what, answer.status(), wanted)?;
        }
        let old = Mad::directed(method::GET, smp::NODE_INFO, 0, path).version(2);
        let answer = answered(&mut umad, &old)?;
        guest.same("class version 2", answer.status(), status::BAD_VERSION)?;
    }
    for (attribute, modifier) in [
        (smp::LINEAR_TABLE, 0xc000 / 64),
        (smp::MCAST_TABLE, 32),
        (smp::MCAST_TABLE, 5 << 28),
    ] {
        let request = Mad::directed(method::GET, attribute, modifier, SWITCH);
        let answer = answered(&mut umad, &request)?;
        guest.same("beyond the table", answer.status(), status::BAD_VALUE)?;
    }

    let before = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?;
    let bad: [(&str, usize, &[u8]); 5] = [
        ("multicast LID", LID, &[0xc0, 0]),
        ("LID 0", LID, &[0, 0]),
        ("state INIT", STATE, &[2]),
        ("MTU of 8192", MTU_SMSL, &[6 << 4]),
        ("physical state 4", STATE + 1, &[4 << 4]),
    ];
    for (what, at, bytes) in bad {
        let mut data = before.data()[..64].to_vec();
        // No change of state, but a LID that must not be taken over beside the error.
        data[STATE] &= 0xf0;
        data[STATE + 1] &= 0x0f;
        data[LID..LID + 2].copy_from_slice(&0x77_u16.to_be_bytes());
        data[at..at + bytes.len()].copy_from_slice(bytes);
        let answer = set(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1, &data)?;
        guest.same(what, answer.status(), status::BAD_VALUE)?;
        let after = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?;
        guest.same(what, &after.data()[..64], &before.data()[..64])?;
    }
    Ok(())
}

fn tables(guest: &mut Guest) -> Result {
    let mut umad = open(guest)?;
    let mut pkeys = get(&mut umad, NEIGHBOUR, smp::PKEY_TABLE, 1)?.data()[..64].to_vec();
    pkeys[2..4].copy_from_slice(&0x8042_u16.to_be_bytes());
    let answer = set(&mut umad, NEIGHBOUR, smp::PKEY_TABLE, 1, &pkeys)?;
    guest.same("P_Keys set", &answer.data()[..64], &pkeys[..])?;
    guest.wait_for("P_Key 33 in sysfs", Duration::from_secs(5), || {
        let now = port_hex(guest, 1, "pkeys/33")?;
        ensure!(now == 0x8042, "it is {now:#x}");
        Ok(Some(()))
    })?;

    let before = get(&mut umad, NEIGHBOUR, smp::GUID_INFO, 0)?;
    let mut guids = [0; 64];
    guids[24..32].copy_from_slice(&0x1122_3344_5566_7788_u64.to_be_bytes());
    let answer = set(&mut umad, NEIGHBOUR, smp::GUID_INFO, 0, &guids)?;
    guest.same("the port GUID", answer.u64(0), before.u64(0))?;
    guest.same("GUID 3", answer.u64(24), 0x1122_3344_5566_7788)?;
    let gid = "/sys/class/infiniband/vhca1/ports/1/gids/3";
    guest.wait_for("GID 3 in sysfs", Duration::from_secs(5), || {
        Ok(guest
            .read(gid)?
            .ends_with("1122:3344:5566:7788")
            .then_some(()))
    })?;

    for (path, modifier) in [(NEIGHBOUR, 0), (SWITCH, 0x0201)] {
        let ones = [0xff; 8];
        let answer = set(&mut umad, path, smp::SL_TO_VL, modifier, &ones)?;
        guest.same("SL to VL15", answer.status(), 0)?;
        let map = get(&mut umad, path, smp::SL_TO_VL, modifier)?;
        guest.same("SL to VL", &map.data()[..8], ones.as_slice())?;
        let answer = set(&mut umad, path, smp::SL_TO_VL, modifier, &[0x11; 8])?;
        guest.same("a VL that is not there", answer.status(), status::BAD_VALUE)?;
    }
    // The pair of ports the other way round has a table of its own.
    let map = get(&mut umad, SWITCH, smp::SL_TO_VL, 0x0102)?;
    guest.same("SL to VL", &map.data()[..8], [0; 8].as_slice())?;

    let arbitration = [0, 7, 0, 9];
    set(
        &mut umad,
        NEIGHBOUR,
        smp::VL_ARBITRATION,
        3 << 16,
        &arbitration,
    )?;
    let high = get(&mut umad, NEIGHBOUR, smp::VL_ARBITRATION, 3 << 16)?;
    guest.same("high priority", &high.data()[..4], arbitration.as_slice())?;
    let low = get(&mut umad, NEIGHBOUR, smp::VL_ARBITRATION, 1 << 16)?;
    guest.same("low priority", low.data()[1], 1)
}

/// The steps that a subnet manager takes, and those that it must not take.
fn port_states(guest: &mut Guest) -> Result {
    guest.load("vhca hcas=2 managed=0")?;
    let mut umad = open(guest)?;
    let mut data = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?.data()[..64].to_vec();
    guest.same("first state", data[STATE] & 0xf, 2)?;
    data[STATE + 1] &= 0x0f;
    data[LID..LID + 4].copy_from_slice(&[0, 5, 0, 1]);
    let mut step = |state: u8| -> Result<(u16, u8)> {
        data[STATE] = data[STATE] & 0xf0 | state;
        let answer = set(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1, &data)?;
        let now = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?;
        Ok((answer.status(), now.data()[STATE] & 0xf))
    };
    guest.same("INIT to ACTIVE", step(4)?, (status::BAD_VALUE, 2))?;
    guest.same("INIT to ARMED", step(3)?, (0, 3))?;
    guest.same("ARMED to ACTIVE", step(4)?, (0, 4))?;
    guest.same("ACTIVE to ARMED", step(3)?, (status::BAD_VALUE, 4))?;
    guest.same("no change", step(0)?, (0, 4))?;
    guest.same("LID", port_hex(guest, 1, "lid")?, 5)?;
    guest.same("SM LID", port_hex(guest, 1, "sm_lid")?, 1)?;
    // DOWN trains the link again, at both ends.
    guest.same("ACTIVE to DOWN", step(1)?, (0, 2))?;
    let info = get(&mut umad, SWITCH, smp::SWITCH_INFO, 0)?;
    guest.same("PortStateChange", info.data()[11] & 4, 4)?;

    data[REREGISTER] |= 0x80;
    data[STATE] &= 0xf0;
    let answer = set(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1, &data)?;
    guest.same("ClientReregister", answer.data()[REREGISTER] & 0x80, 0x80)?;
    let later = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?;
    guest.same("ClientReregister later", later.data()[REREGISTER] & 0x80, 0)?;

    let mut info = info.data()[..20].to_vec();
    info[11] &= !4;
    let kept = set(&mut umad, SWITCH, smp::SWITCH_INFO, 0, &info)?;
    guest.same("PortStateChange, 0 written", kept.data()[11] & 4, 4)?;
    info[11] |= 4;
    let cleared = set(&mut umad, SWITCH, smp::SWITCH_INFO, 0, &info)?;
    guest.same("PortStateChange, 1 written", cleared.data()[11] & 4, 0)
}

fn m_key(guest: &mut Guest) -> Result {
    const KEY: u64 = 0x0123_4567_89ab_cdef;
    let mut umad = open(guest)?;
    let mut data = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?.data()[..64].to_vec();
    data[STATE] &= 0xf0;
    data[STATE + 1] &= 0x0f;
    data[M_KEY..M_KEY + 8].copy_from_slice(&KEY.to_be_bytes());
    data[PROTECT_LMC] |= 1 << 6;
    data[M_KEY_LEASE..M_KEY_LEASE + 2].copy_from_slice(&1_u16.to_be_bytes());
    let answer = set(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1, &data)?;
    guest.same("status of the M_Key", answer.status(), 0)?;

    let blind = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?;
    guest.same("M_Key that is shown", blind.u64(M_KEY), 0)?;
    let request = Mad::directed(method::GET, smp::PORT_INFO, 1, NEIGHBOUR).m_key(KEY);
    let seen = good(&mut umad, &request)?;
    guest.same("M_Key for who has it", seen.u64(M_KEY), KEY)?;

    let mut thief = Mad::directed(method::SET, smp::PORT_INFO, 1, NEIGHBOUR);
    thief.set(0, &data);
    let answer = umad.route(&thief, super::SILENCE)?;
    ensure!(answer.is_none(), "a Set without the M_Key was answered");
    let seen = good(&mut umad, &request)?;
    guest.same("M_Key violations", seen.u16(M_KEY_VIOLATIONS), 1)?;
    // That Get had the key, which stops the lease; the next thief starts it again.
    ensure!(umad.route(&thief, super::SILENCE)?.is_none());
    guest.wait_for("end of the lease", Duration::from_secs(5), || {
        let info = get(&mut umad, NEIGHBOUR, smp::PORT_INFO, 1)?;
        Ok((info.u64(M_KEY) == KEY).then_some(()))
    })
}
