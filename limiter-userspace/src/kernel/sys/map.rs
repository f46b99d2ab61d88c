//! The bpf(2) commands on maps.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
};

use aya::Pod;

use super::{bpf, bpf_fd, link::InfoAttr};

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
pub(super) const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
pub(super) const BPF_MAP_DELETE_ELEM: libc::c_long = 3;
pub(super) const BPF_MAP_LOOKUP_BATCH: libc::c_long = 24;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
pub(super) const BPF_MAP_UPDATE_BATCH: libc::c_long = 26;

/// `union bpf_attr`, its `batch` member (`include/uapi/linux/bpf.h`, 6.12).
#[repr(C)]
#[derive(Default)]
pub(super) struct BatchAttr {
    pub(super) in_batch: u64,
    pub(super) out_batch: u64,
    pub(super) keys: u64,
    pub(super) values: u64,
    pub(super) count: u32,
    pub(super) map_fd: u32,
    pub(super) elem_flags: u64,
    pub(super) flags: u64,
}

/// Where a walk over a hash map has got to.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::kernel) struct Cursor(Option<u32>);

/// Copies the next entries of a hash map, about as many as `room`; whether they were the last.
///
/// A batch ends at a bucket of the hash, so entries that come and go meanwhile cannot send the walk round in circles.
///
/// # Errors
///
/// `ENOSPC` where a single bucket has more entries than fit.
pub(in crate::kernel) fn lookup_batch<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    cursor: &mut Cursor,
    room: usize,
) -> io::Result<(Vec<(K, V)>, bool)> {
    let mut values = vec![MaybeUninit::<V>::uninit(); room];
    let (keys, last) = lookup_batch_bytes(map, cursor, room, values.as_mut_ptr() as u64)?;
    let values = values.into_iter().map(|value| {
        // SAFETY: the kernel has written as many values as there are keys, and the zip takes no more.
        unsafe { value.assume_init() }
    });
    Ok((keys.into_iter().zip(values).collect(), last))
}

/// As [`lookup_batch`], with values of any length, written one after the other to the address `values`, which must have
/// room for `room` of them.
pub(in crate::kernel) fn lookup_batch_bytes<K: Pod>(
    map: BorrowedFd<'_>,
    cursor: &mut Cursor,
    room: usize,
    values: u64,
) -> io::Result<(Vec<K>, bool)> {
    let mut keys = Vec::<K>::with_capacity(room);
    let from = cursor.0.unwrap_or(0);
    let mut to = 0u32;
    let mut attr = BatchAttr {
        in_batch: cursor.0.map_or(0, |_| std::ptr::from_ref(&from) as u64),
        out_batch: std::ptr::from_mut(&mut to) as u64,
        keys: keys.as_mut_ptr() as u64,
        values,
        count: u32::try_from(room).unwrap_or(u32::MAX),
        map_fd: map.as_raw_fd().cast_unsigned(),
        elem_flags: 0,
        flags: 0,
    };
    let last = match bpf(BPF_MAP_LOOKUP_BATCH, &mut attr) {
        Ok(_) => false,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
        Err(error) => return Err(error),
    };
    // SAFETY: the kernel has written so many keys.
    unsafe { keys.set_len(attr.count as usize) };
    *cursor = Cursor(Some(to));
    Ok((keys, last))
}

/// `union bpf_attr`, its member for single elements.
#[repr(C)]
#[derive(Default)]
pub(super) struct ElementAttr {
    pub(super) map_fd: u32,
    pub(super) zero: u32,
    pub(super) key: u64,
    pub(super) value: u64,
    pub(super) flags: u64,
}

impl ElementAttr {
    fn new(map: BorrowedFd<'_>, key: u64, value: u64) -> Self {
        Self {
            map_fd: map.as_raw_fd().cast_unsigned(),
            key,
            value,
            ..Self::default()
        }
    }
}

/// The value of a key, if it is there.
pub(in crate::kernel) fn lookup<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    key: &K,
) -> io::Result<Option<V>> {
    let mut value = MaybeUninit::<V>::uninit();
    if lookup_bytes(map, key, value.as_mut_ptr() as u64)? {
        // SAFETY: the kernel has written it.
        Ok(Some(unsafe { value.assume_init() }))
    } else {
        Ok(None)
    }
}

/// As [`lookup`], with a value of any length, written to the address `value`, which must have room for it.
pub(in crate::kernel) fn lookup_bytes<K: Pod>(
    map: BorrowedFd<'_>,
    key: &K,
    value: u64,
) -> io::Result<bool> {
    let mut attr = ElementAttr::new(map, std::ptr::from_ref(key) as u64, value);
    match bpf(BPF_MAP_LOOKUP_ELEM, &mut attr) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets a value.
pub(in crate::kernel) fn update<K: Pod, V: ?Sized>(
    map: BorrowedFd<'_>,
    key: &K,
    value: &V,
) -> io::Result<()> {
    let value = std::ptr::from_ref(value).cast::<u8>() as u64;
    let mut attr = ElementAttr::new(map, std::ptr::from_ref(key) as u64, value);
    bpf(BPF_MAP_UPDATE_ELEM, &mut attr).map(drop)
}

/// Removes a key; whether it was there.
pub(in crate::kernel) fn delete<K: Pod>(map: BorrowedFd<'_>, key: &K) -> io::Result<bool> {
    let mut attr = ElementAttr::new(map, std::ptr::from_ref(key) as u64, 0);
    match bpf(BPF_MAP_DELETE_ELEM, &mut attr) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets as many values as there are keys.
pub(in crate::kernel) fn update_batch<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    keys: &[K],
    values: &[V],
) -> io::Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut attr = BatchAttr {
        keys: keys.as_ptr() as u64,
        values: values.as_ptr() as u64,
        count: u32::try_from(keys.len().min(values.len())).map_err(io::Error::other)?,
        map_fd: map.as_raw_fd().cast_unsigned(),
        ..BatchAttr::default()
    };
    bpf(BPF_MAP_UPDATE_BATCH, &mut attr).map(drop)
}

/// `union bpf_attr`, its member for creating maps, as far as it is needed.
#[repr(C)]
#[derive(Default)]
struct CreateAttr {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
}

/// Creates a map of a kind (`enum bpf_map_type`).
pub(in crate::kernel) fn create_map(
    kind: u32,
    (key_size, value_size): (u32, u32),
    max_entries: u32,
    name: &str,
) -> io::Result<OwnedFd> {
    let mut attr = CreateAttr {
        kind,
        key_size,
        value_size,
        max_entries,
        ..CreateAttr::default()
    };
    // The last byte stays zero.
    for (to, from) in attr.name[..15].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    bpf_fd(BPF_MAP_CREATE, &mut attr)
}

/// `struct bpf_map_info`, as far as it is needed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::kernel) struct MapShape {
    kind: u32,
    id: u32,
    /// Bytes of a key.
    pub(in crate::kernel) key_size: u32,
    /// Bytes of a value.
    pub(in crate::kernel) value_size: u32,
    /// The most entries.
    pub(in crate::kernel) max_entries: u32,
    flags: u32,
}

/// Describes a map.
pub(in crate::kernel) fn map_info(map: BorrowedFd<'_>) -> io::Result<MapShape> {
    let mut shape = MapShape::default();
    let mut attr = InfoAttr {
        bpf_fd: map.as_raw_fd().cast_unsigned(),
        info_len: u32::try_from(size_of::<MapShape>()).map_err(io::Error::other)?,
        info: std::ptr::from_mut(&mut shape) as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(shape)
}
