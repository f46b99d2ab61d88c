//! What a host needs from its network: addresses of neighbours, routers, the path's MTU, and an answer to a ping.

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{ArpEthIpv4Packet, ArpOperation, EtherType};

use super::{Frame, Network};
use crate::{lab::NET_MAC, mac::Mac};

impl Frame {
    /// Asks everybody for the hardware address of `target`.
    #[must_use]
    pub fn arp_request(sender: Ipv4Addr, target: Ipv4Addr) -> Self {
        arp(ArpOperation::REQUEST, sender, Mac([0; 6]), target).to(Mac::BROADCAST)
    }

    /// Tells the host `target` the hardware address of `sender`.
    #[must_use]
    pub fn arp_reply(sender: Ipv4Addr, target: Ipv4Addr, target_mac: Mac) -> Self {
        arp(ArpOperation::REPLY, sender, target_mac, target).to(target_mac)
    }

    /// An echo request, of ICMP or `ICMPv6`.
    #[must_use]
    pub fn echo_request(self, identifier: u16, sequence: u16) -> Self {
        let kind = if self.is_ipv6() { 128 } else { 8 };
        let ([a, b], [c, d]) = (identifier.to_be_bytes(), sequence.to_be_bytes());
        self.icmp(kind, 0, [a, b, c, d])
    }

    /// The path does not take packets larger than `mtu`: "fragmentation needed" or "packet too big". The payload should begin with the packet
    /// that was too large.
    #[must_use]
    pub fn packet_too_big(self, mtu: u16) -> Self {
        let [high, low] = mtu.to_be_bytes();
        let (kind, code) = if self.is_ipv6() { (2, 0) } else { (3, 4) };
        self.icmp(kind, code, [0, 0, high, low])
    }

    /// Asks the solicited-node group of `target` for its hardware address. From `::` it is duplicate address detection.
    #[must_use]
    pub fn neighbour_solicitation(source: Ipv6Addr, target: Ipv6Addr) -> Self {
        let [.., b, c, d] = target.octets();
        let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, b, c, d]);
        let asker = if source.is_unspecified() {
            None
        } else {
            Some(SOURCE_LINK_LAYER)
        };
        Self::ipv6(source, group)
            .ttl(255)
            .icmp(135, 0, [0; 4])
            .payload_bytes(&neighbour(target, asker))
    }

    /// Answers a solicitation: `source` has the sender's hardware address.
    #[must_use]
    pub fn neighbour_advertisement(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        const SOLICITED_AND_OVERRIDE: [u8; 4] = [0x60, 0, 0, 0];
        let content = neighbour(source, Some(TARGET_LINK_LAYER));
        Self::ipv6(source, destination)
            .ttl(255)
            .icmp(136, 0, SOLICITED_AND_OVERRIDE)
            .payload_bytes(&content)
    }

    /// Asks all routers to speak.
    #[must_use]
    pub fn router_solicitation(source: Ipv6Addr) -> Self {
        Self::ipv6(source, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2))
            .ttl(255)
            .icmp(133, 0, [0; 4])
    }

    /// Says to all nodes that there is a router, though none to use by default.
    #[must_use]
    pub fn router_advertisement(source: Ipv6Addr) -> Self {
        // Hop limit 64, no flags, lifetime 0; reachable time and retransmission timer unspecified.
        Self::ipv6(source, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1))
            .ttl(255)
            .icmp(134, 0, [64, 0, 0, 0])
            .payload(8)
    }

    fn is_ipv6(&self) -> bool {
        matches!(self.network, Network::Ipv6(..))
    }
}

const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;

/// A target, and an option with the sender's hardware address.
fn neighbour(target: Ipv6Addr, option: Option<u8>) -> Vec<u8> {
    let mut content = target.octets().to_vec();
    if let Some(option) = option {
        content.extend([option, 1]);
        content.extend(NET_MAC.0);
    }
    content
}

fn arp(operation: ArpOperation, sender: Ipv4Addr, target_mac: Mac, target: Ipv4Addr) -> Frame {
    let packet = ArpEthIpv4Packet {
        operation,
        sender_mac: NET_MAC.0,
        sender_ipv4: sender.octets(),
        target_mac: target_mac.0,
        target_ipv4: target.octets(),
    };
    Frame::other(EtherType::ARP.0).payload_bytes(&packet.to_bytes())
}
