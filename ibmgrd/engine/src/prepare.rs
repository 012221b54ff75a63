// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading what a request needs before it can be planned, or told.

use ibmgr_api::{Assignment, Channel, Link, LinkName, Plan, PlanError, Report};

use crate::plan::{keys_to_observe, plan, rejected};
use crate::port::{Keys, Port, PortError, Query};

/// A request without a plan. Nothing was changed.
#[derive(Debug)]
pub enum Unplanned {
    /// The interface could not be read.
    Port(PortError),
    /// The request is wrong, or the device cannot take it.
    Plan {
        /// The first thing that is wrong.
        error: PlanError,
        /// What its knobs are, and why each of them cannot be set; where they could be read.
        report: Option<Report>,
    },
}

/// Reads one interface and plans `wants` for it. Nothing is written.
///
/// # Errors
///
/// It cannot be read, or there is no plan.
pub fn prepare<P: Port>(
    port: &mut P,
    link: &LinkName,
    wants: &[Assignment],
    via: Option<Channel>,
) -> Result<(Plan, Link), Unplanned> {
    let keys = keys_to_observe(wants, via).map_err(|error| Unplanned::Plan {
        error,
        report: None,
    })?;
    let query = Query {
        keys: Keys::Named(keys),
        via,
    };
    let before = port.observe(link, &query).map_err(Unplanned::Port)?;
    match plan(&before, wants) {
        Ok(plan) => Ok((plan, before)),
        Err(error) => Err(Unplanned::Plan {
            error,
            report: Some(rejected(&before, wants)),
        }),
    }
}

/// Interfaces with everything that can be read of them.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// Those that were asked for, with a reading of each knob, in the order of the asking.
    pub links: Vec<Link>,
    /// All of the host, without readings.
    pub all: Vec<Link>,
}

/// Reads everything of the interfaces called `names`, or of all IPoIB interfaces where there are none.
///
/// # Errors
///
/// There is no interface of such a name, or the kernel does not answer.
pub fn observe_whole<P: Port>(port: &mut P, names: &[LinkName]) -> Result<Whole, PortError> {
    let all = port.observe_all(&Query {
        keys: Keys::Identity,
        via: None,
    })?;
    let names: Vec<LinkName> = if names.is_empty() {
        let ipoib = all
            .iter()
            .filter(|link| link.is_ipoib() && link.pkey.is_some());
        ipoib.map(|link| link.name.clone()).collect()
    } else {
        names.to_vec()
    };
    let query = Query {
        keys: Keys::All,
        via: None,
    };
    let links = names.iter().map(|name| port.observe(name, &query));
    Ok(Whole {
        links: links.collect::<Result<_, _>>()?,
        all,
    })
}
