//! The control socket and the metrics port: HTTP, bounded in connections and time.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    extract::{Query, State, rejection::QueryRejection},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::Listener,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, UnixListener},
    sync::Semaphore,
    time::timeout,
};

use crate::{
    daemon::Daemon,
    explain::{Explanation, Question},
    metrics,
    report::{Failure, Status, Top, Unloaded},
};

/// Connections served at once; others wait in the kernel's queue.
const CONNECTIONS: usize = 128;
/// To send a whole request header.
const HEADER_TIME: Duration = Duration::from_secs(2);
/// For a connection, from first to last byte.
const CONNECTION_TIME: Duration = Duration::from_secs(60);

/// Serves on the control socket, for ever.
pub async fn control(listener: UnixListener, daemon: Arc<Daemon>) {
    let routes = Router::new()
        .route("/v1/status", get(status))
        .route("/v1/explain", get(explain))
        .route("/v1/top", get(top))
        .route("/v1/unload", post(unload))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .with_state(daemon);
    accept(listener, routes).await;
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
        accept(self.0, routes).await;
    }
}

async fn accept<L: Listener>(mut listener: L, routes: Router) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    // The semaphore is never closed.
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        let (stream, _) = listener.accept().await;
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME)
                .serve_connection(TokioIo::new(stream), service);
            // What a client does wrong is the client's affair.
            drop(timeout(CONNECTION_TIME, served).await);
            drop(slot);
        });
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

async fn top(State(daemon): State<Arc<Daemon>>) -> Json<Top> {
    Json(daemon.top())
}

async fn unload(State(daemon): State<Arc<Daemon>>) -> Result<Json<Unloaded>, Failed> {
    Ok(Json(daemon.unload().await?))
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

/// An error as an answer.
struct Failed(StatusCode, String);

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}"))
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let Self(status, error) = self;
        (status, Json(Failure { error })).into_response()
    }
}
