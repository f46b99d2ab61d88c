//! A limiter by the book: it reads a policy as it was meant, limit by limit and prefix by prefix, without any of the tables,
//! and counts in numbers too large to overflow.

mod classes;
mod lists;
mod meter;
mod source;

use std::{collections::BTreeMap, rc::Rc};

use limiter_common::{
    counters::{LimitCounters, Reason},
    frame::SliceFrame,
    judge::Verdict,
    needs::Need,
    parse::{Content, Packet, UpperKind, parse},
    protocol::IpProtocol,
    source::{Validity, validity},
};
use limiter_policy::{
    changes::Changes,
    compile::LoadedPrefixes,
    spec::{Cost, LimitSpec, Mode, Packets, Per, PolicySpec, Protocol, ServiceSpec},
};

use self::{
    classes::InTurn,
    meter::{Book, State},
    source::Key,
};

/// The limiter.
pub(crate) struct Model {
    spec: Rc<PolicySpec>,
    prefixes: LoadedPrefixes,
    changes: Changes,
    /// When the policy was loaded: what was over by then is not part of it.
    loaded: u64,
    time: u64,
    states: BTreeMap<(String, Option<Key>), State>,
    bans: BTreeMap<Key, Ban>,
    needs: BTreeMap<u8, State>,
    counted: Counted,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Frames passed on.
    pub(crate) passed: u64,
    /// Frames dropped, by reason.
    pub(crate) dropped: BTreeMap<&'static str, u64>,
    /// Frames passed in monitor mode that would have been dropped, by reason.
    pub(crate) would_drop: BTreeMap<&'static str, u64>,
    /// By the name of a limit.
    pub(crate) limits: BTreeMap<String, LimitCounters>,
}

#[derive(Clone, Copy)]
struct Ban {
    since: u64,
    until: u64,
    repeats: u32,
}

/// One of the limits that a limit of the policy stands for.
pub(crate) struct Level<'a> {
    name: String,
    number: usize,
    limit: &'a LimitSpec,
    service: Option<usize>,
    wide: bool,
}

/// A limit that matches a packet.
struct Asked<'a> {
    level: Level<'a>,
    /// Where its state is.
    at: (String, Option<Key>),
    in_turn: InTurn,
    cost: u128,
    /// It would have refused the packet, but drops nothing.
    waived: bool,
}

impl Model {
    /// A limiter that has seen nothing, at time 0.
    pub(crate) fn new(spec: &PolicySpec, prefixes: &LoadedPrefixes) -> Self {
        Self {
            spec: Rc::new(spec.clone()),
            prefixes: prefixes.clone(),
            changes: Changes::default(),
            loaded: 0,
            time: 0,
            states: BTreeMap::new(),
            bans: BTreeMap::new(),
            needs: BTreeMap::new(),
            counted: Counted::default(),
        }
    }

    /// Sets the clock.
    pub(crate) fn set_time(&mut self, time: u64) {
        self.time = time;
    }

    /// Another policy, with what was changed at run time, from now on.
    pub(crate) fn replace(
        &mut self,
        spec: &PolicySpec,
        prefixes: &LoadedPrefixes,
        changes: &Changes,
    ) {
        if spec.needs != self.spec.needs {
            self.needs.clear();
        }
        self.spec = Rc::new(spec.clone());
        self.prefixes = prefixes.clone();
        self.changes = changes.clone();
        self.loaded = self.time;
    }

    /// What was counted.
    pub(crate) fn counters(&self) -> &Counted {
        &self.counted
    }

    /// Whether a frame passes, or for what it is dropped, or would be in monitor mode.
    pub(crate) fn judge(&mut self, frame: &[u8]) -> Verdict {
        let reason = self.reason(frame);
        match reason {
            None => self.counted.passed += 1,
            Some(reason) if self.spec.monitor => {
                self.counted.passed += 1;
                *self.counted.would_drop.entry(reason.name()).or_default() += 1;
            }
            Some(reason) => *self.counted.dropped.entry(reason.name()).or_default() += 1,
        }
        reason.map_or(Verdict::Pass, Verdict::Drop)
    }

    fn reason(&mut self, frame: &[u8]) -> Option<Reason> {
        let parsed = parse(&SliceFrame(frame));
        match parsed.content {
            Content::Malformed => Some(Reason::Malformed),
            Content::TooManyTags => Some(Reason::TooManyTags),
            Content::NonIp(kind) => self.need(Need::of_frame(kind)?),
            Content::Ip => self.packet(&parsed.packet, frame.len() as u128),
        }
    }

