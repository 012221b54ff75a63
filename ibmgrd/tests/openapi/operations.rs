// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each path takes and answers.

use ibmgr_api::form::{
    ApplyBody, ChangeForm, CheckpointBody, CheckpointForm, ExportForm, HealthForm, KnobsBody,
    KnobsForm, LinkForm, LinksForm, PlanBody, PlanForm, ProblemForm, ReportForm, SetPlanForm,
};
use ibmgr_api::status::{Record, Status};
use ibmgr_api::{Channel, ErrorCode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Writes schemas, and remembers which of them are referred to.
struct Document {
    generator: SchemaGenerator,
    paths: Map<String, Value>,
}

/// One method of a path.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answer: Value,
    /// Codes of the table that it fails with, besides those of every request.
    codes: &'static [ErrorCode],
}

/// Whatever is asked for may fail with these.
const ALWAYS: [ErrorCode; 5] = [
    ErrorCode::Internal,
    ErrorCode::Usage,
    ErrorCode::Permission,
    ErrorCode::Timeout,
    ErrorCode::Busy,
];
/// What a change may fail with.
const CHANGES: &[ErrorCode] = &[
    ErrorCode::UnknownKnob,
    ErrorCode::UnknownLink,
    ErrorCode::BadValue,
    ErrorCode::Unsupported,
    ErrorCode::Refused,
    ErrorCode::NoEffect,
    ErrorCode::Vanished,
    ErrorCode::NotVerified,
    ErrorCode::NotPutBack,
    ErrorCode::Kernel,
    ErrorCode::Journal,
    ErrorCode::Pending,
    ErrorCode::Stale,
    ErrorCode::TooLarge,
];

impl Document {
    fn schema<T: JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }

    fn json<T: JsonSchema>(&mut self) -> Value {
        let schema = self.schema::<T>();
        json!({ "application/json": { "schema": schema } })
    }

    fn either<A: JsonSchema, B: JsonSchema>(&mut self) -> Value {
        let (a, b) = (self.schema::<A>(), self.schema::<B>());
        json!({ "application/json": { "schema": { "anyOf": [a, b] } } })
    }

    fn add(&mut self, operation: Operation) {
        let problem = self.schema::<ProblemForm>();
        let mut responses = Map::new();
        let headers = if operation.id == "getLink" {
            json!({ "ETag": { "description": "Of the interface with all its knobs.", "schema": { "type": "string" } } })
        } else {
            json!({})
        };
        let done =
            json!({ "description": "Done.", "headers": headers, "content": operation.answer });
        responses.insert("200".to_owned(), done);
        let mut codes: Vec<ErrorCode> = ALWAYS.iter().chain(operation.codes).copied().collect();
        let unknown = json!({
            "description": "Over TLS only: neither a token nor a certificate that counts (`permission`).",
            "headers": { "WWW-Authenticate": {
                "description": "What it takes (RFC 6750).", "schema": { "type": "string" },
            } },
            "content": { "application/problem+json": { "schema": problem } },
        });
        responses.insert("401".to_owned(), unknown);
        codes.sort_by_key(|code| (code.http_status(), code.exit_status()));
        for code in codes {
            let status = code.http_status().to_string();
            let name = format!("{} (`{}`)", code.title(), code.name());
            let content = json!({ "application/problem+json": { "schema": problem } });
            let response = responses
                .entry(status)
                .or_insert_with(|| json!({ "description": "", "content": content }));
            let before = response["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let joined = if before.is_empty() {
                name
            } else {
                format!("{before}; {name}")
            };
            response["description"] = json!(joined);
        }
        let other = "A request that HTTP itself refuses: 404, 405, 408, 415, 421 or 422.";
        responses.insert(
            "4XX".to_owned(),
            json!({ "description": other, "content": { "application/problem+json": { "schema": problem } } }),
        );
        if operation.id == "getLink" {
            let same = json!({ "description": "It has the tag of If-None-Match." });
            responses.insert("304".to_owned(), same);
        }
        let mut form = json!({
            "operationId": operation.id,
            "summary": operation.summary,
            "responses": responses,
        });
        let mut parameters = operation.parameters;
        if operation.method != "get" {
            let mut key = header(
                "Idempotency-Key",
                "1 to 128 characters: the same request with the same key is answered as before, and not \
                 done again, for ten minutes.",
            );
            key["schema"]["pattern"] = json!("^[ -~]{1,128}$");
            parameters.push(key);
        }
        let mut namespace = header(
            "Ibmgr-Namespace",
            "Cookie of the caller's network namespace (SO_NETNS_COOKIE): a daemon of another one answers 421.",
        );
        namespace["schema"]["pattern"] = json!("^[0-9]+$");
        parameters.push(namespace);
        form["parameters"] = Value::Array(parameters);
        if let Some(body) = operation.body {
            form["requestBody"] = json!({ "required": true, "content": body });
        }
        let path = self
            .paths
            .entry(operation.path)
            .or_insert_with(|| json!({}));
        path[operation.method] = form;
    }
}

