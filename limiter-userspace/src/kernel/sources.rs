//! Walking the source table.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use limiter_common::{source::SourceKey, state::SourceState};

use super::{
    sys::{self, Cursor},
    tables::Tables,
};

/// Entries copied at once. A bucket of the hash has few entries, so this is far more than one.
const BATCH: usize = 1024;
/// A rest between batches, so that a walk leaves a CPU almost idle.
const REST: Duration = Duration::from_micros(500);
/// A walk ends after this time whatever remains, so that what it found is never old.
const LONGEST: Duration = Duration::from_secs(15);

/// What one walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Entries seen.
    pub entries: u64,
    /// Whether the walk reached the end.
    pub complete: bool,
}

/// Calls `visit` for each source in the table. An entry that moves meanwhile may be missed or seen twice.
///
/// # Errors
///
/// Where the table cannot be read.
pub fn walk(tables: &Tables, mut visit: impl FnMut(SourceKey, SourceState)) -> Result<Walk> {
    let started = Instant::now();
    let mut keys = vec![EMPTY_KEY; BATCH];
    let mut values = vec![SourceState::default(); BATCH];
    let mut cursor = Cursor::default();
    let mut entries = 0;
    loop {
        let (count, last) =
            sys::lookup_batch(tables.sources_fd(), &mut cursor, &mut keys, &mut values)
                .context("cannot walk the source table")?;
        for (key, value) in keys.iter().zip(&values).take(count) {
            visit(*key, *value);
        }
        entries += count as u64;
        if last || started.elapsed() > LONGEST {
            return Ok(Walk {
                entries,
                complete: last,
            });
        }
        thread::sleep(REST);
    }
}

const EMPTY_KEY: SourceKey = SourceKey {
    address: limiter_common::address::Address { high: 0, low: 0 },
    length: 0,
};
