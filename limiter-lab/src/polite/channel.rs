//! Requests that are answered one by one, in any order: datagrams and pings.

use std::{
    collections::HashSet,
    io::{ErrorKind, Read as _},
    net::{IpAddr, SocketAddr},
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Answers, Polite, ping::Ping};
use crate::{pace, stop::Stop, task::Progress};

/// How often the receiver looks whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// A connected socket, and how requests look on it.
pub(super) struct Channel {
    socket: Socket,
    ping: Option<Ping>,
}

/// What every request contains and every answer brings back: its number and when it was sent, nanoseconds after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) number: u64,
    pub(super) sent_at: u64,
}

impl Mark {
    pub(super) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.number) << 64 | u128::from(self.sent_at)).to_be_bytes()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, sent_at) = bytes.split_at_checked(8)?;
        let word = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
        Some(Self {
            number: word(number)?,
            sent_at: word(sent_at)?,
        })
    }
}

impl Channel {
    /// Opens one in the calling thread's namespace: for datagrams if there is a port, for pings otherwise.
    pub(super) fn open(server: IpAddr, port: Option<u16>) -> Result<Self> {
        static IDENTIFIER: AtomicU16 = AtomicU16::new(1);
        let (domain, icmp) = match server {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let ping = port.is_none().then(|| Ping {
            identifier: IDENTIFIER.fetch_add(1, Ordering::Relaxed),
            ipv6: server.is_ipv6(),
        });
        let (kind, protocol) = if ping.is_some() {
            (Type::RAW, icmp)
        } else {
            (Type::DGRAM, Protocol::UDP)
        };
        let socket = Socket::new(domain, kind, Some(protocol)).context("open a client's socket")?;
        let address = SocketAddr::from((server, port.unwrap_or(0)));
        socket
            .connect(&address.into())
            .with_context(|| format!("connect to {server}"))?;
        socket
            .set_read_timeout(Some(LOOK))
            .context("set a socket's patience")?;
        Ok(Self { socket, ping })
    }

    /// Asks and listens until all is asked and answered, or given up.
    pub(super) fn converse(
        &self,
        client: &Polite,
        stop: &Stop,
        progress: &Progress,
    ) -> Result<Answers> {
        let start = Instant::now();
        let asked = OnceLock::new();
        let times = thread::scope(|scope| {
            let listener = scope.spawn(|| self.listen(start, client.patience, &asked, progress));
            let sent = self.ask(start, client, stop, progress);
            // Also when asking failed: otherwise nobody would ever tell the listener.
            asked.get_or_init(|| (progress.sent(), Instant::now()));
            let times = listener
                .join()
                .map_err(|_panic| anyhow!("a client's listener panicked"))?;
            sent.and(times)
        })?;
        Answers::new(progress.sent(), times)
    }

    fn ask(&self, start: Instant, client: &Polite, stop: &Stop, progress: &Progress) -> Result<()> {
        pace::wake_exactly()?;
        for number in 0.. {
            let moment = pace::moment_of(number, client.per_second);
            if moment >= client.duration || !stop.sleep_until(start + moment) {
                break;
            }
            let mark = Mark {
                number,
                sent_at: nanoseconds(start.elapsed())?,
            };
            let request = match &self.ping {
                Some(ping) => ping.request(mark),
                None => mark.to_bytes().to_vec(),
            };
            progress.sent.store(number + 1, Ordering::Relaxed);
            // What cannot be sent (no neighbour answers, the server's port was closed a moment ago) is lost like what gets no answer.
            drop(self.socket.send(&request));
        }
        Ok(())
    }

    /// Collects how long each answer took, until the last of `asked` requests is answered or given up.
    fn listen(
        &self,
        start: Instant,
        patience: Duration,
        asked: &OnceLock<(u64, Instant)>,
        progress: &Progress,
    ) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        let mut seen = HashSet::new();
        let mut buffer = [0; 2048];
        loop {
            if let Some((sent, at)) = asked.get()
                && (progress.answered() == *sent || at.elapsed() > patience)
            {
                return Ok(times);
            }
            let length = match (&self.socket).read(&mut buffer) {
                Ok(length) => length,
                Err(error) if is_no_answer(error.kind()) => continue,
                Err(error) => return Err(error).context("receive an answer"),
            };
            let mark = match &self.ping {
                Some(ping) => ping.answer(&buffer[..length]),
                None => Mark::from_bytes(&buffer[..length]),
            };
            let Some(Mark { number, sent_at }) = mark else {
                continue;
            };
            let time = start
                .elapsed()
                .saturating_sub(Duration::from_nanos(sent_at));
            if time <= patience && seen.insert(number) {
                times.push(time);
                progress
                    .answered
                    .store(u64::try_from(times.len())?, Ordering::Relaxed);
            }
        }
    }
}

/// A moment of silence, or the news that an earlier request was refused.
fn is_no_answer(kind: ErrorKind) -> bool {
    use ErrorKind::{
        ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied, WouldBlock,
    };
    matches!(
        kind,
        WouldBlock | ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied
    )
}

fn nanoseconds(duration: Duration) -> Result<u64> {
    u64::try_from(duration.as_nanos()).context("a conversation of centuries")
}
