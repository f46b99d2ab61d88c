//! Who is on the network: attackers, and guests who behave.

use std::{net::IpAddr, time::Duration};

use anyhow::Result;
use limiter_lab::{
    Answers, ECHO_PORT, Flood, HOST_V4, HOST_V6, Lab, Manner, NET_V4, NET_V6, Polite, Sent,
    Sources, Stop, Task, frame::Frame,
};

/// Packets per second of each attacker, made in the kernel.
const FLOOD_RATE: u64 = 150_000;
/// More than any flood sends in its time: it ends by time.
const NO_BOUND: u64 = u64::MAX;

/// An attacker at work.
pub(crate) struct Attacker {
    name: &'static str,
    address: IpAddr,
    task: Task<Sent>,
}

/// What an attacker did.
pub(crate) struct Attack {
    /// The source, as the limiter sees it.
    pub(crate) name: &'static str,
    /// One of its addresses.
    pub(crate) address: IpAddr,
    /// Packets, and in which time.
    pub(crate) sent: Sent,
}

impl Attacker {
    /// Starts all of them: one IPv4 address, and one IPv6 /64 with a new address for every packet.
    pub(crate) fn let_loose(lab: &Lab, duration: Duration, stop: &Stop) -> Result<Vec<Self>> {
        let ipv4 = IpAddr::from([198, 51, 100, 7]);
        let ipv6 = IpAddr::from([0x2001, 0xdb8, 0xa, 1, 0, 0, 0, 1]);
        [
            (
                "198.51.100.7",
                ipv4,
                IpAddr::from(HOST_V4),
                Sources::one(ipv4),
            ),
            (
                "2001:db8:a:1::/64",
                ipv6,
                IpAddr::from(HOST_V6),
                Sources::one(ipv6).prefixes(64).random_hosts(),
            ),
        ]
        .into_iter()
        .enumerate()
        .map(|(cpu, (name, address, host, sources))| {
            let flood = Flood {
                template: Frame::ip(address, host)
                    .udp(4_444, 53)
                    .payload(18)
                    .template(),
                sources,
                packets: NO_BOUND,
                duration,
                rate_per_second: Some(FLOOD_RATE),
                cpu: (cpu < cpus()).then_some(cpu),
            };
            Ok(Self {
                name,
                address,
                task: flood.start(lab, stop)?,
            })
        })
        .collect()
    }

    /// Packets sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.task.progress().sent()
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Result<Attack> {
        let Self {
            name,
            address,
            task,
        } = self;
        Ok(Attack {
            name,
            address,
            sent: task.join()?,
        })
    }
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A client who behaves.
pub(crate) struct Guest {
    name: &'static str,
    task: Task<Answers>,
}

/// What became of a guest's requests.
pub(crate) struct Visit {
    /// Who, and how.
    pub(crate) name: &'static str,
    /// The answers.
    pub(crate) answers: Answers,
}

impl Guest {
    /// Starts all of them.
    pub(crate) fn invite(lab: &Lab, duration: Duration, stop: &Stop) -> Result<Vec<Self>> {
        let udp = Manner::Udp { port: ECHO_PORT };
        [
            ("UDP from 192.0.2.2", IpAddr::from(HOST_V4), udp, 100),
            ("UDP from 2001:db8::2", IpAddr::from(HOST_V6), udp, 100),
            (
                "ping from 192.0.2.2",
                IpAddr::from(HOST_V4),
                Manner::Ping,
                10,
            ),
            (
                "ping from 2001:db8::2",
                IpAddr::from(HOST_V6),
                Manner::Ping,
                10,
            ),
        ]
        .into_iter()
        .map(|(name, server, manner, per_second)| {
            let polite = Polite {
                per_second,
                ..Polite::new(server, manner, duration)
            };
            Ok(Self {
                name,
                task: polite.start(lab, stop)?,
            })
        })
        .collect()
    }

    /// Requests asked and answered so far.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let progress = self.task.progress();
        (progress.sent(), progress.answered())
    }

    /// Waits for its end.
    pub(crate) fn leave(self) -> Result<Visit> {
        Ok(Visit {
            name: self.name,
            answers: self.task.join()?,
        })
    }
}

/// The sources of the guests, as the limiter sees them.
pub(crate) const GUEST_SOURCES: [(&str, IpAddr); 2] = [
    ("192.0.2.2", IpAddr::V4(NET_V4)),
    ("2001:db8::/64", IpAddr::V6(NET_V6)),
];
