//! The source table: entries of a size that the policy decides.

use std::{
    os::fd::{AsFd as _, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use limiter_common::{
    source::SourceKey,
    state::{Head, Slot, value_size},
};

use super::sys::map::{self as sys, Cursor};

/// Entries copied at once. A bucket of the hash has few entries, so this is far more than one.
const BATCH: usize = 1024;
/// A rest between batches, so that a walk leaves a CPU almost idle.
const REST: Duration = Duration::from_micros(500);
/// A walk ends after this time whatever remains, so that what it found is never old.
const LONGEST: Duration = Duration::from_secs(15);

/// What is remembered of a source, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCopy {
    /// What is known of it.
    pub head: Head,
    /// The state of each limit, by slot.
    pub slots: Vec<Slot>,
}

/// What one walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Entries seen.
    pub entries: u64,
    /// Whether the walk reached the end.
    pub complete: bool,
}

/// The table.
#[derive(Debug)]
pub struct Sources {
    fd: OwnedFd,
    slots: u32,
}

const WORD: usize = size_of::<u64>();

impl Sources {
    /// The table behind a descriptor, with room for so many slots in each value.
    pub(super) const fn new(fd: OwnedFd, slots: u32) -> Self {
        Self { fd, slots }
    }

    /// Slots in each value.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    fn words(&self) -> usize {
        value_size(self.slots) as usize / WORD
    }

    /// What is remembered of a source, if anything.
    ///
    /// # Errors
    ///
    /// Where the table cannot be read.
    pub fn get(&self, key: &SourceKey) -> Result<Option<SourceCopy>> {
        let mut words = vec![0; self.words()];
        let found = sys::lookup_bytes(self.fd.as_fd(), key, words.as_mut_ptr() as u64)
            .context("cannot read the source table")?;
        Ok(found.then(|| self.copy(&words)))
    }

    fn copy(&self, words: &[u64]) -> SourceCopy {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let head = Head {
            last_seen: word(0),
            passed: word(1),
            dropped: word(2),
            standing: word(3),
        };
        let first = size_of::<Head>() / WORD;
        let slots = (0..self.slots as usize)
            .map(|slot| Slot {
                word: word(first + 2 * slot),
                note: word(first + 2 * slot + 1),
            })
            .collect();
        SourceCopy { head, slots }
    }

    fn words_of(&self, copy: &SourceCopy) -> Vec<u64> {
        let SourceCopy { head, slots } = copy;
        let mut words = vec![head.last_seen, head.passed, head.dropped, head.standing];
        for slot in slots {
            words.extend([slot.word, slot.note]);
        }
        words.resize(self.words(), 0);
        words
    }

    /// Enters a source, or overwrites it.
    ///
    /// # Errors
    ///
    /// Where the table takes no more.
    pub fn set(&self, key: &SourceKey, copy: &SourceCopy) -> Result<()> {
        let words = self.words_of(copy);
        sys::update(self.fd.as_fd(), key, words.as_slice()).context("cannot write the source table")
    }

    /// Forgets a source.
    ///
    /// # Errors
    ///
    /// Where the table cannot be written.
    pub fn remove(&self, key: &SourceKey) -> Result<bool> {
        sys::delete(self.fd.as_fd(), key).context("cannot write the source table")
    }

    /// Calls `visit` for each source in the table, at leisure. An entry that moves meanwhile may be missed or seen twice.
    ///
    /// # Errors
    ///
    /// Where the table cannot be read.
    pub fn walk(&self, visit: impl FnMut(SourceKey, SourceCopy)) -> Result<Walk> {
        self.walk_within(Some(LONGEST), visit)
    }

    /// The same to the end and without rests.
    ///
    /// # Errors
    ///
    /// Where the table cannot be read.
    pub fn walk_all(&self, visit: impl FnMut(SourceKey, SourceCopy)) -> Result<Walk> {
        self.walk_within(None, visit)
    }

    fn walk_within(
        &self,
        longest: Option<Duration>,
        mut visit: impl FnMut(SourceKey, SourceCopy),
    ) -> Result<Walk> {
        let started = Instant::now();
        let mut values = vec![0; BATCH * self.words()];
        let mut cursor = Cursor::default();
        let mut entries = 0;
        loop {
            let (keys, last) = sys::lookup_batch_bytes::<SourceKey>(
                self.fd.as_fd(),
                &mut cursor,
                BATCH,
                values.as_mut_ptr() as u64,
            )
            .context("cannot walk the source table")?;
            entries += keys.len() as u64;
            for (key, words) in keys.into_iter().zip(values.chunks(self.words())) {
                visit(key, self.copy(words));
            }
            if last || longest.is_some_and(|longest| started.elapsed() > longest) {
                return Ok(Walk {
                    entries,
                    complete: last,
                });
            }
            if longest.is_some() {
                thread::sleep(REST);
            }
        }
    }
}
