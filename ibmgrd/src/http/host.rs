// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The whole host: plan, apply, checkpoint, status, and what comes of the daemon itself.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use ibmgr_api::form::{
    ApplyBody, ChangeForm, CheckpointBody, CheckpointDeed, CheckpointForm, ExportForm, HealthForm,
    PlanBody, PlanForm,
};
use ibmgr_api::status::Status;
use ibmgrd_config::exported_to_toml;

use super::Problem;
use super::exchange::{Asker, Body, Names};
use super::routes::{Shared, usage};
use crate::office::{Apply, CONFIRM_MAX, declarations, link_name, reason};

pub(super) async fn status(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Json<Status>, Problem> {
    Ok(Json(shared.office.status(&caller).await?))
}

pub(super) async fn reload(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Json<Status>, Problem> {
    Ok(Json(shared.office.reload(&caller).await?))
}

pub(super) async fn plan(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    Body(body): Body<PlanBody>,
) -> Result<Json<PlanForm>, Problem> {
    let (desired, findings) = declarations(body.sources)?;
    let planned = shared.office.plan(&caller, desired).await?;
    Ok(Json(planned.form(findings)))
}

pub(super) async fn apply(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    Body(body): Body<ApplyBody>,
) -> Result<Response, Problem> {
    let names: Vec<&str> = body.sources.iter().map(|source| &*source.file).collect();
    let what = names.join(" ");
    let (desired, findings) = declarations(body.sources)?;
    if body.dry_run {
        let planned = shared.office.plan(&caller, desired).await?;
        return Ok(Json(planned.form(findings)).into_response());
    }
    let confirm_within = match body.confirm_within_seconds {
        Some(seconds) if !(1..=CONFIRM_MAX).contains(&seconds) => {
            let what = format!("confirm-within-seconds is from 1 to {CONFIRM_MAX}");
            return Err(usage(&what));
        }
        seconds => seconds.map(Duration::from_secs),
    };
    let apply = Apply {
        desired,
        what,
        confirm_within,
        why: reason(body.why)?,
    };
    let done = shared.office.apply(&caller, apply).await?;
    let form = done.form();
    match (done.failure, done.refused) {
        (None, _) => Ok(Json(form).into_response()),
        (Some(failure), Some(planned)) => {
            let plan = planned.form(findings);
            Err(Problem::from(failure).with(|problem| problem.plan = Some(plan)))
        }
        (Some(failure), None) => {
            Err(Problem::from(failure).with(|problem| problem.change = Some(form)))
        }
    }
}

pub(super) async fn checkpoint(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Json<CheckpointForm>, Problem> {
    Ok(Json(shared.office.checkpoint(&caller)?.form()))
}

pub(super) async fn end_checkpoint(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    Body(body): Body<CheckpointBody>,
) -> Result<Json<CheckpointForm>, Problem> {
    match body.deed {
        CheckpointDeed::Confirm => {
            shared.office.confirm(&caller).await?;
        }
        CheckpointDeed::Rollback => {
            let done = shared.office.roll_back(&caller).await?;
            if let Some(failure) = done.failure {
                let change = ChangeForm {
                    report: (&done.ended.report).into(),
                    confirm_within_seconds: None,
                    interrupted: None,
                };
                return Err(Problem::from(failure).with(|problem| problem.change = Some(change)));
            }
        }
    }
    Ok(Json(shared.office.checkpoint(&caller)?.form()))
}

pub(super) async fn export(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    Names(names): Names,
) -> Result<Json<ExportForm>, Problem> {
    let names = names.iter().map(|name| link_name(name));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let exported = shared.office.export(&caller, names).await?;
    Ok(Json(ExportForm {
        toml: exported_to_toml(&exported),
    }))
}

pub(super) async fn health(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Json<HealthForm>, Problem> {
    // A change may take seconds, which is no illness: only whether it is idle is told.
    const PATIENCE: Duration = Duration::from_millis(250);
    let status = tokio::time::timeout(PATIENCE, shared.office.status(&caller)).await;
    let idle = match status {
        Err(_) => false,
        Ok(status) => status.map(|_| true)?,
    };
    Ok(Json(HealthForm {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        idle,
    }))
}
