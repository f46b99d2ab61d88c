//! HTTP as curl speaks it: a request, an answer, the end.

use std::{
    io::{ErrorKind, Read, Write},
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
    send(socket, method, path, "")
}

/// Sends a server on a Unix socket some content.
pub(crate) fn send(socket: &Path, method: &str, path: &str, body: &str) -> Result<Answer> {
    let stream =
        UnixStream::connect(socket).with_context(|| format!("connect to {}", socket.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    exchange(stream, method, path, body)
}

/// Sends a server on a Unix socket content whose length it does not announce.
pub(crate) fn send_in_chunks(socket: &Path, path: &str, body: &str) -> Result<Answer> {
    let mut stream =
        UnixStream::connect(socket).with_context(|| format!("connect to {}", socket.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: limiter\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream
        .write_all(head.as_bytes())
        .context("send a request")?;
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    drop(stream.write_all(chunk.as_bytes()));
    answer(stream)
}

/// Asks for a path of a server in a namespace.
pub(crate) fn get(namespace: &Namespace, server: SocketAddr, path: &str) -> Result<Answer> {
    let stream = namespace
        .run(|| Ok(TcpStream::connect(server)?))
        .with_context(|| format!("connect to {server}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    exchange(stream, "GET", path, "")
}

fn exchange(mut stream: impl Read + Write, method: &str, path: &str, body: &str) -> Result<Answer> {
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: limiter\r\nConnection: close\r\n{length}\r\n");
    stream
        .write_all(head.as_bytes())
        .context("send a request")?;
    // A server that refuses a request by its head may not wait for the rest.
    drop(stream.write_all(body.as_bytes()));
    answer(stream)
}

fn answer(mut stream: impl Read) -> Result<Answer> {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        // Who refuses a request without reading it to its end has answered all the same.
        Err(error) if error.kind() == ErrorKind::ConnectionReset && !text.is_empty() => {}
        read => drop(read.context("receive an answer")?),
    }
    Answer::parse(&String::from_utf8(text)?)
}
