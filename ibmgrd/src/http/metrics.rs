// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures in the text form of Prometheus (version 0.0.4).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use ibmgr_api::status::{Standing, Status};

use super::Problem;
use super::exchange::Asker;
use super::routes::Shared;

pub(super) async fn metrics(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Response, Problem> {
    let status = shared.office.status(&caller).await?;
    let left = shared.office.checkpoint(&caller)?.word.left();
    let text = text(&status, left.map(|left| left.as_secs_f64()));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

fn text(status: &Status, left: Option<f64>) -> String {
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# HELP ibmgr_{name} {help}\n# TYPE ibmgr_{name} {kind}"
        );
        for (labels, value) in samples {
            let _ = writeln!(text, "ibmgr_{name}{labels} {value}");
        }
    };
    let one = |value: f64| vec![(String::new(), value)];
    let counters = status.counters;
    let seconds = |millis: u64| count(millis) / 1000.0;
    let version = format!("{{version=\"{}\"}}", status.version);
    add("info", "gauge", "The daemon.", &[(version, 1.0)]);
    add(
        "uptime_seconds",
        "gauge",
        "Since its start.",
        &one(seconds(status.uptime_ms)),
    );
    add(
        "ready_seconds",
        "gauge",
        "From its start until all was applied.",
        &one(seconds(status.ready_ms)),
    );
    add(
        "ok",
        "gauge",
        "Whether everything is as declared.",
        &one(f64::from(u8::from(status.ok))),
    );
    add(
        "links",
        "gauge",
        "Managed interfaces.",
        &one(size(status.links.len())),
    );
    let standings = standings(status);
    add(
        "declared",
        "gauge",
        "Declared values and children, by how they stand.",
        &standings,
    );
    add(
        "polled",
        "gauge",
        "Values that are polled.",
        &one(count(status.polled)),
    );
    for (name, help, value) in [
        (
            "wakeups_total",
            "Times that the loop woke up.",
            counters.wakeups,
        ),
        ("events_total", "Events of the kernel.", counters.events),
        (
            "polls_total",
            "Times that values without a notification were read.",
            counters.polls,
        ),
        (
            "applied_total",
            "Values that were set as declared.",
            counters.applied,
        ),
        (
            "healed_total",
            "Values that were set again after somebody changed them.",
            counters.healed,
        ),
        (
            "failed_total",
            "Values that could not be set.",
            counters.failed,
        ),
    ] {
        add(name, "counter", help, &one(count(value)));
    }
    if let Some(left) = left {
        add(
            "checkpoint_seconds",
            "gauge",
            "Time that is left to confirm a change.",
            &one(left),
        );
    }
    text
}

fn standings(status: &Status) -> Vec<(String, f64)> {
    let all = [
        Standing::Unknown,
        Standing::Holds,
        Standing::NoEffect,
        Standing::Drifted,
        Standing::Waiting,
        Standing::Failed,
    ];
    let mut counts: BTreeMap<&str, usize> = all.iter().map(|it| (it.name(), 0)).collect();
    for link in &status.links {
        let knobs = link.knobs.values().map(|knob| knob.standing);
        let children = link.children.iter().map(|child| child.standing);
        for standing in knobs.chain(children) {
            *counts.entry(standing.name()).or_default() += 1;
        }
    }
    let sample = |(name, value)| (format!("{{standing=\"{name}\"}}"), size(value));
    counts.into_iter().map(sample).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus knows floating-point numbers only"
)]
const fn count(value: u64) -> f64 {
    value as f64
}

fn size(value: usize) -> f64 {
    count(u64::try_from(value).unwrap_or(u64::MAX))
}
