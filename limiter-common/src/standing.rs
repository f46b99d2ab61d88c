//! Who a source is: resolved by prefix once per source and policy, then remembered with its state.

use crate::named::named_enum;

named_enum! {
    /// What the lists say of a source.
    pub enum Listed {
        /// Nothing.
        No = "no",
        /// It passes before all limits.
        Allowed = "allowed",
        /// It is dropped.
        Banned = "banned",
        /// It is dropped until a time; look it up.
        BannedUntil = "banned_until",
        /// A limit banned it; look it up.
        BannedByLimit = "banned_by_limit",
    }
}

/// Who a source is, as of an epoch. One word: `epoch | split | listed | chain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing(pub u64);

const EPOCH_SHIFT: u32 = 32;
const SPLIT: u64 = 1 << 31;
const LISTED_SHIFT: u32 = 16;
const LISTED_MASK: u64 = 0x7;
const CHAIN_MASK: u64 = 0xffff;

impl Standing {
    /// A standing; `listed` is a [`Listed`] by number.
    #[inline(always)]
    #[must_use]
    pub const fn new(epoch: u32, chain: u16, listed: u8) -> Self {
        Self((epoch as u64) << EPOCH_SHIFT | (listed as u64) << LISTED_SHIFT | chain as u64)
    }

    /// The epoch of policy and lists that it was resolved in. Epochs begin at 1, so that a zero word is of none.
    #[inline(always)]
    #[must_use]
    pub const fn epoch(self) -> u32 {
        (self.0 >> EPOCH_SHIFT) as u32
    }

    /// Whether it holds for one address only, since addresses of its source differ in classes or lists.
    #[inline(always)]
    #[must_use]
    pub const fn is_split(self) -> bool {
        self.0 & SPLIT != 0
    }

    /// The same, for one address only.
    #[inline(always)]
    #[must_use]
    pub const fn split(self) -> Self {
        Self(self.0 | SPLIT)
    }

    /// The same, listed otherwise.
    #[inline(always)]
    #[must_use]
    pub const fn listed_as(self, listed: u8) -> Self {
        Self(self.0 & !(LISTED_MASK << LISTED_SHIFT) | (listed as u64) << LISTED_SHIFT)
    }

    /// What the lists say, by number.
    #[inline(always)]
    #[must_use]
    pub const fn listed(self) -> u8 {
        (self.0 >> LISTED_SHIFT & LISTED_MASK) as u8
    }

    /// The chain of classes that cover the source, by number; 0 is no class.
    #[inline(always)]
    #[must_use]
    pub const fn chain(self) -> u16 {
        (self.0 & CHAIN_MASK) as u16
    }
}

/// What a prefix is a member of: the value of the class sets.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The chain of classes.
    pub chain: u32,
    /// Not 0: addresses of one source inside this prefix differ in their classes, so none is remembered for the source.
    pub split: u32,
}

/// What the lists say of a prefix: the value of the list sets.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// [`Listed`] by number: no, allowed, banned or banned until.
    pub listed: u32,
    /// Not 0: as in [`Membership`].
    pub split: u32,
    /// Until when, in nanoseconds of the monotonic clock; 0 for ever.
    pub until: u64,
    /// What holds after that: [`Listed`] by number.
    pub then: u32,
    /// Always zero.
    pub zero: u32,
}

/// A ban that a limit has made.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ban {
    /// Until when, in nanoseconds of the monotonic clock.
    pub until: u64,
    /// Since when.
    pub since: u64,
    /// The limit that made it, by its counter's number.
    pub limit: u32,
    /// How many of this source came before, without a pause as long as the ban.
    pub repeats: u32,
}

const _: () = assert!(size_of::<Membership>() == 8);
const _: () = assert!(size_of::<Entry>() == 24);
const _: () = assert!(size_of::<Ban>() == 24);
