//! Asking the daemon.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use http_body_util::{BodyExt as _, Empty};
use hyper::{Method, Request, StatusCode, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::{kernel::pins, report::Failure};

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
    /// Where the socket may not be used.
    pub async fn connect(&self) -> Result<Option<UnixStream>> {
        match UnixStream::connect(self.socket).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error).with_context(|| {
                format!(
                    "--socket {}: cannot connect; run as root or as a member of the socket's group",
                    self.socket.display()
                )
            }),
        }
    }

    /// Asks for `path`.
    ///
    /// # Errors
    ///
    /// Where no daemon listens, and what is enforced nevertheless; what the daemon says went wrong.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        match self.connect().await? {
            Some(stream) => request(stream, Method::GET, path).await,
            None => Err(self.no_daemon()),
        }
    }

    fn no_daemon(&self) -> anyhow::Error {
        let kept: Vec<String> = pins::links(self.pin_dir)
            .unwrap_or_default()
            .iter()
            .map(pins::PinnedLink::interface_name)
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

/// Sends one request and reads its answer.
///
/// # Errors
///
/// What the daemon says went wrong.
pub async fn request<T: DeserializeOwned>(
    stream: UnixStream,
    method: Method,
    path: &str,
) -> Result<T> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .context("the daemon does not speak HTTP")?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "limiter")
        .body(Empty::<Bytes>::new())
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
    if status != StatusCode::OK {
        match serde_json::from_slice::<Failure>(&body) {
            Ok(Failure { error }) => bail!(error),
            Err(_) => bail!("the daemon answers {status}"),
        }
    }
    serde_json::from_slice(&body)
        .context("the daemon's answer is not what was asked for; is it of this version?")
}
