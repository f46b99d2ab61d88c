//! What these tests share: a lab each, a daemon whose log is kept, and its answers as values.

mod ask;
mod http;
mod link;
mod log;
mod running;
mod second;
mod site;
mod steady;
mod traces;
mod wait;

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

pub(crate) use self::{
    ask::{at_rest, explain, status, top},
    http::{Answer, get, request, send, send_in_chunks},
    link::program_on,
    log::Log,
    running::{Running, to_its_end},
    second::{SECOND_HOST_INTERFACE, SECOND_NET_INTERFACE, lay_second},
    site::{Site, on_host, start, start_logged},
    steady::in_time,
    traces::assert_no_traces,
    wait::{PATIENCE, wait_for, wait_until},
};

/// A source that sends too much.
pub(crate) const ATTACKER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// Another one.
pub(crate) const ATTACKER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 7);
/// A port where nobody listens.
pub(crate) const DISCARD: u16 = 9;

/// What a bucket admits in a time.
pub(crate) fn allowance(burst: u64, rate_per_second: u64, time: Duration) -> u64 {
    let refilled = time.as_nanos() * u128::from(rate_per_second) / 1_000_000_000;
    burst + u64::try_from(refilled).expect("a test's time")
}
