//! The host's world: what the kernel runs, on plain memory.

use std::{
    cell::RefCell,
    collections::{BTreeMap, btree_map::Entry},
};

use limiter_common::{
    counters::{Counters, Table},
    frame::SliceFrame,
    judge::{NotInserted, Tables, Verdict, judge},
    needs::Need,
    parse::parse,
    policy::Policy,
    source::SourceKey,
    state::SourceState,
    word::Word,
};

use crate::world::{Action, BEGIN, World};

/// `parse` and `judge` with a table that never forgets.
pub struct Model {
    policy: Policy,
    memory: Memory,
    counters: Counters,
}

/// The state that verdicts change.
#[derive(Default)]
struct Memory {
    time: u64,
    /// Leaked: a state is lent out while others are entered, and a test has few sources.
    sources: RefCell<BTreeMap<SourceKey, &'static SourceState<Word>>>,
    needs: [Word; Need::COUNT],
}

impl Model {
    /// A world that has seen nothing.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            policy: *policy,
            memory: Memory {
                time: BEGIN,
                ..Memory::default()
            },
            counters: Counters::default(),
        }
    }

    /// Where the clock stands.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.memory.time
    }

    /// Judges a frame as [`World::judge`] does, and says why.
    pub fn verdict(&mut self, frame: &[u8]) -> Verdict {
        let frame = SliceFrame(frame);
        judge(
            &frame,
            &parse(&frame),
            &self.memory,
            &self.policy,
            &mut self.counters,
        )
    }
}

impl World for Model {
    fn reset(&mut self, policy: &Policy) {
        *self = Self::new(policy);
    }

    fn set_policy(&mut self, policy: &Policy) {
        self.policy = *policy;
    }

    fn set_time(&mut self, nanos: u64) {
        self.memory.time = nanos;
    }

    fn judge(&mut self, frame: &[u8]) -> Action {
        match self.verdict(frame) {
            Verdict::Drop(_) if self.policy.monitor == 0 => Action::Drop,
            Verdict::Drop(_) | Verdict::Pass => Action::Pass,
        }
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn source(&self, key: &SourceKey) -> Option<SourceState> {
        self.memory.source(key).map(SourceState::snapshot)
    }

    fn sources(&self) -> BTreeMap<SourceKey, SourceState> {
        let entries = self.memory.sources.borrow();
        entries
            .iter()
            .map(|(key, state)| (*key, state.snapshot()))
            .collect()
    }

    fn needs(&self) -> [u64; Need::COUNT] {
        self.memory.needs.each_ref().map(Word::load)
    }
}

impl Tables for Memory {
    fn now(&self) -> u64 {
        self.time
    }

    fn source(&self, key: &SourceKey) -> Option<&SourceState<Word>> {
        self.sources.borrow().get(key).copied()
    }

    fn insert(&self, key: &SourceKey, state: &SourceState) -> Result<(), NotInserted> {
        match self.sources.borrow_mut().entry(*key) {
            Entry::Occupied(_) => Err(NotInserted::Exists),
            Entry::Vacant(entry) => {
                entry.insert(Box::leak(Box::new((*state).into())));
                Ok(())
            }
        }
    }

    fn need(&self, need: Need) -> Option<&Word> {
        self.needs.get(need as usize)
    }

    fn rare(&self, _event: Table, _count: u64) {}
}
