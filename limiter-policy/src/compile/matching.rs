//! The match table: for all that packets may differ in, the limits that they meet.

use limiter_common::policy::{
    KINDS, Kind, MATCHES, MAX_MATCHING, Matching, NO_LIMIT, Place, Policy,
};

use super::{
    CompiledLimit,
    conditions::{self, Ports, is_of_kind, protocol},
    destinations::Destinations,
    order,
    ports::{ByDirection, Classes, PortClasses},
};
use crate::{
    error::{PolicyError, Subject},
    spec::{Packets, PolicySpec, Protocol},
};

/// What the match table tells apart, and which limit matches what.
#[derive(Debug)]
pub(super) struct MatchTable<'a> {
    spec: &'a PolicySpec,
    limits: &'a [CompiledLimit],
    /// The numbers of the limits in the order in which they are asked.
    order: Vec<usize>,
    /// Classes of ports.
    pub(super) ports: PortClasses,
    /// Classes of destinations.
    pub(super) destinations: Destinations,
}

/// Limits by number, a bit each.
type Limits = u64;

/// A place in the table.
#[derive(Clone, Copy)]
struct Cell {
    destination: usize,
    source_port: usize,
    destination_port: usize,
}

impl<'a> MatchTable<'a> {
    /// What the limits tell apart.
    pub(super) fn new(
        spec: &'a PolicySpec,
        limits: &'a [CompiledLimit],
    ) -> Result<Self, PolicyError> {
        let mut services: Vec<_> = limits.iter().filter_map(|limit| limit.service).collect();
        services.sort_unstable();
        services.dedup();
        let mut named: Vec<Ports> = Vec::new();
        for service in &services {
            named.extend(
                spec.services[*service]
                    .matches
                    .iter()
                    .copied()
                    .map(Ports::from),
            );
        }
        for limit in limits {
            if let Packets::Answers(ranges) = &spec.limits[limit.spec].packets {
                named.extend(ranges.iter().copied().map(conditions::answers));
            }
        }
        let mut order: Vec<usize> = (0..limits.len()).collect();
        order.sort_by_key(|number| order::rank(&limits[*number], spec));
        let table = Self {
            spec,
            limits,
            order,
            ports: PortClasses::new(&named)?,
            destinations: Destinations::new(spec, &services)?,
        };
        let size = table.size();
        if size > MATCHES as usize {
            return Err(PolicyError::new(
                Subject::Top,
                "services",
                format!(
                    "they tell {size} cases apart, {} kinds of destination ports x {} of source ports x {} of destinations \
                     x {KINDS} of packets, where there may be {MATCHES}: name fewer or wider ranges, above all of source \
                     ports",
                    table.ports.destinations(),
                    table.ports.sources(),
                    table.destinations.count(),
                ),
            ));
        }
        Ok(table)
    }

    fn size(&self) -> usize {
        self.ports.destinations()
            * self.ports.sources()
            * self.destinations.count()
            * KINDS as usize
    }

    /// The entries, placed as `policy`, which has their numbers of classes, looks for them.
    pub(super) fn entries(&self, policy: &Policy) -> Result<Vec<Matching>, PolicyError> {
        let mut entries = vec![Matching::NONE; self.size()];
        let by_kind: Vec<Limits> = (0..KINDS)
            .map(|kind| {
                self.limits_where(|limit| is_of_kind(&self.spec.limits[limit.spec].packets, kind))
            })
            .collect();
        for cell in self.cells() {
            let by_protocol = [
                self.matching(cell, Some(Protocol::Tcp)),
                self.matching(cell, Some(Protocol::Udp)),
                self.matching(cell, None),
            ];
            for (kind, of_kind) in (0..KINDS).zip(&by_kind) {
                let of_protocol = match protocol(kind) {
                    Some(Protocol::Tcp) => by_protocol[0],
                    Some(Protocol::Udp) => by_protocol[1],
                    None => by_protocol[2],
                };
                let index = index(policy, kind, cell);
                entries[index] = self.entry(of_kind & of_protocol, kind, cell)?;
            }
        }
        Ok(entries)
    }

    fn cells(&self) -> impl Iterator<Item = Cell> {
        let (sources, ports) = (self.ports.sources(), self.ports.destinations());
        (0..self.destinations.count()).flat_map(move |destination| {
            (0..sources).flat_map(move |source_port| {
                (0..ports).map(move |destination_port| Cell {
                    destination,
                    source_port,
                    destination_port,
                })
            })
        })
    }

    fn limits_where(&self, holds: impl Fn(&CompiledLimit) -> bool) -> Limits {
        let numbered = self.limits.iter().enumerate();
        numbered
            .filter(|(_, limit)| holds(limit))
            .fold(0, |limits, (number, _)| limits | 1 << number)
    }

