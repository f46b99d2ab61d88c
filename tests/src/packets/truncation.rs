//! The same packets, cut at every length.

use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
};
use limiter_lab::frame::{Extension, Frame, tcp_flags::SYN};

use super::{ATTACKER, HOST, KEY, KEY6, Outcome, Row, UDP, v4, v6};

/// Where to stop, if the frame does not end before.
const LONGEST: usize = 120;

/// A frame, and where its headers end.
struct Stack {
    name: &'static str,
    frame: Frame,
    /// Where each tag ends.
    tags: &'static [usize],
    /// Where the header with the source ends.
    source: usize,
    /// Where all that is read ends.
    whole: usize,
    key: &'static str,
    /// What becomes of it between the two; a first fragment may lack the rest.
    short: Short,
}

#[derive(Clone, Copy)]
enum Short {
    Malformed,
    CutFirstFragment,
}

impl Stack {
    fn rows(&self) -> Vec<Row> {
        let bytes = self.frame.build();
        (0..=bytes.len().min(LONGEST))
            .map(|length| self.row(bytes[..length].to_vec()))
            .collect()
    }

    fn row(&self, bytes: Vec<u8>) -> Row {
        let length = bytes.len();
        let (outcome, odd) = if length < self.source {
            (Outcome::Dropped(Reason::Malformed), None)
        } else if length >= self.whole {
            (Outcome::Charged(self.key), None)
        } else {
            match self.short {
                Short::Malformed => (Outcome::ChargedMalformed(self.key), None),
                Short::CutFirstFragment => {
                    (Outcome::Charged(self.key), Some(Odd::CutFirstFragment))
                }
            }
        };
        let mut row = Row::new(format!("{} of {length} bytes", self.name), bytes, outcome);
        match self.tags.iter().filter(|end| **end <= length).count() {
            0 => {}
            1 => row.odd.push(Odd::OneTag),
            _ => row.odd.push(Odd::TwoTags),
        }
        row.odd.extend(odd);
        row
    }
}

/// The case's first.
#[must_use]
pub fn ipv4_tcp() -> Vec<Row> {
    Stack {
        name: "IPv4 TCP",
        frame: v4().tcp(40_000, 22, SYN).payload(80),
        tags: &[],
        source: 34,
        whole: 54,
        key: KEY,
        short: Short::Malformed,
    }
    .rows()
}

/// The longest IPv4 header.
#[must_use]
pub fn ipv4_options_udp() -> Vec<Row> {
    Stack {
        name: "IPv4 with 40 bytes of options, UDP",
        frame: v4().options(10).udp(40_000, 53).payload(80),
        tags: &[],
        source: 74,
        whole: 82,
        key: KEY,
        short: Short::Malformed,
    }
    .rows()
}

/// A ping behind a tag.
#[must_use]
pub fn ipv4_icmp() -> Vec<Row> {
    Stack {
        name: "tagged IPv4 ICMP",
        frame: v4().echo_request(1, 1).payload(80).service_tagged(7),
        tags: &[18],
        source: 38,
        whole: 46,
        key: KEY,
        short: Short::Malformed,
    }
    .rows()
}

/// The case's second.
#[must_use]
pub fn tagged_ipv6_hop_by_hop_udp() -> Vec<Row> {
    let frame = v6()
        .extension(Extension::hop_by_hop())
        .udp(40_000, 53)
        .payload(80);
    Stack {
        name: "IPv6 in two tags, hop-by-hop options, UDP",
        frame: frame.service_tagged(7).tagged(&[8]),
        tags: &[18, 22],
        source: 62,
        whole: 78,
        key: KEY6,
        short: Short::Malformed,
    }
    .rows()
}

/// The extension with its own unit.
#[must_use]
pub fn ipv6_authentication_icmpv6() -> Vec<Row> {
    let frame = v6()
        .extension(Extension::authentication(12))
        .echo_request(1, 1);
    Stack {
        name: "IPv6, authentication header, ICMPv6",
        frame: frame.payload(80),
        tags: &[],
        source: 54,
        whole: 54 + 24 + 8,
        key: KEY6,
        short: Short::Malformed,
    }
    .rows()
}

/// A protocol of which only the ports are read.
#[must_use]
pub fn ipv6_sctp() -> Vec<Row> {
    Stack {
        name: "IPv6 SCTP",
        frame: v6().protocol(132).payload(80),
        tags: &[],
        source: 54,
        whole: 58,
        key: KEY6,
        short: Short::Malformed,
    }
    .rows()
}

/// They may lack anything behind their source; the fragment header itself may not be cut.
#[must_use]
pub fn first_fragments() -> Vec<Row> {
    let v4 = Stack {
        name: "IPv4 first fragment",
        frame: v4().fragment(0, true).tcp(40_000, 22, SYN).payload(76),
        tags: &[],
        source: 34,
        whole: 54,
        key: KEY,
        short: Short::CutFirstFragment,
    };
    let v6 = Stack {
        name: "IPv6 first fragment",
        frame: v6().fragment(0, true).tcp(40_000, 22, SYN).payload(76),
        tags: &[],
        source: 54,
        whole: 54 + 8 + 20,
        key: KEY6,
        short: Short::CutFirstFragment,
    };
    let mut rows = v4.rows();
    rows.extend(v6.rows().into_iter().map(|row| {
        if (54..62).contains(&row.bytes.len()) {
            Row {
                outcome: Outcome::ChargedMalformed(KEY6),
                odd: Vec::new(),
                ..row
            }
        } else {
            row
        }
    }));
    rows
}

/// Nothing is read behind their fragment header.
#[must_use]
pub fn later_fragments() -> Vec<Row> {
    let v4 = Stack {
        name: "IPv4 later fragment",
        frame: v4().fragment(8, false).protocol(UDP).payload(90),
        tags: &[],
        source: 34,
        whole: 34,
        key: KEY,
        short: Short::Malformed,
    };
    let v6 = Stack {
        name: "IPv6 later fragment",
        frame: v6().fragment(8, false).protocol(UDP).payload(90),
        tags: &[],
        source: 54,
        whole: 62,
        key: KEY6,
        short: Short::Malformed,
    };
    let mut rows = v4.rows();
    rows.extend(v6.rows());
    for row in &mut rows {
        if matches!(row.outcome, Outcome::Charged(_)) {
            row.odd.push(Odd::LaterFragment);
        }
    }
    rows
}

/// The type is all that is read.
#[must_use]
pub fn arp() -> Vec<Row> {
    let bytes = Frame::arp_request(ATTACKER, HOST).padded_to(60).build();
    (0..=bytes.len())
        .map(|length| {
            let outcome = if length < 14 {
                Outcome::Dropped(Reason::Malformed)
            } else {
                Outcome::Need(Need::Arp)
            };
            Row::new(
                format!("ARP of {length} bytes"),
                bytes[..length].to_vec(),
                outcome,
            )
        })
        .collect()
}

/// Nothing but zeros: an 802.3 frame, if anything.
#[must_use]
pub fn zeros() -> Vec<Row> {
    (0..=LONGEST)
        .map(|length| {
            let name = format!("{length} zeros");
            if length < 14 {
                Row::new(name, vec![0; length], Outcome::Dropped(Reason::Malformed))
            } else {
                Row::new(name, vec![0; length], Outcome::Passed).odd(Odd::Llc)
            }
        })
        .collect()
}