fn header(name: &str, text: &str) -> Value {
    json!({ "name": name, "in": "header", "description": text, "schema": { "type": "string" } })
}

fn query(name: &str, text: &str) -> Value {
    json!({ "name": name, "in": "query", "description": text, "schema": { "type": "string" } })
}

fn name() -> Value {
    json!({
        "name": "name", "in": "path", "required": true, "description": "Name of the interface.",
        "schema": { "type": "string", "minLength": 1 },
    })
}

/// Returns the document.
pub(crate) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut it = Document {
        generator: settings.into_generator(),
        paths: Map::new(),
    };
    let knobs = || {
        query(
            "knobs",
            "Names with commas between, or `all`; empty for none.",
        )
    };
    let via = || {
        let mut via = query("via", "Read through this kernel interface only.");
        via["schema"]["enum"] = json!(Channel::ALL.map(Channel::name));
        via
    };
    reading(&mut it, &knobs, &via);
    changing(&mut it);
    own(&mut it);
    let problem = it.schema::<ProblemForm>();
    // Records stand in the text of events, which OpenAPI cannot describe.
    let record = it.schema::<Record>();
    assert!(problem.is_object() && record.is_object());
    let schemas = it.generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ibmgrd",
            "version": "1",
            "description": "The daemon of ibmgr over its unix socket and, where it is configured, over \
                TLS. Paths, names and words are never renamed; members are added. Whoever may connect to the \
                socket may read; changing takes root, or a user or group that the daemon was started with. \
                Over TLS a token or a certificate has the right to read or to write, for the whole host or \
                for some interfaces.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "servers": [
            { "url": "http://localhost/", "description": "The unix socket /run/ibmgr/http.sock." },
            {
                "url": "https://{host}:{port}/",
                "description": "TLS 1.3, where the daemon was started with --listen.",
                "variables": { "host": { "default": "localhost" }, "port": { "default": "8443" } },
            },
        ],
        // The socket's kernel tells who asks: nothing is shown there.
        "security": [{}, { "token": [] }, { "certificate": [] }],
        "paths": it.paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "certificate": { "type": "mutualTLS" },
            },
        },
    })
}

fn reading(it: &mut Document, knobs: &dyn Fn() -> Value, via: &dyn Fn() -> Value) {
    let answer = it.json::<LinksForm>();
    it.add(Operation {
        method: "get",
        path: "/v1/links",
        id: "listLinks",
        summary: "All interfaces, by index; without knobs unless these are asked for.",
        parameters: vec![knobs(), via()],
        body: None,
        answer,
        codes: &[ErrorCode::UnknownKnob, ErrorCode::Kernel],
    });
    let answer = it.json::<LinkForm>();
    it.add(Operation {
        method: "get",
        path: "/v1/links/{name}",
        id: "getLink",
        summary: "One interface; with all knobs unless some are asked for.",
        parameters: vec![
            name(),
            knobs(),
            via(),
            header("If-None-Match", "A tag that the caller has."),
        ],
        body: None,
        answer,
        codes: &[
            ErrorCode::UnknownKnob,
            ErrorCode::UnknownLink,
            ErrorCode::Kernel,
            ErrorCode::Vanished,
        ],
    });
    let answer = it.json::<KnobsForm>();
    it.add(Operation {
        method: "get",
        path: "/v1/knobs",
        id: "listKnobs",
        summary: "All knobs, whatever interface has them.",
        parameters: Vec::new(),
        body: None,
        answer,
        codes: &[],
    });
    let answer = it.json::<ExportForm>();
    it.add(Operation {
        method: "get",
        path: "/v1/export",
        id: "export",
        summary: "The present state as a file that plans to nothing.",
        parameters: vec![query(
            "links",
            "Names with commas between; without any, all of IPoIB.",
        )],
        body: None,
        answer,
        codes: &[ErrorCode::UnknownLink, ErrorCode::Kernel],
    });
    let (body, answer) = (it.json::<PlanBody>(), it.json::<PlanForm>());
    it.add(Operation {
        method: "post",
        path: "/v1/plan",
        id: "plan",
        summary: "What applying declarations would do, and what of it cannot be done.",
        parameters: Vec::new(),
        body: Some(body),
        answer,
        codes: &[ErrorCode::BadValue, ErrorCode::Kernel, ErrorCode::TooLarge],
    });
}

