//! Which limits a packet meets.

use super::{InForce, Tables};
use crate::{
    address::Address,
    parse::{Packet, UpperKind},
    policy::{Kind, Policy, PortTable},
    protocol::IpProtocol,
};

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The place of a packet in the match table.
#[inline(always)]
#[must_use]
pub fn index<T: Tables>(packet: &Packet, tables: &T, rules: InForce<'_>) -> u32 {
    let policy = rules.policy;
    let number = rules.force.policy();
    let kind = kind(packet);
    let (mut destination_port, mut source_port) = (0, 0);
    if policy.by_port != 0 && packet.upper.kind == UpperKind::Ports {
        let tables_of = match packet.protocol {
            IpProtocol::TCP => Some((PortTable::TcpDestination, PortTable::TcpSource)),
            IpProtocol::UDP => Some((PortTable::UdpDestination, PortTable::UdpSource)),
            _ => None,
        };
        if let Some((destination, source)) = tables_of {
            destination_port =
                tables.port_class(number, destination, packet.upper.destination_port);
            source_port = tables.port_class(number, source, packet.upper.source_port);
        }
    }
    let kind = 2 * kind as u32 + u32::from(packet.fragment);
    let destination = destination(packet.destination, policy);
    policy.match_index(kind, destination_port, source_port, destination)
}

/// The kind that a packet is of.
#[inline(always)]
#[must_use]
pub fn kind(packet: &Packet) -> Kind {
    match (packet.upper.kind, packet.protocol) {
        (UpperKind::Ports, IpProtocol::TCP) => match packet.upper.tcp_flags & (SYN | ACK) {
            SYN => Kind::TcpSyn,
            ACK => Kind::TcpEstablished,
            _ => Kind::TcpOther,
        },
        (UpperKind::Ports, IpProtocol::UDP | IpProtocol::UDP_LITE) => Kind::Udp,
        (UpperKind::Ports, _) => Kind::Ports,
        (UpperKind::Icmp, _) => Kind::Icmp,
        _ => Kind::Portless,
    }
}

/// The class of a destination: that of the longest prefix that covers it, 0 if none does.
#[inline(always)]
fn destination(address: Address, policy: &Policy) -> u32 {
    let mut index = 0;
    while index < policy.destination_count {
        let Some(destination) = policy.destinations.get(index as usize) else {
            break;
        };
        if address.masked(destination.mask) == destination.prefix {
            return destination.class as u32;
        }
        index += 1;
    }
    0
}