    fn packet(&mut self, packet: &Packet, length: u128) -> Option<Reason> {
        let malformed = packet.upper.kind == UpperKind::Malformed;
        let validity = validity(packet.version, packet.source);
        if let Some(need) = Need::of_packet(packet, validity) {
            return self.need(need);
        }
        if validity != Validity::Ordinary {
            return Some(if malformed {
                Reason::Malformed
            } else {
                Reason::InvalidSource
            });
        }
        let reason = self.lists_and_limits(packet, length, malformed);
        if malformed {
            Some(Reason::Malformed)
        } else {
            reason
        }
    }

    fn need(&mut self, need: Need) -> Option<Reason> {
        let book = Book::of(&self.spec.needs);
        let state = self.needs.entry(need as u8).or_default();
        state.adopt(&book, self.time);
        if state.admits(&book, self.time, 1) {
            state.take(&book, self.time, 1);
            None
        } else {
            Some(Reason::NeedCeiling)
        }
    }

    fn lists_and_limits(
        &mut self,
        packet: &Packet,
        length: u128,
        malformed: bool,
    ) -> Option<Reason> {
        let key = self.key(packet.source);
        match self.listed(packet.source) {
            Some(lists::Listed::Allowed) => return None,
            Some(lists::Listed::Banned) => return Some(Reason::Ban),
            None => {}
        }
        let banning = self
            .spec
            .limits
            .iter()
            .any(|limit| limit.on_exceed.is_some());
        if banning && self.bans.get(&key).is_some_and(|ban| self.time < ban.until) {
            return Some(Reason::Ban);
        }
        let spec = Rc::clone(&self.spec);
        let mut asked = self.asked(&spec, packet, length, &key);
        let refused = self.look(&mut asked, &key);
        if refused == Refused::Enforced {
            return Some(Reason::Limit);
        }
        for asked in asked.iter().filter(|asked| !asked.waived) {
            let state = self.states.entry(asked.at.clone()).or_default();
            state.take(asked.in_turn.book(), self.time, asked.cost);
        }
        if refused == Refused::Monitored {
            return Some(Reason::Limit);
        }
        if !malformed {
            for asked in &asked {
                self.counted_of(&asked.level.name.clone()).passed += 1;
            }
        }
        None
    }

    /// Asks all limits before any is charged.
    fn look(&mut self, asked: &mut [Asked<'_>], key: &Key) -> Refused {
        let time = self.time;
        let mut refused = Refused::No;
        for asked in asked {
            let limit = asked.level.limit;
            let monitored = self.spec.monitor || limit.mode == Mode::Monitor;
            let ban = limit.on_exceed.filter(|_| !monitored && !asked.level.wide);
            let state = self.states.entry(asked.at.clone()).or_default();
            state.come_under(&asked.in_turn, time);
            if state.admits(asked.in_turn.book(), time, asked.cost) {
                continue;
            }
            if monitored {
                asked.waived = true;
                if limit.mode == Mode::Enforce {
                    refused = Refused::Monitored;
                }
                self.counted_of(&asked.level.name.clone()).would_drop += 1;
                continue;
            }
            if let Some(ban) = ban {
                state.refusals += 1;
                // Each time that it is one too many once more: whoever goes on when a ban is over. Beyond the first, only
                // every eighth refusal is looked at where there are fewer than that.
                let after = u64::from(ban.after);
                let again = after >= 8 || state.refusals.is_multiple_of(8);
                if state.refusals.is_multiple_of(after) && (state.refusals == after || again) {
                    self.ban(key, ban.length, ban.doubles);
                }
            }
            self.counted_of(&asked.level.name.clone()).dropped += 1;
            return Refused::Enforced;
        }
        refused
    }

    fn ban(&mut self, key: &Key, length: u64, doubles: bool) {
        let time = self.time;
        let repeats = match self.bans.get(key) {
            Some(ban) if time < ban.until + (ban.until - ban.since) => ban.repeats + 1,
            _ => 0,
        };
        let doublings = if doubles { repeats.min(12) } else { 0 };
        let ban = Ban {
            since: time,
            until: time + (length << doublings),
            repeats,
        };
        self.bans.insert(key.clone(), ban);
    }

    fn counted_of(&mut self, name: &str) -> &mut LimitCounters {
        self.counted.limits.entry(name.to_owned()).or_default()
    }

    /// The limits that match a packet and apply to its source, in order.
    fn asked<'a>(
        &self,
        spec: &'a PolicySpec,
        packet: &Packet,
        length: u128,
        key: &Key,
    ) -> Vec<Asked<'a>> {
        let mut asked: Vec<_> = levels(spec)
            .into_iter()
            .filter(|level| matches(level, packet, spec))
            .filter_map(|level| {
                let at = match (level.limit.per, level.wide) {
                    (Per::Source, false) => Some(key.clone()),
                    (Per::Source, true) => Some(self.wide_key(packet.source)),
                    _ => None,
                };
                Some(Asked {
                    at: (level.name.clone(), at),
                    in_turn: self.in_turn(&level, packet.source)?,
                    cost: match level.limit.cost {
                        Cost::Fixed(cost) => cost.into(),
                        Cost::Length => length,
                    },
                    level,
                    waived: false,
                })
            })
            .collect();
        asked.sort_by_key(|asked| {
            let Level {
                limit,
                number,
                service,
                wide,
                ..
            } = asked.level;
            let place = match (limit.per, wide) {
                (Per::Source, false) => 0,
                (Per::Source, true) => 1,
                (Per::Service, _) => 2,
                (Per::Everyone, _) => 3,
            };
            let any = limit.packets == Packets::Any;
            (place, service.is_none(), any, number, service)
        });
        asked
    }
}

