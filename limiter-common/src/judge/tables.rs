//! The state that verdicts depend on and change: BPF maps in the kernel, plain memory elsewhere.

use super::{Done, InForce, LogKey, Order};
use crate::{
    address::Address,
    meter::MeterLog,
    needs::Need,
    policy::{Matching, MeterEntry, MeterRow, PortTable},
    source::SourceKey,
    standing::{Ban, Entry, Listed, Membership, Standing},
    state::{Head, Slot},
    word::Word,
};

/// Why something could not be entered in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInserted {
    /// Another CPU was first.
    Exists,
    /// The table is out of entries or memory.
    Failed,
}

/// The live state of a source.
pub trait SourceState {
    /// What is known of it.
    fn head(&self) -> &Head<Word>;

    /// The state of a limit; `None` beyond the slots that there is room for.
    fn slot(&self, slot: u32) -> Option<&Slot<Word>>;
}

/// The table of meters.
pub trait Meters {
    /// A meter by its id.
    fn meter(&self, id: u32) -> Option<&MeterEntry>;
}

/// The tables of who is who.
pub trait Lists {
    /// The classes of an address: those of the longest prefix in a class set that covers it.
    fn membership(&self, set: u32, address: Address) -> Membership;

    /// What a list set says of an address: its longest prefix that covers it.
    fn listed(&self, set: u32, address: Address) -> Entry;

    /// The ban that a limit has put on a source.
    fn ban(&self, key: &SourceKey) -> Option<Ban>;

    /// Bans a source; false if there is no room.
    fn set_ban(&self, key: &SourceKey, ban: &Ban) -> bool;
}

/// The table of sliding logs.
pub trait Logs {
    /// The admissions that a sliding log remembers.
    fn log(&self, key: &LogKey) -> Option<&MeterLog<Word>>;

    /// Enters an empty log that is not there; never replaces one that is.
    ///
    /// # Errors
    ///
    /// Where the log was not entered, why.
    fn insert_log(&self, key: &LogKey) -> Result<(), NotInserted>;

    /// [`oldest`](crate::meter::oldest); the kernel does it in a function of its own.
    fn oldest(&self, log: &MeterLog<Word>, size: u64) -> u64;
}

/// The tables.
pub trait Tables: Meters + Logs + Lists {
    /// The live state of a source.
    type Source: SourceState;

    /// Nanoseconds of the monotonic clock.
    fn now(&self) -> u64;

    /// The class of a port.
    fn port_class(&self, policy: u32, table: PortTable, port: u16) -> u32;

    /// The limits that match, by [`Policy::match_index`](crate::policy::Policy::match_index).
    fn matching(&self, policy: u32, index: u32) -> Option<&Matching>;

    /// The meters of a chain of classes.
    fn meters(&self, policy: u32, chain: u32) -> Option<&MeterRow>;

    /// [`resolve`](super::resolve); the kernel does it in a function of its own.
    fn resolve(&self, address: &Address, key: &SourceKey, rules: InForce<'_>) -> Standing;

    /// [`listed_now`](super::listed_now); likewise.
    fn listed_now(
        &self,
        address: &Address,
        key: &SourceKey,
        now: u64,
        rules: InForce<'_>,
    ) -> Listed;

    /// [`put_ban`](super::put_ban) for a limit by number; likewise.
    fn put_ban(&self, key: &SourceKey, limit: u64, now: u64, rules: InForce<'_>) -> bool;

    /// The live state of a source.
    fn source(&self, key: &SourceKey) -> Option<Self::Source>;

    /// Enters a source that is not there, all zero; never replaces one that is.
    ///
    /// # Errors
    ///
    /// Where the source was not entered, why.
    fn insert(&self, key: &SourceKey) -> Result<(), NotInserted>;

    /// The state of a limit that everyone shares.
    fn shared(&self, slot: u32) -> Option<&Slot<Word>>;

    /// [`work`](super::work) on the state of a limit; the kernel does it in a function of its own.
    fn work(&self, slot: &Slot<Word>, order: Order, now: u64, cost: u64) -> Done;

    /// [`work_log`](super::work_log) on a sliding log; likewise.
    fn work_log(&self, key: &LogKey, order: Order, now: u64) -> Done;

    /// The bucket of one of the host's own needs, on the interface at hand.
    fn need(&self, need: Need) -> Option<&Word>;
}
