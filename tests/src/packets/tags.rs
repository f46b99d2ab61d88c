//! VLAN tags.

use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
};
use limiter_lab::frame::{Frame, tcp_flags::SYN};

use super::{
    ATTACKER, HOST, IPV4, KEY, KEY6, Outcome, Row, SERVICE_VLAN, VLAN, patched, v4, v6, with_tags,
};

const TYPES: [u16; 2] = [VLAN, SERVICE_VLAN];

/// A tagged packet costs its source what the packet alone would.
#[must_use]
pub fn hide_nobody() -> Vec<Row> {
    let packets = [
        ("IPv4", v4().tcp(40_000, 22, SYN).build(), KEY),
        ("IPv6", v6().tcp(40_000, 22, SYN).build(), KEY6),
    ];
    let mut rows = Vec::new();
    for (family, bytes, key) in packets {
        let charged = Outcome::Charged(key);
        rows.push(Row::new(
            format!("{family} untagged"),
            bytes.clone(),
            charged,
        ));
        for outer in TYPES {
            let name = format!("{family} in {outer:04x}");
            rows.push(Row::new(name, with_tags(&bytes, &[outer]), charged).odd(Odd::OneTag));
            for inner in TYPES {
                let name = format!("{family} in {outer:04x} in {inner:04x}");
                let tagged = with_tags(&bytes, &[outer, inner]);
                rows.push(Row::new(name, tagged, charged).odd(Odd::TwoTags));
            }
        }
        for (name, control) in [("priority tag", [0xe0, 0]), ("all bits set", [0xff, 0xff])] {
            let tagged = patched(with_tags(&bytes, &[VLAN]), 14, &control);
            rows.push(Row::new(format!("{family} in a {name}"), tagged, charged).odd(Odd::OneTag));
        }
    }
    rows
}

/// What is not IP is recognised behind tags too; what is no tag to the host's stack is none to us.
#[must_use]
pub fn hide_nothing_else_either() -> Vec<Row> {
    let arp = Frame::arp_request(ATTACKER, HOST).build();
    let packet = v4().udp(1, 2).build();
    let need = Outcome::Need(Need::Arp);
    vec![
        Row::new("ARP in a tag", with_tags(&arp, &[VLAN]), need).odd(Odd::OneTag),
        Row::new("ARP in two", with_tags(&arp, &TYPES), need).odd(Odd::TwoTags),
        Row::new(
            "old stacked tag 9100",
            with_tags(&packet, &[0x9100]),
            Outcome::Passed,
        )
        .odd(Odd::OtherEtherType),
        Row::new(
            "old stacked tag 9100 in a tag",
            with_tags(&packet, &[VLAN, 0x9100]),
            Outcome::Passed,
        )
        .odd(Odd::OneTag)
        .odd(Odd::OtherEtherType),
    ]
}

/// Three tags, whatever is behind them.
#[must_use]
pub fn third_is_refused() -> Vec<Row> {
    let packet = v4().udp(1, 2).build();
    let arp = Frame::arp_request(ATTACKER, HOST).build();
    let mut rows = Vec::new();
    let refused = |name: String, bytes| {
        Row::new(name, bytes, Outcome::Dropped(Reason::TooManyTags)).odd(Odd::TwoTags)
    };
    for outer in TYPES {
        for middle in TYPES {
            for inner in TYPES {
                let types = [outer, middle, inner];
                rows.push(refused(format!("{types:04x?}"), with_tags(&packet, &types)));
            }
        }
    }
    rows.push(refused("ARP in three".into(), with_tags(&arp, &[VLAN; 3])));
    rows.push(refused("ten tags".into(), with_tags(&packet, &[VLAN; 10])));
    let mut nothing_behind = with_tags(&packet, &[VLAN; 3]);
    nothing_behind.truncate(22);
    rows.push(refused(
        "nothing behind the third's type".into(),
        nothing_behind,
    ));
    let fits = with_tags(&packet, &[VLAN; 2]);
    let unread = u16::from_be_bytes([fits[20], fits[21]]);
    assert_eq!(unread, IPV4, "the type behind two tags is at 20");
    rows
}