/// Whether a packet was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refused {
    No,
    /// It would have been, were it not for the monitor mode of the whole policy.
    Monitored,
    Enforced,
}

/// The limits that those of the policy stand for.
fn levels(spec: &PolicySpec) -> Vec<Level<'_>> {
    let mut levels = Vec::new();
    for (number, limit) in spec.limits.iter().enumerate() {
        let level = |name: String, service, wide| Level {
            name,
            number,
            limit,
            service,
            wide,
        };
        if limit.per == Per::Service && limit.service.is_none() {
            for (at, service) in spec.services.iter().enumerate() {
                let name = format!("{}.{}", limit.name, service.name);
                levels.push(level(name, Some(at), false));
            }
        } else {
            levels.push(level(limit.name.clone(), limit.service, false));
        }
        if limit.wide.is_some() {
            levels.push(level(format!("{}.wide", limit.name), limit.service, true));
        }
    }
    levels
}

fn matches(level: &Level<'_>, packet: &Packet, spec: &PolicySpec) -> bool {
    is_among(&level.limit.packets, packet)
        && level
            .service
            .is_none_or(|service| is_of(&spec.services[service], packet))
}

fn is_among(packets: &Packets, packet: &Packet) -> bool {
    let upper = &packet.upper;
    let ports = upper.kind == UpperKind::Ports;
    let tcp = ports && packet.protocol == IpProtocol::TCP;
    let (syn, ack) = (upper.tcp_flags & 2 != 0, upper.tcp_flags & 16 != 0);
    match packets {
        Packets::Any => true,
        Packets::TcpSyn => tcp && syn && !ack,
        Packets::TcpEstablished => tcp && ack && !syn,
        Packets::Udp => ports && matches!(packet.protocol, IpProtocol::UDP | IpProtocol::UDP_LITE),
        Packets::Answers(ranges) => {
            ports
                && packet.protocol == IpProtocol::UDP
                && ranges
                    .iter()
                    .any(|range| lies_in(upper.source_port, *range))
        }
        Packets::Icmp => upper.kind == UpperKind::Icmp,
        Packets::Fragments => packet.fragment,
        Packets::Portless => !ports && upper.kind != UpperKind::Icmp,
    }
}

fn is_of(service: &ServiceSpec, packet: &Packet) -> bool {
    let protocol = match packet.protocol {
        IpProtocol::TCP => Protocol::Tcp,
        IpProtocol::UDP => Protocol::Udp,
        _ => return false,
    };
    let upper = &packet.upper;
    upper.kind == UpperKind::Ports
        && service.matches.iter().any(|of| {
            of.protocol == protocol
                && lies_in(upper.destination_port, of.destination)
                && lies_in(upper.source_port, of.source)
        })
        && (service.destinations.is_empty()
            || service
                .destinations
                .iter()
                .any(|net| source::covers((*net).into(), packet.destination)))
}

fn lies_in(port: u16, (first, last): (u16, u16)) -> bool {
    first <= port && port <= last
}