fn changing(it: &mut Document) {
    let (body, answer) = (
        it.json::<KnobsBody>(),
        it.either::<ReportForm, SetPlanForm>(),
    );
    it.add(Operation {
        method: "patch",
        path: "/v1/links/{name}/knobs",
        id: "setKnobs",
        summary: "Sets knobs of one interface, verified by reading back: all of them or none.",
        parameters: vec![
            name(),
            header(
                "If-Match",
                "Tag of the interface: it is set only while it is what has this tag.",
            ),
        ],
        body: Some(body),
        answer,
        codes: CHANGES,
    });
    let (body, answer) = (it.json::<ApplyBody>(), it.either::<ChangeForm, PlanForm>());
    it.add(Operation {
        method: "post",
        path: "/v1/apply",
        id: "apply",
        summary: "Applies declarations to the host: all of them or none.",
        parameters: Vec::new(),
        body: Some(body),
        answer,
        codes: CHANGES,
    });
    let answer = it.json::<CheckpointForm>();
    it.add(Operation {
        method: "get",
        path: "/v1/checkpoint",
        id: "getCheckpoint",
        summary: "How it stands with the last change of the host.",
        parameters: Vec::new(),
        body: None,
        answer: answer.clone(),
        codes: &[ErrorCode::Journal],
    });
    let body = it.json::<CheckpointBody>();
    it.add(Operation {
        method: "post",
        path: "/v1/checkpoint",
        id: "endCheckpoint",
        summary: "Keeps the last change for good, or takes it back.",
        parameters: Vec::new(),
        body: Some(body),
        answer,
        codes: CHANGES,
    });
}

fn own(it: &mut Document) {
    let answer = it.json::<Status>();
    it.add(Operation {
        method: "get",
        path: "/v1/status",
        id: "getStatus",
        summary: "How everything that is declared stands.",
        parameters: Vec::new(),
        body: None,
        answer: answer.clone(),
        codes: &[],
    });
    it.add(Operation {
        method: "post",
        path: "/v1/reload",
        id: "reload",
        summary: "Reads the daemon's files again, applies them, and tells how everything stands then.",
        parameters: Vec::new(),
        body: None,
        answer,
        codes: &[],
    });
    it.add(Operation {
        method: "get",
        path: "/v1/events",
        id: "followEvents",
        summary: "What happens, as server-sent events: the data of each is a `Record`.",
        parameters: Vec::new(),
        body: None,
        answer: json!({ "text/event-stream": { "schema": { "type": "string" } } }),
        codes: &[],
    });
    it.add(Operation {
        method: "get",
        path: "/metrics",
        id: "getMetrics",
        summary: "Figures in the text form of Prometheus.",
        parameters: Vec::new(),
        body: None,
        answer: json!({ "text/plain": { "schema": { "type": "string" } } }),
        codes: &[ErrorCode::Journal],
    });
    let answer = it.json::<HealthForm>();
    it.add(Operation {
        method: "get",
        path: "/healthz",
        id: "getHealth",
        summary: "Whether the daemon lives.",
        parameters: Vec::new(),
        body: None,
        answer,
        codes: &[],
    });
}
