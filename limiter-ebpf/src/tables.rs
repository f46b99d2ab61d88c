//! The maps as the tables that a verdict works on.

use core::ptr::{self, NonNull};

use aya_ebpf::bindings::BPF_NOEXIST;
use limiter_common::{
    address::Address,
    judge::{Done, InForce, Lists, LogKey, Logs, Meters, NotInserted, Order, SourceState, Tables},
    meter::MeterLog,
    needs::Need,
    opaque::{checked, opaque},
    policy::{Matching, MeterEntry, MeterRow, PortTable},
    source::SourceKey,
    standing::{Ban, Entry, Listed, Membership, Standing},
    state::{Head, Slot},
    word::Word,
};

use crate::{clock, functions, maps, settings};

/// `-EEXIST`.
const EXISTS: i32 = -17;

/// The maps.
#[derive(Clone, Copy)]
pub(crate) struct KernelTables;

/// A value of the source table.
///
/// It stays valid for the program's run, even if the entry is evicted and its memory used for another source meanwhile;
/// then another source's words are changed, each of them atomically.
///
/// Not null, so that no source is null: a tag beside the pointer would be one more thing for the verifier to follow.
pub(crate) struct KernelSource(NonNull<u8>);

impl SourceState for KernelSource {
    #[inline(always)]
    fn head(&self) -> &Head<Word> {
        // SAFETY: every value begins with a head; see above.
        unsafe { self.0.cast().as_ref() }
    }

    #[inline(always)]
    fn slot(&self, slot: u32) -> Option<&Slot<Word>> {
        let slot = opaque(slot.into());
        if slot >= u64::from(settings::slots()) {
            return None;
        }
        let offset = size_of::<Head>() + checked(slot) as usize * size_of::<Slot>();
        // SAFETY: a value has as many slots behind its head as the setting says, which the verifier checks once more.
        let slot = unsafe { self.0.add(offset).cast() };
        // SAFETY: as above; a slot of words has the layout of the map's.
        Some(unsafe { slot.as_ref() })
    }
}

impl Logs for KernelTables {
    #[inline(always)]
    fn log(&self, key: &LogKey) -> Option<&MeterLog<Word>> {
        maps::log(key)
    }

    #[inline(always)]
    fn insert_log(&self, key: &LogKey) -> Result<(), NotInserted> {
        inserted(maps::insert_log(key, u64::from(BPF_NOEXIST)))
    }

    #[inline(always)]
    fn oldest(&self, log: &MeterLog<Word>, size: u64) -> u64 {
        functions::oldest_in_log(ptr::from_ref(log).cast(), size)
    }
}

impl Lists for KernelTables {
    #[inline(always)]
    fn membership(&self, set: u32, address: Address) -> Membership {
        maps::membership(set, address)
    }

    #[inline(always)]
    fn listed(&self, set: u32, address: Address) -> Entry {
        maps::listed(set, address)
    }

    #[inline(always)]
    fn ban(&self, key: &SourceKey) -> Option<Ban> {
        maps::ban(key)
    }

    #[inline(always)]
    fn set_ban(&self, key: &SourceKey, ban: &Ban) -> bool {
        maps::set_ban(key, ban)
    }
}

impl Meters for KernelTables {
    #[inline(always)]
    fn meter(&self, id: u32) -> Option<&MeterEntry> {
        maps::meter(id)
    }
}

impl Tables for KernelTables {
    type Source = KernelSource;

    #[inline(always)]
    fn now(&self) -> u64 {
        clock::now()
    }

    #[inline(always)]
    fn port_class(&self, policy: u32, table: PortTable, port: u16) -> u32 {
        maps::port_class(policy, table, port)
    }

    #[inline(always)]
    fn matching(&self, policy: u32, index: u32) -> Option<&Matching> {
        maps::matching(policy, index)
    }

    #[inline(always)]
    fn meters(&self, policy: u32, chain: u32) -> Option<&MeterRow> {
        maps::row(policy, chain)
    }

    #[inline(always)]
    fn resolve(&self, address: &Address, key: &SourceKey, rules: InForce<'_>) -> Standing {
        Standing(functions::resolve_source(address, key, rules.force.0))
    }

    #[inline(always)]
    fn listed_now(
        &self,
        address: &Address,
        key: &SourceKey,
        now: u64,
        rules: InForce<'_>,
    ) -> Listed {
        match functions::source_listed_now(address, key, now, rules.force.0) {
            functions::ALLOWED => Listed::Allowed,
            functions::BANNED => Listed::Banned,
            _ => Listed::No,
        }
    }

    #[inline(always)]
    fn put_ban(&self, key: &SourceKey, limit: u64, now: u64, rules: InForce<'_>) -> bool {
        functions::ban_source(key, limit, now, rules.force.0) != 0
    }

    #[inline(always)]
    fn source(&self, key: &SourceKey) -> Option<KernelSource> {
        maps::source(key).map(KernelSource)
    }

    #[inline(always)]
    fn insert(&self, key: &SourceKey) -> Result<(), NotInserted> {
        inserted(maps::insert_source(key, u64::from(BPF_NOEXIST)))
    }

    #[inline(always)]
    fn shared(&self, slot: u32) -> Option<&Slot<Word>> {
        maps::shared(slot)
    }

    #[inline(always)]
    fn work(&self, slot: &Slot<Word>, order: Order, now: u64, cost: u64) -> Done {
        let slot = ptr::from_ref(slot).cast();
        let done = Done(functions::limit_word(slot, order.0, now, cost));
        if done.is_settled() {
            return done;
        }
        Done(functions::limit_word_again(slot, order.0, now, cost))
    }

    #[inline(always)]
    fn work_log(&self, key: &LogKey, order: Order, now: u64) -> Done {
        Done(functions::limit_log(key, order.0, now))
    }

    #[inline(always)]
    fn need(&self, need: Need) -> Option<&Word> {
        maps::need(need as u32)
    }
}

#[inline(always)]
fn inserted(result: Result<(), i32>) -> Result<(), NotInserted> {
    match result {
        Ok(()) => Ok(()),
        Err(EXISTS) => Err(NotInserted::Exists),
        Err(_) => Err(NotInserted::Failed),
    }
}
