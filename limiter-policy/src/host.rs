//! The kernel's tables on plain memory, with the same functions run over them: to explain, and to compare with the kernel.

mod explain;
mod sources;
mod tables;

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    mem,
};

use limiter_common::{
    address::Address,
    counters::{Counters, LimitCounters},
    frame::SliceFrame,
    judge::{InForce, LogKey, Verdict, judge},
    limits::SHARED_SLOTS,
    meter::MeterLog,
    needs::Need,
    parse::parse,
    policy::{Force, MeterEntry},
    source::SourceKey,
    standing::Ban,
    state::{Head, Slot},
    word::Word,
};

pub use self::explain::{Asked, Explained, explain};
use self::sources::HostSource;
use crate::{compile::Compiled, identities::Number};

/// The tables of one policy, with all state that verdicts change. They never forget a source, and one thread uses them.
#[derive(Debug)]
pub struct HostTables {
    compiled: Compiled,
    /// All meters that were ever in force: slots may hold what they wrote.
    meters: BTreeMap<u16, MeterEntry>,
    epoch: u32,
    monitor: bool,
    time: u64,
    counters: Counters,
    sources: RefCell<HashMap<SourceKey, HostSource>>,
    shared: Vec<Slot<Word>>,
    /// Boxed, so that a log stays in its place while others are entered.
    logs: RefCell<HashMap<LogKey, Box<MeterLog<Word>>>>,
    bans: RefCell<BTreeMap<SourceKey, Ban>>,
    ban_capacity: usize,
    needs: [Word; Need::COUNT],
}

/// A copy of what is remembered of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCopy {
    /// What is known of it.
    pub head: Head,
    /// The state of each limit, by slot.
    pub slots: Vec<Slot>,
}

impl HostTables {
    /// Tables that have seen nothing, at time 0.
    #[must_use]
    pub fn new(compiled: Compiled) -> Self {
        Self {
            meters: compiled.meters.clone(),
            epoch: 1,
            monitor: compiled.monitor,
            compiled,
            time: 0,
            counters: Counters::default(),
            sources: RefCell::default(),
            shared: (0..SHARED_SLOTS).map(|_| Slot::default()).collect(),
            logs: RefCell::default(),
            bans: RefCell::default(),
            ban_capacity: usize::MAX,
            needs: <[Word; Need::COUNT]>::default(),
        }
    }

    /// Judges a frame at the time set. In monitor mode a frame is passed even if the verdict is to drop it.
    pub fn judge_frame(&mut self, frame: &[u8]) -> Verdict {
        let frame = SliceFrame(frame);
        let mut counters = mem::take(&mut self.counters);
        let verdict = judge(&frame, &parse(&frame), self, self.rules(), &mut counters);
        self.counters = counters;
        verdict
    }

    /// Puts another policy into force. State stays with its limits, as it does in the kernel.
    pub fn replace(&mut self, compiled: Compiled) {
        // A ceiling's word means what its meter says; there is no note of which.
        if compiled.policy.need_ceilings != self.compiled.policy.need_ceilings {
            self.needs = Default::default();
        }
        for number in &compiled.fresh {
            self.clear(*number);
        }
        self.meters.extend(&compiled.meters);
        self.monitor = compiled.monitor;
        self.compiled = compiled;
        self.epoch += 1;
    }

    /// Clears what is held under a number that belonged to something else.
    fn clear(&mut self, number: Number) {
        match number {
            Number::Counter(counter) => {
                self.counters.limits[counter as usize] = LimitCounters::default();
                self.logs
                    .get_mut()
                    .retain(|key, _| key.limit != u64::from(counter));
            }
            Number::Slot(slot) => {
                for source in self.sources.get_mut().values() {
                    source.set_slot(slot, Slot::default());
                }
            }
            Number::Shared(slot) => self.shared[slot as usize] = Slot::default(),
            Number::Chain(chain) => {
                let is_other = |key: &SourceKey| key.chain() != u64::from(chain);
                self.sources.get_mut().retain(|key, _| is_other(key));
                self.logs.get_mut().retain(|key, _| is_other(&key.source));
                self.bans.get_mut().retain(|key, _| is_other(key));
            }
        }
    }

    /// The policy in force.
    #[must_use]
    pub const fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    const fn rules(&self) -> InForce<'_> {
        InForce {
            force: Force::new(self.epoch, 0, self.monitor),
            policy: &self.compiled.policy,
        }
    }

    /// Where the clock stands, in nanoseconds of the monotonic clock.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Sets the clock.
    pub const fn set_time(&mut self, nanos: u64) {
        self.time = nanos;
    }

    /// Sets whether nothing is dropped.
    pub const fn set_monitor(&mut self, monitor: bool) {
        self.monitor = monitor;
    }

    /// Bounds the bans that limits make.
    pub const fn set_ban_capacity(&mut self, capacity: usize) {
        self.ban_capacity = capacity;
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Remembers meters that slots copied from elsewhere may name.
    pub fn add_meters(&mut self, meters: impl IntoIterator<Item = (u16, MeterEntry)>) {
        for (id, entry) in meters {
            self.meters.entry(id).or_insert(entry);
        }
    }

    /// What is remembered of a source.
    #[must_use]
    pub fn source_copy(&self, key: &SourceKey) -> Option<SourceCopy> {
        self.sources.borrow().get(key).map(HostSource::copy)
    }

    /// The sources remembered.
    #[must_use]
    pub fn source_keys(&self) -> Vec<SourceKey> {
        let mut keys: Vec<_> = self.sources.borrow().keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// Sets what is remembered of a source. Its standing is left out, so that its classes and lists are looked up anew.
    pub fn set_source(&mut self, key: SourceKey, copy: &SourceCopy) {
        let source = HostSource::new();
        source.set(copy);
        self.sources.get_mut().insert(key, source);
    }

    /// The state of a shared limit, by slot.
    #[must_use]
    pub fn shared_copy(&self, slot: u32) -> Option<Slot> {
        self.shared.get(slot as usize).map(sources::copy_slot)
    }

    /// Sets the state of a shared limit.
    pub fn set_shared(&mut self, slot: u32, copy: Slot) {
        if let Some(slot) = self.shared.get(slot as usize) {
            sources::set_slot(slot, copy);
        }
    }

    /// The admissions that a sliding log remembers.
    #[must_use]
    pub fn log_copy(&self, key: &LogKey) -> Option<MeterLog> {
        let logs = self.logs.borrow();
        let log = logs.get(key)?;
        Some(MeterLog {
            moments: log.moments.each_ref().map(Word::load),
        })
    }

    /// Sets the admissions that a sliding log remembers.
    pub fn set_log(&mut self, key: LogKey, copy: &MeterLog) {
        let log = MeterLog {
            moments: copy.moments.map(Word::new),
        };
        self.logs.get_mut().insert(key, Box::new(log));
    }

    /// The bans that limits have made.
    #[must_use]
    pub fn bans(&self) -> BTreeMap<SourceKey, Ban> {
        self.bans.borrow().clone()
    }

    /// Sets a ban as a limit makes it.
    pub fn insert_ban(&mut self, key: SourceKey, ban: Ban) {
        self.bans.get_mut().insert(key, ban);
        // Whoever was not banned before is looked up anew.
        self.epoch += 1;
    }

    /// Sets the buckets of the host's own needs.
    pub fn set_needs(&mut self, words: [u64; Need::COUNT]) {
        self.needs = words.map(Word::new);
    }

    /// The key that the state of an address is kept under.
    #[must_use]
    pub fn key_of(&self, address: Address) -> SourceKey {
        explain::who(self, address).key
    }
}
