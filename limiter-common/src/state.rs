//! What is remembered of one source: the value of the source table.
//!
//! A value is a [`Head`] and as many [`Slot`]s as the loader made room for: one for each limit per source, so that all
//! buckets of a source lie side by side, in slots that belong to the limit's identity.

use crate::word::Word;

/// What is known of a source. `Head<Word>` is live; `Head<u64>` a copy.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head<W = u64> {
    /// When a packet of this source was last judged, in nanoseconds of the monotonic clock.
    pub last_seen: W,
    /// Packets that passed.
    pub passed: W,
    /// Packets that were dropped, or would have been.
    pub dropped: W,
    /// Who the source is, as of which policy: a [`Standing`](crate::standing::Standing) by its bits.
    pub standing: W,
}

/// The state of one limit for one source, or for everyone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot<W = u64> {
    /// The meter's word.
    pub word: W,
    /// Whose word it is: `conversions | id of the meter | refusals since it was last full`, of 16, 16 and 32 bits.
    pub note: W,
}

/// Slots that a value has room for, by a step: 1, 5, 9, ... so that the hash element of the kernel (48 bytes of its own,
/// 24 of key, the value) is a whole number of cache lines.
pub const SLOT_STEP: u32 = 4;

/// The most slots of a value.
pub const MAX_SLOTS: u32 = 61;

const HEAD: u32 = 32;
const SLOT: u32 = 16;
/// The kernel's `struct htab_elem` and our key.
const ELEMENT: u32 = 48 + 24;
const CACHE_LINE: u32 = 64;

const _: () = assert!(size_of::<Head>() == HEAD as usize);
const _: () = assert!(size_of::<Slot>() == SLOT as usize);
const _: () = assert!(size_of::<Head<Word>>() == HEAD as usize);
const _: () = assert!(size_of::<Slot<Word>>() == SLOT as usize);

/// Slots to make room for where `limits` are kept per source; `None` if there is no such room.
#[must_use]
pub const fn slots_for(limits: u32) -> Option<u32> {
    let wanted = if limits <= 1 {
        1
    } else {
        (limits - 1).div_ceil(SLOT_STEP) * SLOT_STEP + 1
    };
    if wanted <= MAX_SLOTS {
        Some(wanted)
    } else {
        None
    }
}

/// Bytes of a value with so many slots.
#[must_use]
pub const fn value_size(slots: u32) -> u32 {
    (ELEMENT + HEAD + SLOT * slots).next_multiple_of(CACHE_LINE) - ELEMENT
}

/// Bytes of a key and value in the kernel's hash.
#[must_use]
pub const fn element_size(slots: u32) -> u32 {
    ELEMENT + value_size(slots)
}

impl<W> Slot<W> {
    /// How far the meter's id is shifted in the note.
    pub const METER_SHIFT: u32 = 32;
    /// How far the count of conversions is shifted in the note. It wraps.
    pub const VERSION_SHIFT: u32 = 48;
}

impl Slot<u64> {
    /// The meter that wrote the word, by its id; 0 for none.
    #[must_use]
    pub const fn meter_id(&self) -> u16 {
        (self.note >> Self::METER_SHIFT & 0xffff) as u16
    }
}

impl Slot<Word> {
    /// The meter that wrote the word.
    #[inline(always)]
    #[must_use]
    pub fn meter(&self) -> u64 {
        self.note.load() >> Slot::<Word>::METER_SHIFT & 0xffff
    }
}

impl Head<Word> {
    /// Copies the words one by one: each is exact, the whole is a moment's blur.
    #[must_use]
    pub fn snapshot(&self) -> Head<u64> {
        let Self {
            last_seen,
            passed,
            dropped,
            standing,
        } = self;
        Head {
            last_seen: last_seen.load(),
            passed: passed.load(),
            dropped: dropped.load(),
            standing: standing.load(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fill_cache_lines() {
        assert_eq!(slots_for(0), Some(1));
        assert_eq!(slots_for(1), Some(1));
        assert_eq!(slots_for(2), Some(5));
        assert_eq!(slots_for(5), Some(5));
        assert_eq!(slots_for(6), Some(9));
        assert_eq!(slots_for(61), Some(61));
        assert_eq!(slots_for(62), None);
        for slots in (1..=MAX_SLOTS).step_by(4) {
            assert_eq!(element_size(slots) % CACHE_LINE, 0);
            assert!(value_size(slots) >= HEAD + SLOT * slots);
        }
        assert_eq!(element_size(1), 128);
        assert_eq!(element_size(5), 192);
    }
}
