//! Frames that carry no IP where we look for it: they pass, counted by kind.

use limiter_common::counters::Odd;
use limiter_lab::frame::Frame;

use super::{Outcome, Row, patched, v4, v6};

/// Where the `EtherType` is.
const TYPE: usize = 12;

/// PPPoE, with a whole packet inside: it passes, whoever sent it.
#[must_use]
pub fn pppoe() -> Vec<Row> {
    let session = |protocol: [u8; 2], packet: &[u8]| {
        let length = u16::try_from(packet.len() + 2)
            .expect("short")
            .to_be_bytes();
        let header = [&[0x11, 0, 0, 7], &length[..], &protocol].concat();
        Frame::other(0x8864).payload_bytes(&[&header, packet].concat())
    };
    let inner4 = v4().udp(1, 2).build().split_off(14);
    let inner6 = v6().udp(1, 2).build().split_off(14);
    let unparsed =
        |name, frame: Frame| Row::new(name, frame.build(), Outcome::Passed).odd(Odd::Pppoe);
    vec![
        unparsed("IPv4 inside", session([0x00, 0x21], &inner4)),
        unparsed("IPv6 inside", session([0x00, 0x57], &inner6)),
        unparsed("discovery", Frame::other(0x8863).payload(46)),
        unparsed("in a tag", session([0x00, 0x21], &inner4).tagged(&[7])).odd(Odd::OneTag),
    ]
}

/// 802.3 lengths, PTP, MACsec, and whatever else there is.
#[must_use]
pub fn other_ether_types() -> Vec<Row> {
    let packet = v4().udp(1, 2).build();
    let of_type = |ether_type: u16| patched(packet.clone(), TYPE, &ether_type.to_be_bytes());
    let passed = |ether_type: u16, odd| {
        let name = format!("type {ether_type:04x}, then IPv4");
        Row::new(name, of_type(ether_type), Outcome::Passed).odd(odd)
    };
    let mut rows: Vec<Row> = [0x0000, 0x0001, 0x002e, 0x05dc, 0x05ff]
        .map(|length| passed(length, Odd::Llc))
        .into();
    let snap = [0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00];
    let ip_in_snap = [&snap, &packet[14..]].concat();
    let length = u16::try_from(ip_in_snap.len()).expect("short");
    let bytes = Frame::other(length).payload_bytes(&ip_in_snap).build();
    rows.push(Row::new("IPv4 in LLC and SNAP", bytes, Outcome::Passed).odd(Odd::Llc));
    rows.push(passed(0x88f7, Odd::Ptp));
    rows.push(passed(0x88e5, Odd::Macsec));
    // The first that is no length, RARP, IPX, MPLS, FCoE, and the neighbours of those that are known.
    let others = [
        0x0600, 0x0801, 0x0805, 0x0807, 0x8035, 0x80ff, 0x8101, 0x8137, 0x86dc, 0x86de, 0x8808,
        0x880a, 0x8847, 0x8848, 0x8862, 0x8865, 0x888d, 0x88a7, 0x88cb, 0x88e4, 0x88f6, 0x8906,
        0x9100, 0xffff,
    ];
    rows.extend(others.map(|ether_type| passed(ether_type, Odd::OtherEtherType)));
    rows
}
