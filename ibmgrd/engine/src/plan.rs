// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Observed and wanted values to ordered steps.

use std::collections::{BTreeMap, BTreeSet};

use ibmgr_api::{
    Assignment, Carrier, Channel, Key, Link, Outcome, Plan, PlanError, Reading, Report, ReportLine,
    Skip, Step, Support, Value,
};

use crate::order::rank;
use crate::parts::spread;

/// Returns the knobs that a plan for `wants` has to know: the wanted ones, and those that the kernel
/// changes along with them.
///
/// # Errors
///
/// A knob is given twice, or is not carried by the channel `via`.
pub fn keys_to_observe(wants: &[Assignment], via: Option<Channel>) -> Result<Vec<Key>, PlanError> {
    let mut keys = BTreeSet::new();
    for (at, want) in wants.iter().enumerate() {
        if let Some(first) = wants[..at].iter().find(|first| first.key == want.key) {
            let domain = &want.key.knob().domain;
            return Err(PlanError::Twice {
                key: want.key.clone(),
                first: first.value.show(domain),
                second: want.value.show(domain),
            });
        }
        if let Some(channel) = via {
            carrier_on(&want.key, channel)?;
        }
        keys.insert(want.key.clone());
        keys.extend(disturbed(&want.key));
    }
    Ok(keys.into_iter().collect())
}

/// Returns the knobs that the kernel changes along with `key`.
pub(crate) fn disturbed(key: &Key) -> impl Iterator<Item = Key> {
    key.knob()
        .disturbs
        .iter()
        .filter_map(|name| Key::named(name).ok())
}

/// Returns the field that carries `key` on `channel`.
///
/// # Errors
///
/// There is none.
pub fn carrier_on(key: &Key, channel: Channel) -> Result<Carrier, PlanError> {
    let carriers = key.knob().carriers;
    let carrier = carriers.iter().find(|carrier| carrier.channel() == channel);
    carrier.copied().ok_or_else(|| {
        let names: Vec<_> = carriers
            .iter()
            .map(|carrier| carrier.channel().name())
            .collect();
        PlanError::NoSuchChannel {
            key: key.clone(),
            channel,
            carried: names.join(", "),
        }
    })
}

/// Returns the steps that bring `link` to `wants`. Nothing is written.
///
/// `link` must hold a reading for each key of [`keys_to_observe`]; a reading's `via` decides the carrier.
///
/// # Errors
///
/// The first want, in the order of the steps, that the device cannot take.
pub fn plan(link: &Link, wants: &[Assignment]) -> Result<Plan, PlanError> {
    let spread = spread_all(link, wants);
    let mut sorted: Vec<&Assignment> = spread.iter().collect();
    sorted.sort_by_cached_key(|want| rank(&want.key, &want.value));

    let mut steps: Vec<Step> = Vec::new();
    let mut skips = Vec::new();
    let mut unsettled = BTreeSet::new();
    for want in sorted {
        let key = &want.key;
        let reading = link
            .readings
            .get(key)
            .ok_or_else(|| PlanError::NotObserved {
                link: link.name.clone(),
                key: key.clone(),
            })?;
        let no_effect = admit(link, want, reading)?;
        let wanted = on_device(link, want, reading)?;
        if reading.value.as_ref() == Some(wanted) && !unsettled.contains(key) {
            skips.push(Skip {
                key: key.clone(),
                value: wanted.clone(),
                no_effect,
            });
            continue;
        }
        let channel = reading.via.ok_or_else(|| PlanError::NotObserved {
            link: link.name.clone(),
            key: key.clone(),
        })?;
        unsettled.extend(disturbed(key));
        steps.push(Step {
            key: key.clone(),
            from: reading.value.clone(),
            to: wanted.clone(),
            carrier: carrier_on(key, channel)?,
            no_effect,
        });
    }
    Ok(Plan {
        link: link.name.clone(),
        index: link.index,
        steps,
        skips,
    })
}

/// Returns the report of a request that [`plan`] refused: nothing was written, and every knob that the
/// device cannot take says why.
///
/// `link` must be what the plan was to be made from.
#[must_use]
pub fn rejected(link: &Link, wants: &[Assignment]) -> Report {
    let spread = spread_all(link, wants);
    let mut sorted: Vec<&Assignment> = spread.iter().collect();
    sorted.sort_by_cached_key(|want| rank(&want.key, &want.value));
    let line = |want: &Assignment| {
        let reading = link.readings.get(&want.key);
        let now = reading.and_then(|reading| reading.value.clone());
        let outcome = match reading.map(|reading| admit(link, want, reading)) {
            Some(Err(error)) => Outcome::Refused {
                why: error.why(),
                code: error.code(),
            },
            Some(Ok(_)) if is_so(link, want) => Outcome::AlreadySo,
            Some(Ok(_)) | None => Outcome::NotTried,
        };
        ReportLine {
            key: want.key.clone(),
            asked: Some(want.value.clone()),
            before: now.clone(),
            now,
            outcome,
        }
    };
    Report {
        link: link.name.clone(),
        lines: sorted.into_iter().map(line).collect(),
    }
}

/// Returns `wants` with those of wholes as those of their parts, in no certain order.
fn spread_all(link: &Link, wants: &[Assignment]) -> Vec<Assignment> {
    let all = wants.iter().cloned().map(|want| (want.key, want.value));
    let mut all: BTreeMap<Key, Value> = all.collect();
    spread(&mut all, link);
    let all = all.into_iter();
    all.map(|(key, value)| Assignment { key, value }).collect()
}

fn is_so(link: &Link, want: &Assignment) -> bool {
    link.readings.get(&want.key).is_some_and(|reading| {
        let wanted = on_device(link, want, reading).ok();
        wanted.is_some() && reading.value.as_ref() == wanted
    })
}

/// Returns the wanted value as the device has it: `local` is the CPUs of its NUMA node.
fn on_device<'a>(
    link: &Link,
    want: &'a Assignment,
    reading: &'a Reading,
) -> Result<&'a Value, PlanError> {
    if !want.key.knob().domain.is_local(&want.value) {
        return Ok(&want.value);
    }
    reading
        .local
        .as_ref()
        .ok_or_else(|| PlanError::Unsupported {
            link: link.name.clone(),
            key: want.key.clone(),
            why: "the kernel does not tell which CPUs are near this device; write their numbers"
                .to_owned(),
        })
}

/// Says whether the device can take `want`; returns why it would have no effect, if so.
fn admit(link: &Link, want: &Assignment, reading: &Reading) -> Result<Option<String>, PlanError> {
    let name = || link.name.clone();
    let key = || want.key.clone();
    let domain = &want.key.knob().domain;
    let no_effect = match &reading.support {
        Support::Settable => None,
        Support::StoredNoEffect(why) => Some(why.clone()),
        // Asking for the value that a fixed knob has is no error.
        Support::Fixed(_) if reading.value.as_ref() == Some(&want.value) => None,
        Support::Fixed(why) => {
            return Err(PlanError::Fixed {
                link: name(),
                key: key(),
                why: why.clone(),
            });
        }
        Support::Unsupported(why) => {
            return Err(PlanError::Unsupported {
                link: name(),
                key: key(),
                why: why.clone(),
            });
        }
    };
    if let (Some(limits), Some(number)) = (reading.limits, domain.to_kernel(&want.value))
        && !(limits.min..=limits.max).contains(&number)
    {
        return Err(PlanError::OutOfRange {
            link: name(),
            key: key(),
            value: want.value.show(domain),
            min: limits.min,
            max: limits.max,
        });
    }
    Ok(no_effect)
}
