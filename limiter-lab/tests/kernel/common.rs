//! What the laboratory's tests share.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_lab::{Flood, HOST_V4, HOST_V6, Lab, Sources, frame::Frame};

pub(crate) const ATTACKER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub(crate) const ATTACKER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 7);
/// A port where nobody listens.
pub(crate) const DISCARD: u16 = 9;

/// Rates are measured, so only one test of a program runs at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn lab() -> Lab {
    Lab::new("labtest").expect("a lab")
}

/// Small datagrams to the host, for half a minute at most.
pub(crate) fn flood(sources: Sources, packets: u64, rate_per_second: Option<u64>) -> Flood {
    let frame = match sources.address(0).expect("valid sources") {
        IpAddr::V4(source) => Frame::ipv4(source, HOST_V4),
        IpAddr::V6(source) => Frame::ipv6(source, HOST_V6),
    };
    Flood {
        template: frame.udp(1234, DISCARD).payload(18).template(),
        sources,
        packets,
        duration: Duration::from_secs(30),
        rate_per_second,
        cpu: None,
    }
}
