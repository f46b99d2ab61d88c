//! Asking the daemon.

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    net::UnixStream,
    time::{sleep, timeout},
};

use crate::{
    kernel::pins::{self, PinnedLink},
    report::Failure,
    socket,
};

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// The daemon on a socket.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    socket: &'a Path,
    pin_dir: &'a Path,
}

impl<'a> Client<'a> {
    /// The daemon that listens on `socket`.
    #[must_use]
    pub const fn new(socket: &'a Path, pin_dir: &'a Path) -> Self {
        Self { socket, pin_dir }
    }

    /// Connects; `None` if nobody listens.
    ///
    /// # Errors
    ///
    /// Where the socket may not be used, or its queue stays full.
    pub async fn connect(&self) -> Result<Option<UnixStream>> {
        let start = Instant::now();
        loop {
            let error = match socket::connect(self.socket).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            let shown = self.socket.display();
            match error.kind() {
                io::ErrorKind::WouldBlock if start.elapsed() < PATIENCE => sleep(LOOK).await,
                io::ErrorKind::WouldBlock => bail!(
                    "--socket {shown}: the daemon has taken no connection for {} s, and its queue is full; see its log, or \
                     stop it",
                    PATIENCE.as_secs()
                ),
                io::ErrorKind::PermissionDenied => {
                    return Err(error).with_context(|| {
                        format!(
                            "--socket {shown}: cannot connect; run as root or as a member of the socket's group"
                        )
                    });
                }
                _ => {
                    return Err(error).with_context(|| format!("--socket {shown}: cannot connect"));
                }
            }
        }
    }

    /// Asks for `path`.
    ///
    /// # Errors
    ///
    /// Where no daemon listens, and what is enforced nevertheless; what the daemon says went wrong.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, patience: Duration) -> Result<T> {
        match self.connect().await? {
            Some(stream) => request(stream, Method::GET, path, patience).await,
            None => Err(self.no_daemon()),
        }
    }

    /// Sends something to `path`.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        patience: Duration,
    ) -> Result<T> {
        let body = serde_json::to_vec(body).context("cannot be written as JSON")?;
        match self.connect().await? {
            Some(stream) => send(stream, Method::POST, path, body.into(), patience).await,
            None => Err(self.no_daemon()),
        }
    }

    fn no_daemon(&self) -> anyhow::Error {
        let kept: Vec<String> = pins::links(self.pin_dir)
            .unwrap_or_default()
            .iter()
            .filter_map(|link| PinnedLink::enforces_on(link).ok().flatten())
            .collect();
        let socket = self.socket.display();
        if kept.is_empty() {
            anyhow!(
                "--socket {socket}: no daemon is listening there; start one with `limiter run`, or name its socket"
            )
        } else {
            anyhow!(
                "--socket {socket}: no daemon is listening there, but enforcement goes on in the kernel on {}; start a \
                 daemon with `limiter run`, or end it with `limiter unload`",
                kept.join(", ")
            )
        }
    }
}

/// The process that listens at the other end, where the kernel tells.
#[must_use]
pub fn peer(stream: &UnixStream) -> Option<u32> {
    let pid = stream.peer_cred().ok()?.pid()?;
    // 0 stands for a process of another namespace.
    u32::try_from(pid).ok().filter(|pid| *pid != 0)
}

/// Sends one request without content and reads its answer, all within a time.
///
/// # Errors
///
/// What the daemon says went wrong.
pub async fn request<T: DeserializeOwned>(
    stream: UnixStream,
    method: Method,
    path: &str,
    patience: Duration,
) -> Result<T> {
    send(stream, method, path, Bytes::new(), patience).await
}

/// Sends one request and reads its answer, all within a time.
///
/// # Errors
///
/// What the daemon says went wrong.
async fn send<T: DeserializeOwned>(
    stream: UnixStream,
    method: Method,
    path: &str,
    body: Bytes,
    patience: Duration,
) -> Result<T> {
    let daemon = peer(&stream);
    let Ok(answer) = timeout(patience, exchange(stream, method, path, body)).await else {
        bail!(
            "the daemon{} does not answer within {} s; see its log, or stop it",
            daemon.map_or_else(String::new, |pid| format!(" (pid {pid})")),
            patience.as_secs()
        );
    };
    let (status, body) = answer?;
    if status != StatusCode::OK {
        match serde_json::from_slice::<Failure>(&body) {
            Ok(Failure { error }) => bail!(error),
            Err(_) => bail!("the daemon answers {status}"),
        }
    }
    serde_json::from_slice(&body)
        .context("the daemon's answer is not what was asked for; is it of this version?")
}

async fn exchange(
    stream: UnixStream,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .context("the daemon does not speak HTTP")?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "limiter")
        .header("content-type", "application/json")
        .body(Full::new(body))
        .with_context(|| format!("{path}: cannot be asked for"))?;
    let answer = sender
        .send_request(request)
        .await
        .context("the daemon does not answer")?;
    let status = answer.status();
    let body = answer
        .into_body()
        .collect()
        .await
        .context("the daemon's answer broke off")?
        .to_bytes();
    Ok((status, body))
}
