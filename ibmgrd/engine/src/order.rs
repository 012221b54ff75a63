// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of steps: registry phases, then registry rows, then members by name.

use ibmgr_api::{Key, Phase, Value, registry};

/// Returns the rank of setting `key` to `value`; steps run in ascending rank.
pub(crate) fn rank(key: &Key, value: &Value) -> (Phase, usize, Option<Box<str>>) {
    let knob = key.knob();
    let is_down = knob.phase == Phase::Up && value.number() == Some(0);
    let phase = if is_down { Phase::Down } else { knob.phase };
    let row = registry::knobs().position(|other| other.name == knob.name);
    (
        phase,
        row.unwrap_or(usize::MAX),
        key.member().map(Into::into),
    )
}
