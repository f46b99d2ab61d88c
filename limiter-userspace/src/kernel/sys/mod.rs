//! System calls that no library offers.

pub(super) mod link;
pub(super) mod map;
pub(super) mod trie;

use std::{
    io,
    os::fd::{FromRawFd as _, OwnedFd},
};

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
