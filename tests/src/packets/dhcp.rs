//! DHCP and DHCPv6, which a host needs to have an address at all, and what looks like them.

use std::net::{Ipv4Addr, Ipv6Addr};

use limiter_common::{counters::Reason, needs::Need};
use limiter_lab::frame::Frame;

use super::{ATTACKER, ATTACKER6, HOST, HOST6, KEY, Outcome, Row, v4};

const NEED: Outcome = Outcome::Need(Need::Dhcp);
const CHARGED: Outcome = Outcome::Charged(KEY);
const NOBODY: Outcome = Outcome::Dropped(Reason::InvalidSource);

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const ROUTER_KEY: &str = "fe80::1";
const ALL_DHCP_AGENTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

/// Both directions and relays, by their ports; from `0.0.0.0` only a client's broadcast.
#[must_use]
pub fn ipv4() -> Vec<Row> {
    let nobody = Ipv4Addr::UNSPECIFIED;
    let broadcast = Ipv4Addr::BROADCAST;
    let udp = |source: Ipv4Addr, destination: Ipv4Addr, from, to| {
        Frame::ipv4(source, destination)
            .udp(from, to)
            .payload(240)
            .build()
    };
    let tcp = v4().tcp(68, 67, 0).build();
    vec![
        Row::new("discover", udp(nobody, broadcast, 68, 67), NEED),
        Row::new("renew", udp(ATTACKER, HOST, 68, 67), NEED),
        Row::new("rebind", udp(ATTACKER, broadcast, 68, 67), NEED),
        Row::new("offer", udp(ATTACKER, HOST, 67, 68), NEED),
        Row::new("offer to all", udp(ATTACKER, broadcast, 67, 68), NEED),
        Row::new("relay", udp(ATTACKER, HOST, 67, 67), NEED),
        Row::new("discover to one host", udp(nobody, HOST, 68, 67), NOBODY),
        Row::new(
            "a server without an address",
            udp(nobody, broadcast, 67, 68),
            NOBODY,
        ),
        Row::new(
            "a relay without an address",
            udp(nobody, broadcast, 67, 67),
            NOBODY,
        ),
        Row::new(
            "no DHCP from nobody",
            udp(nobody, broadcast, 1_024, 67),
            NOBODY,
        ),
        Row::new(
            "discover from loopback",
            udp(Ipv4Addr::LOCALHOST, broadcast, 68, 67),
            NOBODY,
        ),
        Row::new("client to client", udp(ATTACKER, HOST, 68, 68), CHARGED),
        Row::new("from any port", udp(ATTACKER, HOST, 1_024, 67), CHARGED),
        Row::new("to any port", udp(ATTACKER, HOST, 67, 1_024), CHARGED),
        Row::new("ports of DHCPv6", udp(ATTACKER, HOST, 546, 547), CHARGED),
        Row::new("over TCP", tcp, CHARGED),
    ]
}

/// Both directions and relays; a client has a link-local address from the start.
#[must_use]
pub fn ipv6() -> Vec<Row> {
    let udp = |source: Ipv6Addr, destination: Ipv6Addr, from, to| {
        Frame::ipv6(source, destination)
            .udp(from, to)
            .payload(60)
            .build()
    };
    let router = Outcome::Charged(ROUTER_KEY);
    vec![
        Row::new("solicit", udp(ROUTER, ALL_DHCP_AGENTS, 546, 547), NEED),
        Row::new("advertise", udp(ROUTER, HOST6, 547, 546), NEED),
        Row::new(
            "from a global address",
            udp(ATTACKER6, HOST6, 547, 546),
            NEED,
        ),
        Row::new("relay", udp(ROUTER, HOST6, 547, 547), NEED),
        Row::new(
            "from nobody",
            udp(Ipv6Addr::UNSPECIFIED, ALL_DHCP_AGENTS, 546, 547),
            NOBODY,
        ),
        Row::new("client to client", udp(ROUTER, HOST6, 546, 546), router),
        Row::new("from any port", udp(ROUTER, HOST6, 1_024, 547), router),
        Row::new("ports of DHCP", udp(ROUTER, HOST6, 68, 67), router),
    ]
}
