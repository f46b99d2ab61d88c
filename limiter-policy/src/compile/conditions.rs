//! When a limit matches a packet, as conditions on what the match table tells apart.

use limiter_common::policy::{KINDS, Kind};

use crate::spec::{ANY_PORT, Packets, PortMatch, Protocol, ServiceSpec};

/// Ports, first and last.
pub(super) type Range = (u16, u16);

/// A condition on the protocol and ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    /// The protocol.
    pub(super) protocol: Protocol,
    /// Where the destination port lies; `None` for anywhere, or unknown.
    pub(super) destination: Option<Range>,
    /// The same for the source port.
    pub(super) source: Option<Range>,
}

impl From<PortMatch> for Ports {
    fn from(of: PortMatch) -> Self {
        let narrower = |range| (range != ANY_PORT).then_some(range);
        let mut ports = Self {
            protocol: of.protocol,
            destination: narrower(of.destination),
            source: narrower(of.source),
        };
        // UDP-Lite is of the kind of UDP, but its ports are of no service. Having no class, they lie in no range.
        if ports.protocol == Protocol::Udp && ports.destination.is_none() && ports.source.is_none()
        {
            ports.destination = Some(ANY_PORT);
        }
        ports
    }
}

/// Source ports of answers.
pub(super) const fn answers(source: Range) -> Ports {
    Ports {
        protocol: Protocol::Udp,
        destination: None,
        source: Some(source),
    }
}

/// Whether packets of a service can be of this kind.
pub(super) fn can_match(packets: &Packets, service: &ServiceSpec) -> bool {
    let has = |protocol| service.matches.iter().any(|of| of.protocol == protocol);
    match packets {
        Packets::Any | Packets::Fragments => true,
        Packets::TcpSyn | Packets::TcpEstablished => has(Protocol::Tcp),
        Packets::Udp | Packets::Answers(_) => has(Protocol::Udp),
        Packets::Icmp | Packets::Portless => false,
    }
}

/// Whether packets are of a kind of the match table: twice a [`Kind`], plus one for a fragment.
pub(super) fn is_of_kind(packets: &Packets, number: u32) -> bool {
    debug_assert!(number < KINDS, "a kind");
    let (kind, fragment) = (Kind::from_number(number / 2), number & 1 != 0);
    match packets {
        Packets::Any => true,
        Packets::TcpSyn => kind == Some(Kind::TcpSyn),
        Packets::TcpEstablished => kind == Some(Kind::TcpEstablished),
        Packets::Udp | Packets::Answers(_) => kind == Some(Kind::Udp),
        Packets::Icmp => kind == Some(Kind::Icmp),
        Packets::Fragments => fragment,
        Packets::Portless => kind == Some(Kind::Portless),
    }
}

/// The protocol whose ports have classes, of packets of a kind of the match table.
pub(super) fn protocol(number: u32) -> Option<Protocol> {
    match Kind::from_number(number / 2)? {
        Kind::TcpSyn | Kind::TcpEstablished | Kind::TcpOther => Some(Protocol::Tcp),
        Kind::Udp => Some(Protocol::Udp),
        Kind::Icmp | Kind::Ports | Kind::Portless => None,
    }
}
