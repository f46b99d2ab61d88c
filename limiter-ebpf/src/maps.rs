//! The maps, all shared by the program's instances through their pins.

use core::ptr::NonNull;

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, HashMap, LpmTrie, LruHashMap, PerCpuArray, lpm_trie::Key},
};
use limiter_common::{
    address::Address,
    counters::Counters,
    judge::LogKey,
    limits::{MAX_INTERFACES, SHARED_SLOTS},
    meter::MeterLog,
    needs::Need,
    policy::{
        Flip, MATCHES as MATCH_ENTRIES, MAX_CHAINS, METERS as METER_ENTRIES, Matching, MeterEntry,
        MeterRow, POLICIES as POLICY_ENTRIES, PORT_WORDS, Policy, PortTable,
    },
    source::SourceKey,
    standing::{Ban, Entry, Membership},
    state::{Slot, value_size},
    word::Word,
};

use crate::settings;

/// Which policy is in force. Mapped by the daemon, which stores its words one at a time.
#[map]
static FLIP: Array<Flip> = Array::pinned(1, BPF_F_MMAPABLE);

/// The policies: the current one, the one before, the next.
#[map]
static POLICIES: Array<Policy> = Array::pinned(POLICY_ENTRIES, 0);

/// Classes of ports, eight to a word, by policy and [`PortTable`].
#[map]
static PORTS: Array<u64> = Array::pinned(POLICY_ENTRIES * PortTable::COUNT * PORT_WORDS, 0);

/// Which limits match, by policy.
#[map]
static MATCHES: Array<Matching> = Array::pinned(POLICY_ENTRIES * MATCH_ENTRIES, 0);

/// Meters of the limits, by policy and chain of classes.
#[map]
static ROWS: Array<MeterRow> = Array::pinned(POLICY_ENTRIES * MAX_CHAINS, 0);

/// Meters by id.
#[map]
static METERS: Array<MeterEntry> = Array::pinned(METER_ENTRIES, 0);

type Prefixes<V> = LpmTrie<[u8; 16], V>;

/// Class sets. The loader sets how many prefixes they may hold.
#[map]
static CLASSES_0: Prefixes<Membership> = LpmTrie::pinned(1, 0);
#[map]
static CLASSES_1: Prefixes<Membership> = LpmTrie::pinned(1, 0);
#[map]
static CLASSES_2: Prefixes<Membership> = LpmTrie::pinned(1, 0);

/// List sets: who is allowed, who is banned.
#[map]
static LISTS_0: Prefixes<Entry> = LpmTrie::pinned(1, 0);
#[map]
static LISTS_1: Prefixes<Entry> = LpmTrie::pinned(1, 0);
#[map]
static LISTS_2: Prefixes<Entry> = LpmTrie::pinned(1, 0);

/// Bans that limits have made.
#[map]
static BANS: HashMap<SourceKey, Ban> = HashMap::pinned(1, 0);

/// A value of the source table with the fewest slots. The loader makes the map's values as large as the policy needs.
type SmallestValue = [u64; value_size(1) as usize / 8];

/// The source table. The loader sets its capacity.
#[map]
static SOURCES: LruHashMap<SourceKey, SmallestValue> = LruHashMap::pinned(1, 0);

/// Zeros, to enter a source with; as many as the largest value has.
#[map]
static ZEROS: Array<[u64; 128]> = Array::pinned(1, 0);

/// State of the limits that everyone shares.
#[map]
static SHARED: Array<Slot> = Array::pinned(SHARED_SLOTS, 0);

/// Sliding logs.
#[map]
static LOGS: LruHashMap<LogKey, MeterLog> = LruHashMap::pinned(1, 0);

/// Counters by interface.
#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::pinned(MAX_INTERFACES, 0);

/// Buckets of the host's own needs, by interface.
#[map]
static NEEDS: Array<[u64; Need::COUNT]> = Array::pinned(MAX_INTERFACES, 0);

/// The time, in tests.
#[map]
static CLOCK: Array<u64> = Array::pinned(1, 0);

#[inline(always)]
pub(crate) fn flip() -> Option<&'static Flip<Word>> {
    let flip = FLIP.get_ptr(0)?;
    // SAFETY: valid for the program's run; a word has the layout of a u64.
    Some(unsafe { &*flip.cast() })
}

#[inline(always)]
pub(crate) fn policy(number: u32) -> Option<&'static Policy> {
    POLICIES.get(number)
}

