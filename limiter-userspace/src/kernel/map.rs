//! A map by its descriptor: the system calls that aya's typed maps do not offer, batches above all.

use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use aya::Pod;

use super::sys::map::{self as sys, Cursor};

/// Entries of one batch.
const BATCH: usize = 4096;

/// A map with keys `K` and values `V`.
#[derive(Debug)]
pub struct RawMap<K, V> {
    fd: OwnedFd,
    types: PhantomData<fn(K) -> V>,
}

impl<K: Pod, V: Pod> RawMap<K, V> {
    /// The map behind a descriptor, whose keys and values must be as long as `K` and `V`.
    ///
    /// # Errors
    ///
    /// Where they are not.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        let info = sys::map_info(fd.as_fd())?;
        let found = (info.key_size as usize, info.value_size as usize);
        if found != (size_of::<K>(), size_of::<V>()) {
            return Err(io::Error::other(format!(
                "the map has keys and values of {found:?} bytes, not {:?}",
                (size_of::<K>(), size_of::<V>())
            )));
        }
        Ok(Self {
            fd,
            types: PhantomData,
        })
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn get(&self, key: &K) -> io::Result<Option<V>> {
        sys::lookup(self.fd.as_fd(), key)
    }

    /// Sets a value.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses, such as for lack of room.
    pub fn set(&self, key: &K, value: &V) -> io::Result<()> {
        sys::update(self.fd.as_fd(), key, value)
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn remove(&self, key: &K) -> io::Result<bool> {
        sys::delete(self.fd.as_fd(), key)
    }

    /// Sets many values.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses; some may have been set then.
    pub fn set_all(&self, keys: &[K], values: &[V]) -> io::Result<()> {
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            sys::update_batch(self.fd.as_fd(), keys, values)?;
        }
        Ok(())
    }

    /// All entries of a hash. One that moves meanwhile may be missed or found twice.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn entries(&self) -> io::Result<Vec<(K, V)>> {
        let mut found = Vec::new();
        let mut cursor = Cursor::default();
        loop {
            let (entries, last) = sys::lookup_batch(self.fd.as_fd(), &mut cursor, BATCH)?;
            found.extend(entries);
            if last {
                return Ok(found);
            }
        }
    }
}

impl<K, V> AsFd for RawMap<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
