// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces and their knobs.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ibmgr_api::form::{KnobForm, KnobsBody, KnobsForm, SetPlanForm};
use ibmgr_api::{Assignment, ErrorCode, Failure, Key, LinkName, registry};
use ibmgrd_engine::Keys;
use serde_json::json;

use super::exchange::{Asker, Body, Select};
use super::routes::Shared;
use super::{Problem, routes};
use crate::office::{Right, Set, channel, link_name, reason, tag_of};

pub(super) async fn all(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    select: Select,
) -> Result<Json<serde_json::Value>, Problem> {
    let query = select.query(Keys::Identity)?;
    let links = shared.office.links(&caller, query).await?;
    Ok(Json(json!({ "links": links })))
}

pub(super) async fn one(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    Path(name): Path<String>,
    select: Select,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, query) = (link_name(&name)?, select.query(Keys::All)?);
    let read = shared.office.link(&caller, &name, &query)?;
    if !select.is_default() {
        return Ok(Json(read).into_response());
    }
    // The tag is of everything: what is asked for in part has none.
    let json = serde_json::to_vec(&read)
        .map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
    let tag = quoted(&tag_of(&json));
    if matches_any(&headers, header::IF_NONE_MATCH, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let form = HeaderValue::from_static("application/json");
    let headers = [(header::ETAG, tag), (header::CONTENT_TYPE, form)];
    Ok((headers, json).into_response())
}

pub(super) async fn set(
    State(shared): State<Shared>,
    Asker(caller): Asker,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(body): Body<KnobsBody>,
) -> Result<Response, Problem> {
    let link = link_name(&name)?;
    let wants = wants(&link, &body)?;
    let via = body.via.as_deref().map(channel).transpose()?;
    if body.dry_run {
        let plan = shared.office.plan_set(&caller, &link, &wants, via)?;
        return Ok(Json(SetPlanForm::from(&plan)).into_response());
    }
    let set = Set {
        link,
        wants,
        via,
        only_if: only_if(&headers)?,
        why: reason(body.why)?,
    };
    let done = shared.office.set(&caller, set).await?;
    match done.failure {
        None => Ok(Json(done.report).into_response()),
        Some(failure) => {
            let problem = Problem::from(failure);
            Err(problem.with(|problem| problem.report = Some((&done.report).into())))
        }
    }
}

pub(super) async fn knobs(
    State(shared): State<Shared>,
    Asker(caller): Asker,
) -> Result<Json<KnobsForm>, Problem> {
    shared.office.check(&caller, Right::Observe, None)?;
    let knobs = registry::knobs().map(KnobForm::from);
    Ok(Json(KnobsForm {
        knobs: knobs.collect(),
    }))
}

/// Reads the values of a body. The first that is wrong is told.
fn wants(link: &LinkName, body: &KnobsBody) -> Result<Vec<Assignment>, Problem> {
    if body.knobs.0.is_empty() {
        return Err(Problem::new(ErrorCode::Usage, "'knobs' names none"));
    }
    let mut wants = Vec::with_capacity(body.knobs.0.len());
    for (name, text) in body.knobs.iter() {
        let key: Key = name.parse().map_err(|error: ibmgr_api::KeyError| {
            Failure::of(error.code(), &error).about(Some(link), Some(name))
        })?;
        let value = key.knob().domain.parse(text).map_err(|error| {
            let mut failure = Failure::new(
                ErrorCode::BadValue,
                format!("{link}: {key} takes no such value: nothing was changed"),
            );
            failure.causes.push(error.to_string());
            failure.about(Some(link), Some(&key))
        })?;
        wants.push(Assignment { key, value });
    }
    Ok(wants)
}

fn quoted(tag: &str) -> HeaderValue {
    // Hexadecimal digits are fit for a header.
    HeaderValue::try_from(format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Says whether one of the tags of a header is `tag`, or it takes any.
fn matches_any(headers: &HeaderMap, name: header::HeaderName, tag: &HeaderValue) -> bool {
    let values = headers.get_all(name).into_iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    let tag = tag.to_str().unwrap_or_default();
    texts.any(|text| {
        let mut tags = text.split(',').map(str::trim);
        tags.any(|other| other == "*" || other.trim_start_matches("W/") == tag)
    })
}

/// Returns the tag of `If-Match` (RFC 9110, section 13.1.1).
fn only_if(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(header::IF_MATCH).into_iter();
    let text = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(one), None) => one.to_str().unwrap_or_default().trim(),
        (Some(_), Some(_)) => "",
    };
    if text == "*" {
        return Ok(None);
    }
    let tag = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match tag.filter(|tag| !tag.contains('"')) {
        Some(tag) => Ok(Some(tag.to_owned())),
        None => Err(routes::usage("If-Match takes one strong tag, or *")),
    }
}
