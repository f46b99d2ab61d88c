//! The maps, all shared by the program's instances through their pins.

use aya_ebpf::{
    macros::map,
    maps::{Array, LruHashMap, PerCpuArray},
};
use limiter_common::{
    counters::Counters, limits::MAX_INTERFACES, needs::Need, policy::Policy, source::SourceKey,
    state::SourceState, word::Word,
};

use crate::settings;

/// The policy: filled before the program is attached.
#[map]
static POLICY: Array<Policy> = Array::pinned(1, 0);

/// Counters by interface.
#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::pinned(MAX_INTERFACES, 0);

/// Buckets of the host's own needs, by interface.
#[map]
static NEEDS: Array<[u64; Need::COUNT]> = Array::pinned(MAX_INTERFACES, 0);

/// The source table. The loader sets its capacity.
#[map]
pub(crate) static SOURCES: LruHashMap<SourceKey, SourceState> = LruHashMap::pinned(1, 0);

/// The time, in tests.
#[map]
static CLOCK: Array<u64> = Array::pinned(1, 0);

#[inline(always)]
pub(crate) fn policy() -> Option<&'static Policy> {
    POLICY.get(0)
}

#[inline(always)]
pub(crate) fn counters() -> Option<&'static mut Counters> {
    let counters = COUNTERS.get_ptr_mut(settings::interface())?;
    // SAFETY: valid for the program's run; this CPU's own, and an XDP program is not preempted by another.
    Some(unsafe { &mut *counters })
}

/// The bucket of one of the host's own needs, by number.
#[inline(always)]
pub(crate) fn need(number: u32) -> Option<&'static Word> {
    let words = NEEDS.get_ptr(settings::interface())?;
    // SAFETY: valid for the program's run; a word has the layout of a u64.
    let words: &[Word; Need::COUNT] = unsafe { &*words.cast() };
    words.get(number as usize)
}

#[inline(always)]
pub(crate) fn test_time() -> Option<u64> {
    CLOCK.get(0).copied()
}