    /// The limits that match packets of a protocol by their ports and destination. Nothing is ever found where no packet
    /// of the protocol can be.
    fn matching(&self, cell: Cell, protocol: Option<Protocol>) -> Limits {
        let Some(protocol) = protocol else {
            if cell.destination_port != 0 || cell.source_port != 0 {
                return 0;
            }
            return self.limits_where(|limit| {
                let packets = &self.spec.limits[limit.spec].packets;
                limit.service.is_none() && !matches!(packets, Packets::Answers(_))
            });
        };
        let classes = self.ports.of(protocol);
        if cell.destination_port >= classes.destination.count()
            || cell.source_port >= classes.source.count()
        {
            return 0;
        }
        let holds = |ports: &Ports| {
            ports.protocol == protocol
                && ports
                    .destination
                    .is_none_or(|range| classes.destination.within(cell.destination_port, range))
                && ports
                    .source
                    .is_none_or(|range| classes.source.within(cell.source_port, range))
        };
        self.limits_where(|limit| {
            let of_service = limit.service.is_none_or(|number| {
                let service = &self.spec.services[number];
                let mut matches = service.matches.iter().copied().map(Ports::from);
                matches.any(|ports| holds(&ports))
                    && (service.destinations.is_empty()
                        || self.destinations.is_of(cell.destination, number))
            });
            let of_ports = match &self.spec.limits[limit.spec].packets {
                Packets::Answers(ranges) => ranges
                    .iter()
                    .any(|range| holds(&conditions::answers(*range))),
                _ => true,
            };
            of_service && of_ports
        })
    }

    /// The limits, in order, as the kernel holds them.
    fn entry(&self, limits: Limits, kind: u32, cell: Cell) -> Result<Matching, PolicyError> {
        let in_order = || {
            self.order
                .iter()
                .filter(|number| limits >> **number & 1 != 0)
        };
        if limits.count_ones() > MAX_MATCHING {
            let names: Vec<_> = in_order()
                .map(|number| format!("`{}`", self.limits[*number].name))
                .collect();
            return Err(PolicyError::new(
                Subject::Top,
                "limits",
                format!(
                    "{} limits match one packet, such as {}, where there may be {MAX_MATCHING}: {}; narrow some of them",
                    names.len(),
                    self.example(kind, cell),
                    names.join(", ")
                ),
            ));
        }
        let mut entry = Matching::NONE;
        for (place, number) in in_order().enumerate() {
            let shift = 8 * place;
            entry.limits &= !(u64::from(NO_LIMIT) << shift);
            entry.limits |= (*number as u64) << shift;
            entry.needs |= match self.limits[*number].place {
                Place::Source => Matching::SOURCE,
                Place::Wide => Matching::WIDE,
                Place::Shared => 0,
            };
        }
        Ok(entry)
    }

    /// A packet of a cell, in words: `tcp/22 SYN`.
    fn example(&self, kind: u32, cell: Cell) -> String {
        let protocol = protocol(kind);
        let mut words = vec![
            match Kind::from_number(kind / 2) {
                Some(Kind::TcpSyn | Kind::TcpEstablished | Kind::TcpOther) => "tcp",
                Some(Kind::Udp) => "udp",
                Some(Kind::Icmp) => "icmp",
                Some(Kind::Ports) => "sctp",
                Some(Kind::Portless) | None => "a packet without ports",
            }
            .to_owned(),
        ];
        let classes = protocol.map(|protocol| self.ports.of(protocol));
        let port = |of: fn(&ByDirection) -> &Classes, class| match (class, classes) {
            (0, _) | (_, None) => None,
            (class, Some(classes)) => of(classes).example(class),
        };
        if let Some(port) = port(|of| &of.destination, cell.destination_port) {
            words[0] = format!("{}/{port}", words[0]);
        }
        words.extend(match Kind::from_number(kind / 2) {
            Some(Kind::TcpSyn) => Some("SYN".to_owned()),
            Some(Kind::TcpEstablished) => Some("ACK".to_owned()),
            Some(Kind::TcpOther) => Some("SYN ACK".to_owned()),
            _ => None,
        });
        let from = port(|of| &of.source, cell.source_port);
        words.extend(from.map(|port| format!("from port {port}")));
        let to = self.destinations.example(cell.destination);
        words.extend(to.map(|prefix| format!("to {prefix}")));
        if kind & 1 != 0 {
            words.push("in fragments".to_owned());
        }
        words.join(" ")
    }
}

fn index(policy: &Policy, kind: u32, cell: Cell) -> usize {
    let class = |class: usize| u32::try_from(class).unwrap_or(u32::MAX);
    policy.match_index(
        kind,
        class(cell.destination_port),
        class(cell.source_port),
        class(cell.destination),
    ) as usize
}
