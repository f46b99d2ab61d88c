//! What is built is read back by a parser, and its checksums are summed by hand.

use etherparse::{LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};

use super::*;

const ATTACKER: [u8; 4] = [198, 51, 100, 7];
const HOST: [u8; 4] = [192, 0, 2, 1];
const ATTACKER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1);
const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// The one's complement sum of RFC 1071; 0xffff over anything that includes its own checksum.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    u16::try_from((folded & 0xffff) + (folded >> 16)).expect("16 bits")
}

/// The sum over a transport segment and the addresses and length it stands for.
fn segment_sum(frame: &Frame, number: u8) -> u16 {
    let bytes = frame.build();
    let segment = &bytes[frame.transport_offset()..];
    let ip = &bytes[frame.ip_offset()..];
    let addresses = if ip[0] >> 4 == 4 {
        &ip[12..20]
    } else {
        &ip[8..40]
    };
    let length = u32::try_from(segment.len()).expect("short").to_be_bytes();
    sum(&[addresses, &length, &[0, number], segment])
}

#[test]
fn a_tagged_datagram_with_options_is_read_back() {
    let frame = Frame::ipv4(ATTACKER, HOST)
        .ttl(3)
        .options(10)
        .udp(1234, 53)
        .payload(101)
        .tagged(&[100])
        .service_tagged(7);
    let bytes = frame.build();
    let packet = SlicedPacket::from_ethernet(&bytes).expect("valid");
    let ids: Vec<u16> = packet
        .link_exts
        .iter()
        .map(|tag| match tag {
            LinkExtSlice::Vlan(tag) => tag.vlan_identifier().value(),
            LinkExtSlice::Macsec(_) => panic!("no MACsec was asked for"),
        })
        .collect();
    assert_eq!(ids, [100, 7]);
    let Some(NetSlice::Ipv4(ip)) = packet.net else {
        panic!("no IPv4")
    };
    assert_eq!(
        (ip.header().ttl(), ip.header().ihl(), ip.header().source()),
        (3, 15, ATTACKER)
    );
    let Some(TransportSlice::Udp(udp)) = packet.transport else {
        panic!("no UDP")
    };
    assert_eq!(
        (
            udp.source_port(),
            udp.destination_port(),
            udp.payload().len()
        ),
        (1234, 53, 101)
    );
    assert_eq!(sum(&[&bytes[frame.ip_offset()..][..60]]), 0xffff);
    assert_eq!(segment_sum(&frame, 17), 0xffff);
}

#[test]
fn every_transport_checksum_is_valid_in_both_versions() {
    let four = Frame::ipv4(ATTACKER, HOST).payload(33);
    let six = Frame::ipv6(ATTACKER6, HOST6).payload(33);
    for (base, icmp) in [(four, 1), (six, 58)] {
        assert_eq!(segment_sum(&base.clone().udp(1, 2), 17), 0xffff);
        assert_eq!(
            segment_sum(&base.clone().tcp(1, 2, tcp_flags::SYN), 6),
            0xffff
        );
        let echo = base.clone().echo_request(5, 6);
        if icmp == 58 {
            assert_eq!(segment_sum(&echo, icmp), 0xffff);
        } else {
            assert_eq!(sum(&[&echo.build()[echo.transport_offset()..]]), 0xffff);
        }
    }
}

#[test]
fn a_chain_of_extensions_leads_to_the_transport() {
    let frame = Frame::ipv6(ATTACKER6, HOST6)
        .extension(Extension::hop_by_hop())
        .extension(Extension::routing())
        .extension(Extension::authentication(12))
        .extension(Extension::generic(60, 2048))
        .tcp(1, 22, tcp_flags::SYN);
    let bytes = frame.build();
    let packet = SlicedPacket::from_ethernet(&bytes).expect("valid");
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
        panic!("no TCP")
    };
    assert!(tcp.syn() && !tcp.ack());
    assert_eq!(frame.transport_offset(), 14 + 40 + 8 + 8 + 24 + 2048);
    assert_eq!(bytes.len(), frame.transport_offset() + 20);
}

#[test]
fn fragments_hold_the_datagram() {
    for frame in [Frame::ipv4(ATTACKER, HOST), Frame::ipv6(ATTACKER6, HOST6)] {
        let frame = frame
            .udp(1, 2)
            .payload_bytes(&(0..=255).cycle().take(3000).collect::<Vec<u8>>());
        let whole = frame.build()[frame.transport_offset()..].to_vec();
        let start = frame.clone().fragment(0, true).transport_offset();
        let fragments = frame.fragments(1480);
        assert_eq!(fragments.len(), 3);
        assert_eq!(
            fragments
                .iter()
                .flat_map(|bytes| &bytes[start..])
                .copied()
                .collect::<Vec<u8>>(),
            whole
        );
    }
    let last = &Frame::ipv4(ATTACKER, HOST)
        .udp(1, 2)
        .payload(2000)
        .fragments(1480)[1];
    assert_eq!(
        last[20..22],
        [0, 185],
        "offset in units of 8, no more fragments"
    );
}

#[test]
fn needs_are_read_back() {
    let bytes = Frame::arp_request(Ipv4Addr::new(192, 0, 2, 2), HOST.into()).build();
    let packet = SlicedPacket::from_ethernet(&bytes).expect("valid");
    assert!(matches!(packet.net, Some(NetSlice::Arp(_))));
    for frame in [
        Frame::neighbour_solicitation(ATTACKER6, HOST6),
        Frame::neighbour_advertisement(ATTACKER6, HOST6),
        Frame::router_solicitation(ATTACKER6),
        Frame::router_advertisement(ATTACKER6),
        Frame::ipv6(ATTACKER6, HOST6).packet_too_big(1280),
    ] {
        let bytes = frame.build();
        let packet = SlicedPacket::from_ethernet(&bytes).expect("valid");
        assert!(matches!(packet.transport, Some(TransportSlice::Icmpv6(_))));
        assert_eq!(segment_sum(&frame, 58), 0xffff);
    }
    let solicitation = Frame::neighbour_solicitation(ATTACKER6, HOST6).build();
    assert_eq!(solicitation[..6], [0x33, 0x33, 0xff, 0, 0, 1]);
}

#[test]
fn padding_belongs_to_no_packet() {
    let bytes = Frame::ipv4(ATTACKER, HOST)
        .protocol(6)
        .fragment(1480, false)
        .payload(8)
        .padded_to(60)
        .build();
    assert_eq!(bytes.len(), 60);
    assert_eq!(bytes[16..18], [0, 28]);
}
