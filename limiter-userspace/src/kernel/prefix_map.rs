//! Prefix sets in the kernel: longest-prefix tries.
//!
//! Every method takes a shared reference, and the kernel locks a trie for one prefix at a time (`trie_update_elem`,
//! `kernel/bpf/lpm_trie.c`): whoever edits one prefix never waits for a bulk load into the same set or another, as long
//! as the bulk load has a thread of its own.

pub mod memory;

use std::{io, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use aya::{Pod, maps::MapData};
use limiter_common::address::Address;
use limiter_policy::{
    lists::Delta,
    prefix::{Prefix, PrefixSet},
};

use super::sys::trie::{Trie, TrieKey};

/// Prefixes that a set may hold. A trie takes no memory for prefixes that it does not hold (`BPF_F_NO_PREALLOC`), so
/// this only bounds what a policy may ask for: 885 MB for a set of lists, at most.
pub const MAX_PREFIXES: u32 = 1 << 22;

/// Prefixes that go to the kernel in one call.
const CHUNK: usize = 4096;
/// The kernel's allocator refills itself in the background, and its locks give up rather than wait long: what fails
/// for such a reason may succeed a moment later.
const RETRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);

/// A prefix set in the kernel.
#[derive(Debug)]
pub struct PrefixMap<V> {
    trie: Trie<V>,
    most: u32,
}

impl<V: Pod + Default> PrefixMap<V> {
    /// A set in a map of the program.
    ///
    /// # Errors
    ///
    /// Where the map is not a trie of addresses with such values.
    pub fn new(map: MapData) -> Result<Self> {
        let Some((trie, most)) = Trie::new(map).context("cannot ask the kernel about a map")?
        else {
            bail!(
                "not a trie of addresses with values of {} bytes",
                size_of::<V>()
            );
        };
        Ok(Self { trie, most })
    }

    /// Adds a prefix, or changes what it means.
    ///
    /// # Errors
    ///
    /// Where the set is full or the kernel has no memory.
    pub fn set(&self, prefix: Prefix, value: V) -> Result<()> {
        self.set_key(&key(prefix), &value)
    }

