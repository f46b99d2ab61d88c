//! Classes of ports: ports that lie in the same ranges are one to the match table.

use limiter_common::policy::{PORT_WORDS, PortTable};

use super::conditions::{Ports, Range};
use crate::{
    error::{PolicyError, Subject},
    spec::Protocol,
};

/// A class is a byte; 0 is that of ports in no range.
const MAX_CLASSES: usize = 255;

/// The classes of one port table.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// By class: the ranges that its ports lie in.
    ranges: Vec<Vec<Range>>,
    /// Where a class begins: each port has the class of the last of these at or before it.
    begins: Vec<(u16, u8)>,
}

impl Classes {
    /// The classes of ports that these ranges tell apart; `None` if there are too many.
    fn new(mut ranges: Vec<Range>) -> Option<Self> {
        ranges.sort_unstable();
        ranges.dedup();
        let mut begins: Vec<u16> = vec![0];
        for (first, last) in &ranges {
            begins.push(*first);
            begins.extend(last.checked_add(1));
        }
        begins.sort_unstable();
        begins.dedup();
        let mut classes = Self {
            ranges: vec![Vec::new()],
            begins: Vec::new(),
        };
        for port in begins {
            let around: Vec<_> = ranges
                .iter()
                .filter(|(first, last)| (*first..=*last).contains(&port))
                .copied()
                .collect();
            let known = classes.ranges.iter().position(|ranges| *ranges == around);
            let class = known.unwrap_or_else(|| {
                classes.ranges.push(around);
                classes.ranges.len() - 1
            });
            classes.begins.push((port, u8::try_from(class).ok()?));
        }
        Some(classes)
    }

    /// How many classes there are, that of ports in no range included.
    pub(super) const fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the ports of a class lie in a range.
    pub(super) fn within(&self, class: usize, range: Range) -> bool {
        self.ranges
            .get(class)
            .is_some_and(|ranges| ranges.contains(&range))
    }

    /// A port of a class.
    pub(super) fn example(&self, class: usize) -> Option<u16> {
        let begin = self.begins.iter().find(|(_, of)| usize::from(*of) == class);
        begin.map(|(port, _)| *port)
    }

    /// Writes the class of each port, a byte each, lowest byte first.
    fn write(&self, words: &mut [u64]) {
        for (at, (first, class)) in self.begins.iter().enumerate() {
            let end = self
                .begins
                .get(at + 1)
                .map_or(1 << 16, |next| usize::from(next.0));
            for port in usize::from(*first)..end {
                words[port / 8] |= u64::from(*class) << (8 * (port % 8));
            }
        }
    }
}

/// The classes of both directions of a protocol.
#[derive(Debug, Default)]
pub(super) struct ByDirection {
    /// Of destination ports.
    pub(super) destination: Classes,
    /// Of source ports.
    pub(super) source: Classes,
}

/// The classes of all port tables. Classes of TCP and UDP are numbered each from 0, since their kinds differ.
#[derive(Debug, Default)]
pub(super) struct PortClasses {
    tcp: ByDirection,
    udp: ByDirection,
}

impl PortClasses {
    /// The classes that the conditions of a policy tell apart.
    pub(super) fn new(conditions: &[Ports]) -> Result<Self, PolicyError> {
        let classes = |protocol, range: fn(&Ports) -> Option<Range>, what: &str| {
            let of_protocol = conditions.iter().filter(|ports| ports.protocol == protocol);
            Classes::new(of_protocol.filter_map(range).collect()).ok_or_else(|| {
                PolicyError::new(
                    Subject::Top,
                    "services",
                    format!(
                        "their ranges tell more than {MAX_CLASSES} kinds of {what} ports apart: name fewer ranges, or wider \
                         ones"
                    ),
                )
            })
        };
        let by_direction = |protocol, destination: &str, source: &str| {
            Ok::<_, PolicyError>(ByDirection {
                destination: classes(protocol, |ports| ports.destination, destination)?,
                source: classes(protocol, |ports| ports.source, source)?,
            })
        };
        Ok(Self {
            tcp: by_direction(Protocol::Tcp, "TCP destination", "TCP source")?,
            udp: by_direction(Protocol::Udp, "UDP destination", "UDP source")?,
        })
    }

    /// The classes of a protocol's ports.
    pub(super) const fn of(&self, protocol: Protocol) -> &ByDirection {
        match protocol {
            Protocol::Tcp => &self.tcp,
            Protocol::Udp => &self.udp,
        }
    }

    /// How many classes of destination ports the match table has room for.
    pub(super) fn destinations(&self) -> usize {
        self.tcp
            .destination
            .count()
            .max(self.udp.destination.count())
    }

    /// The same for source ports.
    pub(super) fn sources(&self) -> usize {
        self.tcp.source.count().max(self.udp.source.count())
    }

    /// Whether any two ports differ.
    pub(super) fn tell_apart(&self) -> bool {
        self.destinations() > 1 || self.sources() > 1
    }

    /// The port tables; none where no two ports differ.
    pub(super) fn tables(&self) -> Vec<u64> {
        if !self.tell_apart() {
            return Vec::new();
        }
        let size = PORT_WORDS as usize;
        let mut words = vec![0; PortTable::COUNT as usize * size];
        for (table, classes) in [
            (PortTable::TcpDestination, &self.tcp.destination),
            (PortTable::TcpSource, &self.tcp.source),
            (PortTable::UdpDestination, &self.udp.destination),
            (PortTable::UdpSource, &self.udp.source),
        ] {
            classes.write(&mut words[table as usize * size..][..size]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_the_same_ranges_are_one_class() {
        let classes = Classes::new(vec![(80, 90), (22, 22), (85, 65_535), (22, 22)]).unwrap();
        assert_eq!(classes.count(), 5, "none, 22, 80-84, 85-90, 91-65535");
        let mut words = vec![0; PORT_WORDS as usize];
        classes.write(&mut words);
        let class = |port: usize| usize::from(words[port / 8].to_le_bytes()[port % 8]);
        for ports in [
            vec![0, 21, 23, 79],
            vec![80, 84],
            vec![85, 90],
            vec![91, 65_535],
        ] {
            let expected = class(ports[0]);
            assert!(
                ports.iter().all(|port| class(*port) == expected),
                "{ports:?}"
            );
        }
        assert_eq!(class(0), 0);
        assert!(classes.within(class(86), (80, 90)));
        assert!(classes.within(class(86), (85, 65_535)));
        assert!(!classes.within(class(91), (80, 90)));
        assert_eq!(classes.example(class(23)), Some(0));
        assert_eq!(classes.example(class(90)), Some(85));
    }

    #[test]
    fn a_byte_of_classes() {
        let single = |count: u16| (0..count).map(|port| (2 * port, 2 * port)).collect();
        assert_eq!(Classes::new(single(255)).unwrap().count(), 256);
        assert!(Classes::new(single(256)).is_none());
    }
}
