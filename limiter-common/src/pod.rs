//! Map keys and values may be read and written as bytes.

use crate::{
    counters::Counters,
    judge::LogKey,
    meter::MeterLog,
    policy::{Flip, Matching, MeterEntry, Policy},
    source::SourceKey,
    standing::{Ban, Entry, Membership},
    state::{Head, Slot},
};

/// Declares types to be plain data.
macro_rules! plain {
    ($($type:ty),+ $(,)?) => {
        $(
            // SAFETY: `repr(C)`, integers only, no padding: its size is asserted.
            unsafe impl aya::Pod for $type {}
        )+
    };
}

plain!(
    Ban, Counters, Entry, Flip, Head, LogKey, Matching, Membership, MeterEntry, MeterLog, Policy,
    Slot, SourceKey
);
