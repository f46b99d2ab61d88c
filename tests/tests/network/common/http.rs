//! HTTP as curl speaks it: a request, an answer, the end.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use limiter_lab::Namespace;

/// How long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Its content, which must say that it is JSON.
    pub(crate) fn json(&self) -> Result<serde_json::Value> {
        ensure!(
            self.header("content-type") == Some("application/json"),
            "{self:?}"
        );
        serde_json::from_str(&self.body).with_context(|| format!("read {self:?}"))
    }

    fn parse(text: &str) -> Result<Self> {
        let (head, body) = text
            .split_once("\r\n\r\n")
            .with_context(|| format!("no HTTP: {text}"))?;
        let mut lines = head.lines();
        let status = lines
            .next()
            .and_then(|line| {
                line.strip_prefix("HTTP/1.1 ")?
                    .split(' ')
                    .next()?
                    .parse()
                    .ok()
            })
            .with_context(|| format!("no HTTP: {head}"))?;
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        };
        Ok(Self {
            status,
            headers: lines.filter_map(header).collect(),
            body: body.to_owned(),
        })
    }
}

/// Asks a server on a Unix socket.
pub(crate) fn request(socket: &Path, method: &str, path: &str) -> Result<Answer> {
    let stream =
        UnixStream::connect(socket).with_context(|| format!("connect to {}", socket.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    exchange(stream, method, path)
}

/// Asks for a path of a server in a namespace.
pub(crate) fn get(namespace: &Namespace, server: SocketAddr, path: &str) -> Result<Answer> {
    let stream = namespace
        .run(|| Ok(TcpStream::connect(server)?))
        .with_context(|| format!("connect to {server}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    exchange(stream, "GET", path)
}

fn exchange(mut stream: impl Read + Write, method: &str, path: &str) -> Result<Answer> {
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: limiter\r\nConnection: close\r\n\r\n"
    )
    .context("send a request")?;
    let mut text = String::new();
    stream
        .read_to_string(&mut text)
        .context("receive an answer")?;
    Answer::parse(&text)
}
