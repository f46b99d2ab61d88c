//! System calls that no library offers.

pub(super) mod link;

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use limiter_common::{source::SourceKey, state::SourceState};

const BPF_MAP_LOOKUP_BATCH: libc::c_long = 24;

/// `union bpf_attr`, its `batch` member (`include/uapi/linux/bpf.h`, 6.12).
#[repr(C)]
#[derive(Default)]
struct BatchAttr {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

fn bpf<A>(command: libc::c_long, attr: &mut A) -> io::Result<libc::c_long> {
    // SAFETY: `attr` is a prefix of `union bpf_attr` of the size given, and the pointers in it are valid for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attr),
            size_of::<A>(),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// As [`bpf`], for commands that return a descriptor.
fn bpf_fd<A>(command: libc::c_long, attr: &mut A) -> io::Result<OwnedFd> {
    let fd = i32::try_from(bpf(command, attr)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Where a walk over a hash map has got to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor(Option<u32>);

/// Copies the next entries of the source table into `keys` and `values`; how many, and whether they were the last.
///
/// A batch ends at a bucket of the hash, so entries that come and go meanwhile cannot send the walk round in circles.
///
/// # Errors
///
/// `ENOSPC` where a single bucket has more entries than fit.
pub(super) fn lookup_batch(
    map: BorrowedFd<'_>,
    cursor: &mut Cursor,
    keys: &mut [SourceKey],
    values: &mut [SourceState],
) -> io::Result<(usize, bool)> {
    let room = keys.len().min(values.len());
    let from = cursor.0.unwrap_or(0);
    let mut to = 0u32;
    let mut attr = BatchAttr {
        in_batch: cursor.0.map_or(0, |_| std::ptr::from_ref(&from) as u64),
        out_batch: std::ptr::from_mut(&mut to) as u64,
        keys: keys.as_mut_ptr() as u64,
        values: values.as_mut_ptr() as u64,
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
    *cursor = Cursor(Some(to));
    Ok((attr.count as usize, last))
}

/// Nanoseconds of the clock that the program reads: `bpf_ktime_get_ns` is `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
