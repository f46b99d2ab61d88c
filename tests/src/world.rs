//! A place where frames are judged.

use std::{collections::BTreeMap, net::IpAddr};

use limiter_common::{
    counters::{Counters, LimitCounters},
    frame::SliceFrame,
    needs::Need,
    parse::{Content, Version, parse},
    policy::Place,
    source::{SourceKey, Validity, validity},
    standing::Ban,
    state::Slot,
};
use limiter_lab::frame::Frame;
use limiter_policy::{
    compile::{Compiled, CompiledLimit},
    host::SourceCopy,
};

use crate::{
    packets::{HOST, HOST6},
    policies::Rules,
};

/// Where the clock stands when a world begins: an hour after boot.
pub const BEGIN: u64 = 3_600_000_000_000;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `XDP_PASS`.
    Pass,
    /// `XDP_DROP`.
    Drop,
}

/// The program in the kernel, or the host's functions on plain memory.
pub trait World {
    /// Forgets everything, sets the clock to [`BEGIN`], and takes these rules.
    fn reset(&mut self, rules: &Rules);

    /// Takes other rules, and remembers everything.
    fn set_policy(&mut self, rules: &Rules);

    /// Drops nothing from now on, or what the limits say.
    fn set_monitor(&mut self, monitor: bool);

    /// Sets the clock.
    fn set_time(&mut self, nanos: u64);

    /// Judges a frame.
    fn judge(&mut self, frame: &[u8]) -> Action;

    /// What was counted.
    fn counters(&self) -> Counters;

    /// What is remembered of a source, with the slots that are not empty.
    fn source(&self, key: &SourceKey) -> Option<SourceCopy>;

    /// All sources remembered.
    fn sources(&self) -> BTreeMap<SourceKey, SourceCopy>;

    /// The state of a shared limit.
    fn shared(&self, slot: u32) -> Slot;

    /// The bans that limits have made.
    fn bans(&self) -> BTreeMap<SourceKey, Ban>;

    /// Bucket words of the host's own needs.
    fn needs(&self) -> [u64; Need::COUNT];

    /// What is in force, as it was compiled.
    fn compiled(&self) -> Compiled;

    /// What a limit has counted, by its name.
    fn limit(&self, name: &str) -> LimitCounters {
        let compiled = self.compiled();
        self.counters().limits[compiled.policy.limits[number(&compiled, name)].counter as usize]
    }

    /// Tokens left under a limit, by its name: to the source with that key, if the limit is one per source.
    fn tokens(&self, name: &str, key: &SourceKey, now: u64) -> u64 {
        let compiled = self.compiled();
        let number = number(&compiled, name);
        let slot = compiled.policy.limits[number].slot;
        let state = match compiled.limits[number].place {
            Place::Shared => self.shared(slot.into()),
            Place::Source | Place::Wide => slot_of(self.source(key).as_ref(), slot.into()),
        };
        let meter = match compiled.meters.get(&state.meter_id()) {
            Some(entry) => entry.meter,
            None => compiled.meters[&compiled.rows[&0][number]].meter,
        };
        meter.tokens(state.word, now)
    }

    /// Sends ordinary packets from `source` until its bucket is empty.
    fn drain(&mut self, source: IpAddr) {
        let destination = match source {
            IpAddr::V4(_) => HOST.into(),
            IpAddr::V6(_) => HOST6.into(),
        };
        let frame = Frame::ip(source, destination).udp(40_000, 40_000).build();
        let mut left = 1_000_000;
        while self.judge(&frame) == Action::Pass {
            left -= 1;
            assert!(left > 0, "the bucket of {source} does not become empty");
        }
    }
}

/// How many of so many frames in a row pass.
pub fn passed<W: World + ?Sized>(world: &mut W, frame: &[u8], offered: u64) -> u64 {
    (0..offered)
        .filter(|_| world.judge(frame) == Action::Pass)
        .count() as u64
}

fn number(compiled: &Compiled, name: &str) -> usize {
    let named = |limit: &CompiledLimit| limit.name == name;
    let number = compiled.limits.iter().position(named);
    number.unwrap_or_else(|| panic!("no limit {name}"))
}

/// The state of a limit with a source.
#[must_use]
pub fn slot_of(source: Option<&SourceCopy>, slot: u32) -> Slot {
    let slots = source.map_or(&[][..], |source| &source.slots);
    slots.get(slot as usize).copied().unwrap_or_default()
}

/// The same without the empty slots at the end: how many there is room for differs between the worlds.
#[must_use]
pub fn shortened(mut source: SourceCopy) -> SourceCopy {
    while source.slots.last() == Some(&Slot::default()) {
        source.slots.pop();
    }
    source
}

/// The source of a frame, if it has one that could send anything else.
#[must_use]
pub fn ordinary_source(frame: &[u8]) -> Option<IpAddr> {
    let parsed = parse(&SliceFrame(frame));
    let packet = parsed.packet;
    let possible = parsed.content == Content::Ip
        && validity(packet.version, packet.source) == Validity::Ordinary;
    debug_assert!(!possible || packet.source.is_mapped() == (packet.version == Version::V4));
    possible.then(|| packet.source.into())
}
