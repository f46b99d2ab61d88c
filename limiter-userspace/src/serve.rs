//! The control socket and the metrics port: HTTP, bounded in connections and time.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
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
use nix::unistd::Group;
use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
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

/// The socket of the daemon; the file is removed on drop.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    _file: SocketFile,
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// Removes a socket that nobody listens on.
pub fn remove_stale_socket(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
        drop(fs::remove_file(path));
    }
}

/// The longest path of a Unix socket: `sun_path` with its terminating zero holds 108 bytes (unix(7)).
const LONGEST_SOCKET_PATH: usize = 107;

impl ControlSocket {
    /// Binds the socket, for root alone or for a group too. Takes the place of a socket that nobody listens on.
    ///
    /// # Errors
    ///
    /// Where another daemon listens there, or the path cannot be used.
    pub async fn bind(path: &Path, group: Option<&str>) -> Result<Self> {
        let shown = path.display();
        let length = path.as_os_str().len();
        if length > LONGEST_SOCKET_PATH {
            bail!(
                "--socket {shown}: {length} bytes; a socket's path has at most {LONGEST_SOCKET_PATH}, name a shorter one"
            );
        }
        let group = group.map(find_group).transpose()?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("--socket {shown}: its directory cannot be made"))?;
        }
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                bail!("--socket {shown}: there is a file that is no socket; name another path");
            }
            Ok(_) if UnixStream::connect(path).await.is_ok() => {
                bail!(
                    "--socket {shown}: a daemon is listening there already; ask it with `limiter status`, stop it, or name another path"
                );
            }
            Ok(_) => fs::remove_file(path)
                .with_context(|| format!("--socket {shown}: the old socket cannot be removed"))?,
            Err(_) => {}
        }
        // Nobody else may connect before the mode is set.
        let mask = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        nix::sys::stat::umask(mask);
        let listener = listener.with_context(|| format!("--socket {shown}: cannot be bound"))?;
        let file = SocketFile(path.to_owned());
        if let Some(group) = group {
            chown(path, None, Some(group))
                .with_context(|| format!("--socket {shown}: cannot be given to the group"))?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o660))
                .with_context(|| format!("--socket {shown}: cannot be opened to the group"))?;
        }
        Ok(Self {
            listener,
            _file: file,
        })
    }

    /// Serves for ever.
    pub async fn serve(self, daemon: Arc<Daemon>) {
        let routes = Router::new()
            .route("/v1/status", get(status))
            .route("/v1/explain", get(explain))
            .route("/v1/top", get(top))
            .route("/v1/unload", post(unload))
            .fallback(not_found)
            .method_not_allowed_fallback(wrong_method)
            .with_state(daemon);
        accept(self.listener, routes).await;
    }
}

fn find_group(name: &str) -> Result<u32> {
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => bail!("--socket-group {name}: no such group; see `getent group`"),
        Err(error) => {
            Err(error).with_context(|| format!("--socket-group {name}: cannot be looked up"))
        }
    }
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
