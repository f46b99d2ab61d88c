//! The host's own needs: what must come in whatever a source has done, each kind under a ceiling of its own.

use crate::{
    address::Address,
    named::named_enum,
    parse::{NonIp, Packet, UpperKind, Version},
    protocol::IpProtocol,
    source::Validity,
};

named_enum! {
    /// A kind of traffic without which the host falls off its network.
    pub enum Need {
        /// ARP (RFC 826).
        Arp = "arp",
        /// IPv6 neighbour and router discovery with hop limit 255 (RFC 4861 section 7.1), duplicate address
        /// detection included (RFC 4862 section 5.4).
        NeighbourDiscovery = "neighbour_discovery",
        /// ICMP "fragmentation needed" (RFC 1191) and ICMPv6 "packet too big" (RFC 8201).
        PathMtu = "path_mtu",
        /// DHCP (RFC 2131) and DHCPv6 (RFC 8415), by their ports.
        Dhcp = "dhcp",
        /// LACP and the other slow protocols.
        Lacp = "lacp",
        /// LLDP.
        Lldp = "lldp",
        /// 802.1X.
        Eapol = "eapol",
        /// Spanning tree.
        Stp = "stp",
        /// VRRP to its group with a TTL or hop limit of 255 (RFC 9568 section 5.1).
        Vrrp = "vrrp",
    }
}

impl Need {
    /// The need that a frame without IP serves, if any.
    #[inline(always)]
    #[must_use]
    pub const fn of_frame(kind: NonIp) -> Option<Self> {
        match kind {
            NonIp::Arp => Some(Self::Arp),
            NonIp::Lacp => Some(Self::Lacp),
            NonIp::Lldp => Some(Self::Lldp),
            NonIp::Eapol => Some(Self::Eapol),
            NonIp::Stp => Some(Self::Stp),
            NonIp::Llc | NonIp::Ptp | NonIp::Macsec | NonIp::Pppoe | NonIp::Other => None,
        }
    }

    /// The need that a packet serves, if any. `validity` is that of its source.
    #[inline(always)]
    #[must_use]
    pub fn of_packet(packet: &Packet, validity: Validity) -> Option<Self> {
        if packet.fragment || matches!(validity, Validity::Impossible) {
            return None;
        }
        let unspecified = matches!(validity, Validity::Unspecified);
        let upper = &packet.upper;
        match (packet.version, upper.kind) {
            (version, UpperKind::Ports)
                if packet.protocol == IpProtocol::UDP
                    && is_dhcp(version, upper.source_port, upper.destination_port)
                    && (!unspecified || is_first_dhcp(packet)) =>
            {
                Some(Self::Dhcp)
            }
            (Version::V6, UpperKind::Icmp)
                if is_discovery(packet) && (!unspecified || is_address_detection(packet)) =>
            {
                Some(Self::NeighbourDiscovery)
            }
            (_, UpperKind::Icmp) if is_path_mtu(packet) && !unspecified => Some(Self::PathMtu),
            (_, UpperKind::OtherProtocol) if is_vrrp(packet) && !unspecified => Some(Self::Vrrp),
            _ => None,
        }
    }
}

/// A packet that no router has forwarded (RFC 5082).
const ON_LINK: u8 = 255;

const DESTINATION_UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
const PACKET_TOO_BIG: u8 = 2;

const ROUTER_SOLICITATION: u8 = 133;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const REDIRECT: u8 = 137;

const DHCP_SERVER: u16 = 67;
const DHCP_CLIENT: u16 = 68;
const DHCPV6_CLIENT: u16 = 546;
const DHCPV6_SERVER: u16 = 547;

/// 224.0.0.18.
const VRRP_GROUP_V4: Address = Address::from_v4(0xe000_0012);
/// `ff02::12`.
const VRRP_GROUP_V6: Address = Address {
    high: 0xff02 << 48,
    low: 0x12,
};

/// `ff02::1:ff00:0/104` (RFC 4291 section 2.7.1).
const SOLICITED_NODE: Address = Address {
    high: 0xff02 << 48,
    low: 0x1_ff00_0000,
};
const SOLICITED_NODE_MASK: Address = Address::mask(104);

#[inline(always)]
const fn is_path_mtu(packet: &Packet) -> bool {
    match packet.version {
        Version::V4 => {
            packet.upper.icmp_type == DESTINATION_UNREACHABLE
                && packet.upper.icmp_code == FRAGMENTATION_NEEDED
        }
        Version::V6 => packet.upper.icmp_type == PACKET_TOO_BIG,
    }
}

#[inline(always)]
const fn is_discovery(packet: &Packet) -> bool {
    packet.hop_limit == ON_LINK
        && matches!(packet.upper.icmp_type, ROUTER_SOLICITATION..=REDIRECT)
        && packet.upper.icmp_code == 0
}

/// Duplicate address detection asks a solicited-node group, and nobody else (RFC 4861 section 7.1.1).
#[inline(always)]
fn is_address_detection(packet: &Packet) -> bool {
    packet.upper.icmp_type == NEIGHBOUR_SOLICITATION
        && packet.destination.masked(SOLICITED_NODE_MASK) == SOLICITED_NODE
}

/// Client to server, server to client, and relays, which speak from the server port on both ends.
#[inline(always)]
const fn is_dhcp(version: Version, source: u16, destination: u16) -> bool {
    let (client, server) = match version {
        Version::V4 => (DHCP_CLIENT, DHCP_SERVER),
        Version::V6 => (DHCPV6_CLIENT, DHCPV6_SERVER),
    };
    (source == client && destination == server)
        || (source == server && (destination == client || destination == server))
}

/// A host without an address can only broadcast (RFC 2131 section 4.1). DHCPv6 clients have a link-local one.
#[inline(always)]
fn is_first_dhcp(packet: &Packet) -> bool {
    packet.upper.source_port == DHCP_CLIENT && packet.destination == Address::from_v4(u32::MAX)
}

#[inline(always)]
fn is_vrrp(packet: &Packet) -> bool {
    let group = match packet.version {
        Version::V4 => VRRP_GROUP_V4,
        Version::V6 => VRRP_GROUP_V6,
    };
    packet.protocol == IpProtocol::VRRP
        && packet.hop_limit == ON_LINK
        && packet.destination == group
}
