//! The control socket and the metrics port: HTTP, bounded in connections and time.

use std::{net::SocketAddr, ops::RangeInclusive, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use axum::{
    Extension, Json, Router,
    extract::{DefaultBodyLimit, Query, Request, State, rejection::QueryRejection},
    http::{
        StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::Listener,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, UnixListener},
    sync::Semaphore,
    time::timeout,
};

mod changes;

use crate::{
    audit::What,
    control::Refused,
    daemon::Daemon,
    explain::{Explanation, Question},
    metrics,
    peer::{self, Peer},
    report::{Failure, Status, Top, Unloaded},
};

/// Connections served at once; others wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// To send a whole request header. Shorter than `limiter` waits for an answer, so that clients that say nothing cannot
/// keep it from one.
const HEADER_TIME: Duration = Duration::from_secs(2);
/// For a connection, from first to last byte.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// Bytes of a request's header, and of its content.
const MOST_BYTES: usize = 64 << 10;
/// Over how many milliseconds `/v1/top` measures rates.
const INTERVALS: RangeInclusive<u64> = 100..=30_000;

/// Serves on the control socket, for ever.
pub async fn control(listener: UnixListener, daemon: Arc<Daemon>) {
    let routes = Router::new()
        .route("/v1/status", get(status))
        .route("/v1/explain", get(explain))
        .route("/v1/top", get(top))
        .route("/v1/unload", post(unload))
        .merge(changes::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .with_state(daemon);
    accept(listener, routes, |stream| peer::of(stream).ok()).await;
}

/// The metrics port.
#[derive(Debug)]
pub struct MetricsPort(TcpListener);

impl MetricsPort {
    /// Binds the port.
    ///
    /// # Errors
    ///
    /// Where it is taken or not ours to bind.
    pub async fn bind(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!(
                "--metrics {address}: cannot be bound; name an address of this host and a free port"
            )
        })?;
        Ok(Self(listener))
    }

    /// Where it listens, the port chosen by the kernel if none was asked for.
    ///
    /// # Errors
    ///
    /// Where the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr> {
        self.0.local_addr().context("cannot tell the metrics port")
    }

    /// Serves for ever.
    pub async fn serve(self, daemon: Arc<Daemon>) {
        let routes = Router::new()
            .route("/metrics", get(scrape))
            .fallback(not_found)
            .method_not_allowed_fallback(wrong_method)
            .with_state(daemon);
        accept(self.0, routes, |_| None).await;
    }
}

async fn accept<L: Listener>(
    mut listener: L,
    routes: Router,
    who: impl Fn(&L::Io) -> Option<Peer>,
) {
    let routes = routes
        .layer(from_fn(refuse_much))
        .layer(DefaultBodyLimit::max(MOST_BYTES));
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    // The semaphore is never closed.
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        let (stream, _) = listener.accept().await;
        let asker = Asker(who(&stream));
        let service = TowerToHyperService::new(routes.clone().layer(Extension(asker)));
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME)
                .max_buf_size(MOST_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // What a client does wrong is the client's affair.
            drop(timeout(CONNECTION_TIME, served).await);
            drop(slot);
        });
    }
}

/// Refuses a request that announces more content than anybody needs.
async fn refuse_much(request: Request, next: Next) -> Response {
    let announced = request.headers().get(CONTENT_LENGTH);
    let length = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    match length {
        Some(length) if length > MOST_BYTES => Failed(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("{length} bytes of content; at most {MOST_BYTES}"),
        )
        .into_response(),
        _ => next.run(request).await,
    }
}

async fn status(State(daemon): State<Arc<Daemon>>) -> Result<Json<Status>, Failed> {
    Ok(Json(daemon.status()?))
}

async fn explain(
    State(daemon): State<Arc<Daemon>>,
    question: Result<Query<Question>, QueryRejection>,
) -> Result<Json<Explanation>, Failed> {
    let Query(question) =
        question.map_err(|error| Failed(StatusCode::BAD_REQUEST, error.body_text()))?;
    Ok(Json(daemon.explain(&question)?))
}

/// `GET /v1/top`, its query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopQuestion {
    interval_ms: Option<u64>,
}

async fn top(
    State(daemon): State<Arc<Daemon>>,
    question: Result<Query<TopQuestion>, QueryRejection>,
) -> Result<Json<Top>, Failed> {
    let bad = |text| Failed(StatusCode::BAD_REQUEST, text);
    let Query(TopQuestion { interval_ms }) = question.map_err(|error| bad(error.body_text()))?;
    if let Some(given) = interval_ms.filter(|given| !INTERVALS.contains(given)) {
        return Err(bad(format!(
            "interval_ms={given}: from {} to {}",
            INTERVALS.start(),
            INTERVALS.end()
        )));
    }
    Ok(Json(
        daemon.top(interval_ms.map(Duration::from_millis)).await?,
    ))
}

async fn unload(
    State(daemon): State<Arc<Daemon>>,
    Extension(Asker(peer)): Extension<Asker>,
) -> Result<Json<Unloaded>, Failed> {
    let unloaded = daemon.unload().await?;
    if let Some(peer) = peer {
        let before = json!(unloaded.interfaces);
        daemon
            .control()
            .record(&peer.who(), What::Unload, before, Value::Null, None);
    }
    Ok(Json(unloaded))
}

async fn scrape(State(daemon): State<Arc<Daemon>>) -> Result<Response, Failed> {
    let text = metrics::encode(&daemon.status()?)?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

async fn not_found() -> Failed {
    Failed(StatusCode::NOT_FOUND, "there is no such path".to_owned())
}

async fn wrong_method() -> Failed {
    Failed(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path takes another method".to_owned(),
    )
}

/// Who is at the other end of a connection, where that can be told.
#[derive(Clone, Copy, Debug)]
struct Asker(Option<Peer>);

/// An error as an answer.
struct Failed(StatusCode, String);

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        let status = if error.is::<Refused>() {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        Self(status, format!("{error:#}"))
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let Self(status, error) = self;
        (status, Json(Failure { error })).into_response()
    }
}
