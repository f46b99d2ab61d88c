//! Longest-prefix tries of addresses. aya edits them through exclusive references and one element at a time.

use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd as _, AsRawFd as _},
};

use aya::{
    Pod,
    maps::{MapData, MapError, MapType},
};

use super::{
    bpf,
    map::{
        BPF_MAP_DELETE_ELEM, BPF_MAP_LOOKUP_BATCH, BPF_MAP_UPDATE_BATCH, BPF_MAP_UPDATE_ELEM,
        BatchAttr, ElementAttr,
    },
};

const BPF_MAP_GET_NEXT_KEY: libc::c_long = 4;
const BPF_MAP_DELETE_BATCH: libc::c_long = 27;

/// A key of an LPM trie of addresses: `struct bpf_lpm_trie_key_u8`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::kernel) struct TrieKey {
    /// Bits of the prefix.
    pub(in crate::kernel) length: u32,
    /// The address in network order.
    pub(in crate::kernel) address: [u8; 16],
}

/// A trie that is known to have keys and values of these sizes, so that the kernel reads and writes no further.
#[derive(Debug)]
pub(in crate::kernel) struct Trie<V> {
    map: MapData,
    value: PhantomData<fn(V) -> V>,
}

impl<V: Pod> Trie<V> {
    /// A map, and how many prefixes it may hold; `None` where it is no such trie.
    pub(in crate::kernel) fn new(map: MapData) -> Result<Option<(Self, u32)>, MapError> {
        let info = map.info()?;
        let sizes = (info.key_size() as usize, info.value_size() as usize);
        if info.map_type()? != MapType::LpmTrie || sizes != (size_of::<TrieKey>(), size_of::<V>()) {
            return Ok(None);
        }
        let value = PhantomData;
        Ok(Some((Self { map, value }, info.max_entries())))
    }

    fn fd(&self) -> u32 {
        self.map.fd().as_fd().as_raw_fd().cast_unsigned()
    }

    /// Adds a prefix, or changes what it means.
    pub(in crate::kernel) fn update(&self, key: &TrieKey, value: &V) -> io::Result<()> {
        let mut attr = ElementAttr {
            map_fd: self.fd(),
            key: std::ptr::from_ref(key) as u64,
            value: std::ptr::from_ref(value) as u64,
            ..ElementAttr::default()
        };
        bpf(BPF_MAP_UPDATE_ELEM, &mut attr).map(drop)
    }

    /// Removes a prefix.
    pub(in crate::kernel) fn delete(&self, key: &TrieKey) -> io::Result<()> {
        let mut attr = ElementAttr {
            map_fd: self.fd(),
            key: std::ptr::from_ref(key) as u64,
            ..ElementAttr::default()
        };
        bpf(BPF_MAP_DELETE_ELEM, &mut attr).map(drop)
    }

    /// Any key, if there is one.
    pub(in crate::kernel) fn any_key(&self) -> io::Result<Option<TrieKey>> {
        let mut found = TrieKey::default();
        let mut attr = ElementAttr {
            map_fd: self.fd(),
            value: std::ptr::from_mut(&mut found) as u64,
            ..ElementAttr::default()
        };
        match bpf(BPF_MAP_GET_NEXT_KEY, &mut attr) {
            Ok(_) => Ok(Some(found)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds or changes as many of the first prefixes as the kernel takes in one call; how many.
    ///
    /// Whatever stops it will stop [`Self::update`] too, and be told there, unless batches as such are the trouble: a
    /// kernel may lack them for tries.
    pub(in crate::kernel) fn update_batch(&self, keys: &[TrieKey], values: &[V]) -> usize {
        let keys = &keys[..keys.len().min(values.len())];
        self.batch(BPF_MAP_UPDATE_BATCH, keys, values.as_ptr() as u64)
    }

    /// The same for removals.
    pub(in crate::kernel) fn delete_batch(&self, keys: &[TrieKey]) -> usize {
        self.batch(BPF_MAP_DELETE_BATCH, keys, 0)
    }

    fn batch(&self, command: libc::c_long, keys: &[TrieKey], values: u64) -> usize {
        let mut attr = BatchAttr {
            keys: keys.as_ptr() as u64,
            values,
            count: u32::try_from(keys.len()).unwrap_or(u32::MAX),
            map_fd: self.fd(),
            ..BatchAttr::default()
        };
        let result = bpf(command, &mut attr);
        let count = attr.count as usize;
        // Where it fails before it begins, it leaves the count as it was (`bpf_map_do_batch`).
        match result {
            Err(_) if count >= keys.len() => 0,
            _ => count,
        }
    }

    /// Copies the next prefixes behind the one at `cursor`; how many, and whether they were the last.
    ///
    /// Where the one at the cursor has gone meanwhile, the kernel begins anew (`trie_get_next_key`).
    pub(in crate::kernel) fn lookup_batch(
        &self,
        cursor: &mut Option<TrieKey>,
        keys: &mut [TrieKey],
        values: &mut [V],
    ) -> io::Result<(usize, bool)> {
        let room = keys.len().min(values.len());
        let from = *cursor;
        let mut to = TrieKey::default();
        let mut attr = BatchAttr {
            in_batch: from
                .as_ref()
                .map_or(0, |from| std::ptr::from_ref(from) as u64),
            out_batch: std::ptr::from_mut(&mut to) as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: u32::try_from(room).unwrap_or(u32::MAX),
            map_fd: self.fd(),
            ..BatchAttr::default()
        };
        let last = match bpf(BPF_MAP_LOOKUP_BATCH, &mut attr) {
            Ok(_) => false,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
            Err(error) => return Err(error),
        };
        *cursor = Some(to);
        Ok((attr.count as usize, last))
    }
}
