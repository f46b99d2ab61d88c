//! The maps as the tables that a verdict works on.

use aya_ebpf::{bindings::BPF_NOEXIST, programs::XdpContext};
use aya_log_ebpf::warn;
use limiter_common::{
    counters::Table,
    judge::{NotInserted, Tables},
    needs::Need,
    source::SourceKey,
    state::SourceState,
    word::Word,
};

use crate::{clock, maps};

/// `-EEXIST`.
const EXISTS: i32 = -17;

pub(crate) struct KernelTables<'a> {
    ctx: &'a XdpContext,
}

impl<'a> KernelTables<'a> {
    #[inline(always)]
    pub(crate) const fn new(ctx: &'a XdpContext) -> Self {
        Self { ctx }
    }
}

impl Tables for KernelTables<'_> {
    #[inline(always)]
    fn now(&self) -> u64 {
        clock::now()
    }

    #[inline(always)]
    fn source(&self, key: &SourceKey) -> Option<&SourceState<Word>> {
        let state = maps::SOURCES.get_ptr(key)?;
        // SAFETY: valid for the program's run, even if the entry is evicted and its slot used again meanwhile; then
        // another source's words are changed, each of them atomically. A word has the layout of a u64.
        Some(unsafe { &*state.cast() })
    }

    #[inline(always)]
    fn insert(&self, key: &SourceKey, state: &SourceState) -> Result<(), NotInserted> {
        match maps::SOURCES.insert(key, state, u64::from(BPF_NOEXIST)) {
            Ok(()) => Ok(()),
            Err(EXISTS) => Err(NotInserted::Exists),
            Err(_) => Err(NotInserted::Failed),
        }
    }

    #[inline(always)]
    fn need(&self, need: Need) -> Option<&Word> {
        maps::need(need as u32)
    }

    #[inline(always)]
    fn rare(&self, event: Table, count: u64) {
        // At 1, 2, 4, 8, ... events: a flood of them makes a few dozen lines.
        if !count.is_power_of_two() {
            return;
        }
        if event == Table::InsertFailed {
            warn!(
                self.ctx,
                "source table took no new entry, {} times on this CPU", count
            );
        } else {
            warn!(
                self.ctx,
                "a bucket is contended, {} times on this CPU", count
            );
        }
    }
}