    /// Removes a prefix; whether it was there.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn remove(&self, prefix: Prefix) -> Result<bool> {
        self.remove_key(&key(prefix))
    }

    /// Makes the changes: new prefixes first, so that no address is without any meanwhile.
    ///
    /// After an error some of the changes are made, and may be made again.
    ///
    /// # Errors
    ///
    /// Where the set is full or the kernel has no memory. Whether a bulk load finds memory is asked before it begins.
    pub fn apply(&self, delta: &Delta<V>) -> Result<()> {
        // A few prefixes are not worth the question.
        if delta.set.len() > CHUNK {
            memory::require(memory::bytes::<V>(delta.set.len()))?;
        }
        for entries in delta.set.chunks(CHUNK) {
            let keys: Vec<TrieKey> = entries.iter().map(|(prefix, _)| key(*prefix)).collect();
            let values: Vec<V> = entries.iter().map(|(_, value)| *value).collect();
            in_batches(
                keys.len(),
                |from| self.trie.update_batch(&keys[from..], &values[from..]),
                |at| self.set_key(&keys[at], &values[at]),
            )?;
        }
        for prefixes in delta.remove.chunks(CHUNK) {
            let keys: Vec<TrieKey> = prefixes.iter().copied().map(key).collect();
            self.remove_keys(&keys)?;
        }
        Ok(())
    }

    /// Removes all prefixes; how many there were.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn clear(&self) -> Result<usize> {
        let mut keys = vec![TrieKey::default(); CHUNK];
        let mut values = vec![V::default(); CHUNK];
        let mut cleared = 0;
        loop {
            let found = self.trie.lookup_batch(&mut None, &mut keys, &mut values);
            let count = match found {
                Ok((count, _)) => count,
                // A kernel without batches for tries, or short of memory: one at a time.
                Err(_) => match self.trie.any_key().context("cannot walk a prefix set")? {
                    Some(key) => {
                        keys[0] = key;
                        1
                    }
                    None => 0,
                },
            };
            if count == 0 {
                return Ok(cleared);
            }
            self.remove_keys(&keys[..count])?;
            cleared += count;
        }
    }

    /// Copies all prefixes, of which none may come or go meanwhile.
    ///
    /// # Errors
    ///
    /// Where the kernel cannot walk a trie in batches.
    pub fn read(&self) -> Result<PrefixSet<V>> {
        let mut keys = vec![TrieKey::default(); CHUNK];
        let mut values = vec![V::default(); CHUNK];
        let mut entries = Vec::new();
        let mut cursor = None;
        loop {
            let found = self.trie.lookup_batch(&mut cursor, &mut keys, &mut values);
            let (count, last) = found.context("cannot read a prefix set")?;
            let prefixes = keys[..count].iter().map(prefix);
            entries.extend(prefixes.zip(values[..count].iter().copied()));
            if last {
                return Ok(PrefixSet::new(entries));
            }
        }
    }

    fn set_key(&self, key: &TrieKey, value: &V) -> Result<()> {
        let result = patiently(|| self.trie.update(key, value));
        result.map_err(|error| self.explain(&error, prefix(key)))
    }

    fn remove_key(&self, key: &TrieKey) -> Result<bool> {
        match patiently(|| self.trie.delete(key)) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(self.explain(&error, prefix(key))),
        }
    }

    fn remove_keys(&self, keys: &[TrieKey]) -> Result<()> {
        in_batches(
            keys.len(),
            |from| self.trie.delete_batch(&keys[from..]),
            |at| self.remove_key(&keys[at]).map(drop),
        )
    }

    fn explain(&self, error: &io::Error, prefix: Prefix) -> anyhow::Error {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::E2BIG) => anyhow!(
                "{prefix}: the prefix set is full with {} prefixes; shorten the lists, or join neighbours in them",
                self.most
            ),
            Some(libc::ENOMEM) => anyhow!(
                "{prefix}: the kernel has no memory for another prefix; free some, raise the memory limit of the \
                 daemon's control group if it has one, or shorten the lists"
            ),
            _ => anyhow!("{prefix}: the kernel does not take it: {error}"),
        }
    }
}

/// Does `count` things in order: `batch` from one of them on, as many as it can, and where it stops, `single` does the
/// next. It says why, if it fails; a batch does not, and stops at what is no failure, such as a removed prefix that was
/// not there.
fn in_batches(
    count: usize,
    mut batch: impl FnMut(usize) -> usize,
    mut single: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut done = 0;
    let mut batches = true;
    while done < count {
        if batches {
            let more = batch(done);
            // One that does nothing at all is not tried again: an older kernel has none for tries.
            batches = more > 0;
            done += more;
        }
        if done < count {
            single(done)?;
            done += 1;
        }
    }
    Ok(())
}

fn patiently(mut action: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut retries = 0;
    loop {
        match action() {
            Err(error) if retries < RETRIES && is_transient(&error) => {
                retries += 1;
                thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// `rqspinlock` (since 6.15) gives up with `EDEADLK` or `ETIMEDOUT`; `bpf_mem_cache_alloc` (since 6.13) takes from a
/// reserve that an interrupt refills.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EBUSY | libc::EDEADLK | libc::ENOMEM | libc::ETIMEDOUT)
    )
}

fn key(prefix: Prefix) -> TrieKey {
    let Address { high, low } = prefix.address;
    let bits = u128::from(high) << 64 | u128::from(low);
    TrieKey {
        length: u32::from(prefix.length),
        address: bits.to_be_bytes(),
    }
}

fn prefix(key: &TrieKey) -> Prefix {
    let length = u8::try_from(key.length).unwrap_or(128);
    Prefix::new(Address::from_v6(key.address), length)
}

#[cfg(test)]
mod tests;
