//! What is remembered of one source: the value of the source table.

use crate::word::Word;

/// Buckets that fit into one source's value.
///
/// Four make the hash element of the kernel (48 bytes of its own, 24 of key, this value) exactly two cache lines.
pub const BUCKETS_PER_SOURCE: usize = 4;

/// State of one source. `SourceState<Word>` is the live value; `SourceState<u64>` a copy of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceState<W = u64> {
    /// When a packet of this source was last judged, in nanoseconds of the monotonic clock.
    pub last_seen: W,
    /// Packets that passed.
    pub passed: W,
    /// Packets that were dropped, or would have been.
    pub dropped: W,
    /// Bucket words, all of one source side by side, by the slot of their limit. Zero is a full bucket.
    pub buckets: [W; BUCKETS_PER_SOURCE],
}

const _: () = assert!(size_of::<SourceState>() == 56);
const _: () = assert!(size_of::<SourceState<Word>>() == size_of::<SourceState<u64>>());

impl SourceState<Word> {
    /// Copies the words one by one: each is exact, the whole is a moment's blur.
    #[must_use]
    pub fn snapshot(&self) -> SourceState<u64> {
        let Self {
            last_seen,
            passed,
            dropped,
            buckets,
        } = self;
        SourceState {
            last_seen: last_seen.load(),
            passed: passed.load(),
            dropped: dropped.load(),
            buckets: buckets.each_ref().map(Word::load),
        }
    }
}

impl From<SourceState<u64>> for SourceState<Word> {
    fn from(state: SourceState<u64>) -> Self {
        let SourceState {
            last_seen,
            passed,
            dropped,
            buckets,
        } = state;
        Self {
            last_seen: Word::new(last_seen),
            passed: Word::new(passed),
            dropped: Word::new(dropped),
            buckets: buckets.map(Word::new),
        }
    }
}