#[inline(always)]
pub(crate) fn port_class(policy: u32, table: PortTable, port: u16) -> u32 {
    let table = (policy * PortTable::COUNT + table as u32) * PORT_WORDS;
    match PORTS.get(table + u32::from(port >> 3)) {
        Some(classes) => u32::from((classes >> (8 * (port & 7))) as u8),
        None => 0,
    }
}

#[inline(always)]
pub(crate) fn matching(policy: u32, index: u32) -> Option<&'static Matching> {
    MATCHES.get(policy * MATCH_ENTRIES + index)
}

#[inline(always)]
pub(crate) fn row(policy: u32, chain: u32) -> Option<&'static MeterRow> {
    ROWS.get(policy * MAX_CHAINS + chain)
}

#[inline(always)]
pub(crate) fn meter(id: u32) -> Option<&'static MeterEntry> {
    METERS.get(id)
}

/// The key of an LPM trie in the middle of aligned memory: alone it would put the address at an odd place of the stack,
/// where the verifier allows no 64-bit store.
#[repr(C)]
struct LpmKey {
    before: u32,
    length: u32,
    high: [u8; 8],
    low: [u8; 8],
}

impl LpmKey {
    #[inline(always)]
    const fn of(address: Address) -> Aligned {
        Aligned(Self {
            before: 0,
            length: 128,
            high: address.high.to_be_bytes(),
            low: address.low.to_be_bytes(),
        })
    }
}

#[repr(align(8))]
struct Aligned(LpmKey);

impl Aligned {
    #[inline(always)]
    fn key(&self) -> &Key<[u8; 16]> {
        let length = &raw const self.0.length;
        // SAFETY: the length and the address behind it are laid out as the key, which needs no alignment.
        unsafe { &*length.cast() }
    }
}

#[inline(always)]
pub(crate) fn membership(set: u32, address: Address) -> Membership {
    let key = LpmKey::of(address);
    let key = key.key();
    let found = match set {
        0 => CLASSES_0.get(key),
        1 => CLASSES_1.get(key),
        _ => CLASSES_2.get(key),
    };
    match found {
        Some(membership) => *membership,
        None => Membership::default(),
    }
}

#[inline(always)]
pub(crate) fn listed(set: u32, address: Address) -> Entry {
    let key = LpmKey::of(address);
    let key = key.key();
    let found = match set {
        0 => LISTS_0.get(key),
        1 => LISTS_1.get(key),
        _ => LISTS_2.get(key),
    };
    match found {
        Some(entry) => *entry,
        None => Entry::default(),
    }
}

#[inline(always)]
pub(crate) fn source(key: &SourceKey) -> Option<NonNull<u8>> {
    NonNull::new(SOURCES.get_ptr_mut(key)?.cast())
}

#[inline(always)]
pub(crate) fn insert_source(key: &SourceKey, flags: u64) -> Result<(), i32> {
    let Some(zeros) = ZEROS.get_ptr(0) else {
        return Err(0);
    };
    // SAFETY: valid for the program's run; the kernel reads as many of the zeros as the map's values are long.
    let zeros: &SmallestValue = unsafe { &*zeros.cast() };
    SOURCES.insert(key, zeros, flags)
}

#[inline(always)]
pub(crate) fn shared(slot: u32) -> Option<&'static Slot<Word>> {
    let slot = SHARED.get_ptr(slot)?;
    // SAFETY: valid for the program's run; a word has the layout of a u64.
    Some(unsafe { &*slot.cast() })
}

#[inline(always)]
pub(crate) fn log(key: &LogKey) -> Option<&'static MeterLog<Word>> {
    let log = LOGS.get_ptr(key)?;
    // SAFETY: valid for the program's run, even if the entry is evicted and used again meanwhile; a word has the layout
    // of a u64.
    Some(unsafe { &*log.cast() })
}

#[inline(always)]
pub(crate) fn insert_log(key: &LogKey, flags: u64) -> Result<(), i32> {
    let Some(zeros) = ZEROS.get_ptr(0) else {
        return Err(0);
    };
    // SAFETY: valid for the program's run, and no shorter than a log.
    let zeros: &MeterLog = unsafe { &*zeros.cast() };
    LOGS.insert(key, zeros, flags)
}

#[inline(always)]
pub(crate) fn ban(key: &SourceKey) -> Option<Ban> {
    // SAFETY: the copy may be a blur of two bans of one source; either holds.
    unsafe { BANS.get(key) }.copied()
}

#[inline(always)]
pub(crate) fn set_ban(key: &SourceKey, ban: &Ban) -> bool {
    BANS.insert(key, ban, 0).is_ok()
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
