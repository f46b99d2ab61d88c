//! The host's world: what the kernel runs, on plain memory.

use std::collections::BTreeMap;

use limiter_common::{
    counters::Counters, judge::Verdict, needs::Need, source::SourceKey, standing::Ban, state::Slot,
    word::Word,
};
use limiter_policy::{
    compile::{Compiled, compile},
    host::{HostTables, SourceCopy},
    identities::Identities,
};

use crate::{
    policies::Rules,
    world::{Action, BEGIN, World, shortened},
};

/// The tables of the host, which never forget a source.
pub struct Model {
    tables: HostTables,
    identities: Identities,
    monitor: bool,
}

impl Model {
    /// A world that has seen nothing.
    #[must_use]
    pub fn new(rules: &Rules) -> Self {
        let mut identities = Identities::default();
        let compiled = compiled(rules, &mut identities, BEGIN);
        let mut tables = HostTables::new(compiled);
        tables.set_time(BEGIN);
        Self {
            tables,
            identities,
            monitor: rules.spec.monitor,
        }
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &HostTables {
        &self.tables
    }

    /// Bounds the bans that limits make.
    pub fn set_ban_capacity(&mut self, capacity: usize) {
        self.tables.set_ban_capacity(capacity);
    }

    /// Judges a frame as [`World::judge`] does, and says why.
    pub fn verdict(&mut self, frame: &[u8]) -> Verdict {
        self.tables.judge_frame(frame)
    }
}

/// Compiles rules that are in order.
pub fn compiled(rules: &Rules, identities: &mut Identities, now: u64) -> Compiled {
    let Rules {
        spec,
        prefixes,
        changes,
    } = rules;
    compile(spec, prefixes, changes, identities, now)
        .unwrap_or_else(|error| panic!("{error:?}\n{rules:#?}"))
}

impl World for Model {
    fn reset(&mut self, rules: &Rules) {
        *self = Self::new(rules);
    }

    fn set_policy(&mut self, rules: &Rules) {
        let compiled = compiled(rules, &mut self.identities, self.tables.time());
        self.tables.replace(compiled);
        self.monitor = rules.spec.monitor;
    }

    fn set_monitor(&mut self, monitor: bool) {
        self.tables.set_monitor(monitor);
        self.monitor = monitor;
    }

    fn set_time(&mut self, nanos: u64) {
        self.tables.set_time(nanos);
    }

    fn judge(&mut self, frame: &[u8]) -> Action {
        match self.verdict(frame) {
            Verdict::Drop(_) if !self.monitor => Action::Drop,
            Verdict::Drop(_) | Verdict::Pass => Action::Pass,
        }
    }

    fn counters(&self) -> Counters {
        *self.tables.counters()
    }

    fn source(&self, key: &SourceKey) -> Option<SourceCopy> {
        self.tables.source_copy(key).map(shortened)
    }

    fn sources(&self) -> BTreeMap<SourceKey, SourceCopy> {
        let keys = self.tables.source_keys().into_iter();
        keys.filter_map(|key| Some((key, self.source(&key)?)))
            .collect()
    }

    fn shared(&self, slot: u32) -> Slot {
        self.tables.shared_copy(slot).expect("a slot")
    }

    fn bans(&self) -> BTreeMap<SourceKey, Ban> {
        self.tables.bans()
    }

    fn needs(&self) -> [u64; Need::COUNT] {
        use limiter_common::judge::Tables as _;
        Need::ALL.map(|need| self.tables.need(need).map_or(0, Word::load))
    }

    fn compiled(&self) -> Compiled {
        self.tables.compiled().clone()
    }
}
