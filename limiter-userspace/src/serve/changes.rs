//! What changes the policy, and what was changed.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{FromRequest, Query, Request, State, rejection::QueryRejection},
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::task::spawn_blocking;

use super::{Asker, Failed};
use crate::{
    audit::{self, Audit, What, who::Who},
    changes::{
        answer::{Bans, Changed, Overrides},
        request::{
            BanRequest, MonitorRequest, OverrideRequest, ReloadRequest, RemoveOverrideRequest,
            UnbanRequest,
        },
    },
    control::{Control, Reloaded},
    daemon::Daemon,
    peer,
    report::PolicyLines,
};

type Answer<T> = Result<Json<T>, Failed>;
type OfDaemon = State<Arc<Daemon>>;
type OfAsker = Extension<Asker>;

/// The routes.
pub(super) fn routes() -> Router<Arc<Daemon>> {
    Router::new()
        .route("/v1/policy", get(policy))
        .route("/v1/reload", post(reload))
        .route("/v1/ban", post(ban))
        .route("/v1/unban", post(unban))
        .route("/v1/bans", get(bans))
        .route("/v1/override", post(make_override))
        .route("/v1/override/remove", post(remove_override))
        .route("/v1/overrides", get(overrides))
        .route("/v1/monitor", post(monitor))
        .route("/v1/audit", get(recorded))
}

async fn policy(State(daemon): OfDaemon) -> Json<PolicyLines> {
    Json(PolicyLines {
        lines: daemon.control().lines(),
    })
}

async fn reload(
    State(daemon): OfDaemon,
    asker: OfAsker,
    Content(body): Content,
) -> Answer<Changed> {
    let ReloadRequest { reason } = if body.is_empty() {
        ReloadRequest { reason: None }
    } else {
        read(&body)?
    };
    change(&daemon, asker, move |control, who| {
        let Reloaded {
            generation,
            changes,
            written,
            took,
            notices,
        } = control.reload(who, reason.as_deref())?;
        let notices = [changes.clone(), notices].concat();
        Ok(Changed {
            done: format!(
                "policy {generation} is in force after {} ms; {} changes, {written} entries of prefix sets written",
                took.as_millis(),
                changes.len()
            ),
            notices,
        })
    })
    .await
}

async fn ban(State(daemon): OfDaemon, asker: OfAsker, Content(body): Content) -> Answer<Changed> {
    let request: BanRequest = read(&body)?;
    change(&daemon, asker, move |control, who| {
        control.ban(&request, who)
    })
    .await
}

async fn unban(State(daemon): OfDaemon, asker: OfAsker, Content(body): Content) -> Answer<Changed> {
    let request: UnbanRequest = read(&body)?;
    change(&daemon, asker, move |control, who| {
        control.unban(&request, who)
    })
    .await
}

async fn bans(State(daemon): OfDaemon) -> Answer<Bans> {
    Ok(Json(daemon.control().bans()?))
}

async fn make_override(
    State(daemon): OfDaemon,
    asker: OfAsker,
    Content(body): Content,
) -> Answer<Changed> {
    let request: OverrideRequest = read(&body)?;
    change(&daemon, asker, move |control, who| {
        control.make_override(&request, who)
    })
    .await
}

async fn remove_override(
    State(daemon): OfDaemon,
    asker: OfAsker,
    Content(body): Content,
) -> Answer<Changed> {
    let request: RemoveOverrideRequest = read(&body)?;
    change(&daemon, asker, move |control, who| {
        control.remove_override(&request, who)
    })
    .await
}

async fn overrides(State(daemon): OfDaemon) -> Json<Overrides> {
    Json(daemon.control().overrides())
}

async fn monitor(
    State(daemon): OfDaemon,
    asker: OfAsker,
    Content(body): Content,
) -> Answer<Changed> {
    let request: MonitorRequest = read(&body)?;
    change(&daemon, asker, move |control, who| {
        control.set_monitor(&request, who)
    })
    .await
}

/// `GET /v1/audit`, its query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditQuestion {
    #[serde(default = "fifty")]
    last: usize,
    what: Option<What>,
}

const fn fifty() -> usize {
    50
}

async fn recorded(
    State(daemon): OfDaemon,
    question: Result<Query<AuditQuestion>, QueryRejection>,
) -> Answer<Audit> {
    let Query(AuditQuestion { last, what }) =
        question.map_err(|error| Failed(StatusCode::BAD_REQUEST, error.body_text()))?;
    let directory = daemon.control().state_dir()?.to_owned();
    let read = spawn_blocking(move || audit::read::read(&directory, last, what)).await;
    let audit = read
        .context("cannot read the audit log")?
        .context("cannot read the audit log")?;
    Ok(Json(audit))
}

/// Makes a change off the event loop: it writes maps and files.
async fn change<T: Send + 'static>(
    daemon: &Daemon,
    Extension(Asker(peer)): OfAsker,
    make: impl FnOnce(&Control, &Who) -> Result<T> + Send + 'static,
) -> Answer<T> {
    let control = Arc::clone(daemon.control());
    let changed = spawn_blocking(move || {
        let who = peer.map_or_else(peer::this_process, peer::Peer::who);
        make(&control, &who)
    })
    .await
    .context("the change broke off")?;
    Ok(Json(changed?))
}

/// The content of a request; what cannot be had of it is told as JSON, too.
struct Content(Bytes);

impl<S: Send + Sync> FromRequest<S> for Content {
    type Rejection = Failed;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failed> {
        let bytes = Bytes::from_request(request, state).await;
        bytes
            .map(Self)
            .map_err(|error| Failed(error.status(), error.body_text()))
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failed> {
    serde_json::from_slice(body).map_err(|error| {
        Failed(
            StatusCode::BAD_REQUEST,
            format!("not what is asked for: {error}"),
        )
    })
}
