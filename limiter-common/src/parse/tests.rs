//! What holds of any bytes. What each kind of packet is read as, the table of packets says (`tests/src/packets`).

use proptest::prelude::*;

use super::*;
use crate::frame::SliceFrame;

extern crate std;
use std::vec::Vec;

/// The kernel never hands over so short a frame, not even in a test run, so these are met nowhere else.
#[test]
fn frames_without_a_whole_ethernet_header_are_malformed() {
    for length in 0..14 {
        for byte in [0x00, 0x08, 0x45, 0x60, 0x81, 0xff] {
            let bytes = [byte; 14];
            let parsed = parse(&SliceFrame(&bytes[..length]));
            assert_eq!(parsed, Parsed::without_packet(0, Content::Malformed));
            assert!(parsed.ran_out_of_frame());
        }
    }
}

/// Bytes that mean something somewhere: protocols, lengths, extremes.
const TELLING: &[u8] = &[
    0x00, 0x01, 0x02, 0x06, 0x08, 0x11, 0x2b, 0x2c, 0x33, 0x3a, 0x3b, 0x3c, 0x42, 0x70, 0x84, 0x87,
    0x8b, 0x8c, 0xff,
];
const TAGS: &[u16] = &[0x8100, 0x88a8];
const TYPES: &[u16] = &[
    0x0026, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x88cc, 0x9100,
];

/// An Ethernet header, up to three tags, and what may be IP.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(TELLING)];
    let tags = prop::collection::vec(prop::sample::select(TAGS), 0..=3);
    let last = prop::sample::select(TYPES);
    let first = prop_oneof![0x43..=0x4f_u8, Just(0x60), any::<u8>()];
    let rest = prop::collection::vec(byte, 0..200);
    (any::<bool>(), tags, last, first, rest).prop_map(|(bridges, tags, last, first, rest)| {
        let mut bytes = std::vec![0; 12];
        if bridges {
            bytes[..3].copy_from_slice(&[0x01, 0x80, 0xc2]);
        }
        for tag in tags {
            bytes.extend(tag.to_be_bytes());
            bytes.extend([0, 7]);
        }
        bytes.extend(last.to_be_bytes());
        bytes.push(first);
        bytes.extend(rest);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn what_is_read_of_any_bytes_is_consistent(bytes in prop_oneof![
        frames(),
        prop::collection::vec(any::<u8>(), 0..200),
    ]) {
        let parsed = parse(&SliceFrame(&bytes));
        prop_assert!(parsed.tags <= MAX_TAGS);
        if parsed.content != Content::Ip {
            prop_assert_eq!(parsed.packet, Packet::NONE);
            return Ok(());
        }
        let Packet { version, source, upper, fragment, .. } = parsed.packet;
        if version == Version::V4 {
            prop_assert!(source.is_mapped());
        }
        if matches!(upper.kind, UpperKind::LaterFragment | UpperKind::CutFirstFragment) {
            prop_assert!(fragment);
        }
        if upper.kind != UpperKind::Ports {
            prop_assert_eq!((upper.source_port, upper.destination_port), (0, 0));
        }
        if upper.kind != UpperKind::Icmp {
            prop_assert_eq!((upper.icmp_type, upper.icmp_code), (0, 0));
        }
    }

    /// The program reads the first buffer of a frame alone, unless that ran out.
    #[test]
    fn what_did_not_run_out_of_frame_reads_the_same_in_a_longer_one(bytes in frames()) {
        let whole = parse(&SliceFrame(&bytes));
        for length in 0..bytes.len() {
            let parsed = parse(&SliceFrame(&bytes[..length]));
            prop_assert!(parsed.ran_out_of_frame() || parsed == whole, "the first {}: {:?}", length, parsed);
        }
    }
}
