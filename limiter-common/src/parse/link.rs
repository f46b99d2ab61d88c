//! Ethernet and VLAN tags.

use super::{Content, NonIp, Parsed, ipv4, ipv6};
use crate::{frame::Frame, opaque::forget, protocol::EtherType};

/// VLAN tags that are stepped over: a customer tag inside a service tag (IEEE 802.1ad).
pub const MAX_TAGS: u32 = 2;

const ETHERNET: u32 = 14;
const TAG: u32 = 4;

/// LLC addresses of the spanning tree protocol (IEEE 802.1D section 7.12.3).
const STP_LLC: [u8; 2] = [0x42, 0x42];
/// The group of all bridges (IEEE 802.1D table 7-9).
const BRIDGE_GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00];

#[inline(always)]
pub(super) fn parse<F: Frame>(frame: &F) -> Parsed {
    let Some(ethernet) = frame.read::<14>(0) else {
        return Parsed::without_packet(0, Content::Malformed);
    };
    let mut ether_type = EtherType(u16::from_be_bytes([ethernet[12], ethernet[13]]));
    let mut tags = 0;
    let mut offset = ETHERNET;
    while ether_type.is_tag() {
        if tags == MAX_TAGS {
            return Parsed::without_packet(tags, Content::TooManyTags);
        }
        let Some(tag) = frame.read::<4>(offset) else {
            return Parsed::without_packet(tags, Content::Malformed);
        };
        ether_type = EtherType(u16::from_be_bytes([tag[2], tag[3]]));
        offset += TAG;
        tags += 1;
    }
    let offset = forget::<0x1f>(offset);
    let tags = forget::<0x3>(tags);
    let packet = match ether_type {
        EtherType::IPV4 => ipv4::parse(frame, offset),
        EtherType::IPV6 => ipv6::parse(frame, offset),
        other => {
            return Parsed::without_packet(
                tags,
                Content::NonIp(non_ip(frame, other, ethernet, offset)),
            );
        }
    };
    match packet {
        Some(packet) => Parsed {
            tags,
            content: Content::Ip,
            packet,
        },
        None => Parsed::without_packet(tags, Content::Malformed),
    }
}

#[inline(always)]
fn non_ip<F: Frame>(frame: &F, ether_type: EtherType, ethernet: [u8; 14], offset: u32) -> NonIp {
    match ether_type {
        EtherType::ARP => NonIp::Arp,
        EtherType::SLOW => NonIp::Lacp,
        EtherType::LLDP => NonIp::Lldp,
        EtherType::EAPOL => NonIp::Eapol,
        EtherType::PTP => NonIp::Ptp,
        EtherType::MACSEC => NonIp::Macsec,
        EtherType::PPPOE_DISCOVERY | EtherType::PPPOE_SESSION => NonIp::Pppoe,
        length if length.is_length() => {
            let group = [
                ethernet[0],
                ethernet[1],
                ethernet[2],
                ethernet[3],
                ethernet[4],
                ethernet[5],
            ];
            if group == BRIDGE_GROUP && frame.read::<2>(offset) == Some(STP_LLC) {
                NonIp::Stp
            } else {
                NonIp::Llc
            }
        }
        _ => NonIp::Other,
    }
}
