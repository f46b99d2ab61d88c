//! A connection for every request.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{Answers, Polite};
use crate::{pace, stop::Stop, task::Progress};

/// Asks one after the other. A slow answer delays the next request; what should have been asked meanwhile is not made up for.
pub(super) fn converse(
    client: &Polite,
    port: u16,
    stop: &Stop,
    progress: &Progress,
) -> Result<Answers> {
    let server = SocketAddr::from((client.server, port));
    let start = Instant::now();
    let mut times = Vec::new();
    let mut next = 0;
    loop {
        let moment = pace::moment_of(next, client.per_second);
        if moment >= client.duration || !stop.sleep_until(start + moment) {
            return Answers::new(progress.sent(), times);
        }
        progress.sent.fetch_add(1, Ordering::Relaxed);
        let asked = Instant::now();
        // Refused, reset or silent: in each case there is no answer.
        if ask(server, client.patience).is_ok() && asked.elapsed() <= client.patience {
            times.push(asked.elapsed());
            progress.answered.fetch_add(1, Ordering::Relaxed);
        }
        next = pace::due_after(start.elapsed(), client.per_second).max(next + 1);
    }
}

fn ask(server: SocketAddr, patience: Duration) -> io::Result<()> {
    let mut connection = TcpStream::connect_timeout(&server, patience)?;
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
    let question = *b"are you there?";
    connection.write_all(&question)?;
    let mut answer = question;
    connection.read_exact(&mut answer)?;
    if answer == question {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}
