//! The word that says which policy is in force, in memory shared with the program.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
    ptr::{self, NonNull},
};

use limiter_common::{
    policy::{Flip, Force},
    word::Word,
};

/// The flip map, mapped: each store is one atomic step for all CPUs.
#[derive(Debug)]
pub struct FlipWord(NonNull<Flip<Word>>);

// SAFETY: the memory is shared with the kernel anyway; every access is a single atomic operation.
unsafe impl Send for FlipWord {}
// SAFETY: as above.
unsafe impl Sync for FlipWord {}

/// `mmap` takes whole pages.
const LENGTH: usize = 4096;

impl FlipWord {
    pub(super) fn map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: a new mapping of a descriptor of ours, at an address that the kernel chooses.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                LENGTH,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(address.cast())
            .map(Self)
            .ok_or_else(|| io::Error::other("mapped at no address"))
    }

    fn words(&self) -> &Flip<Word> {
        // SAFETY: mapped until drop, and as long as a page.
        unsafe { self.0.as_ref() }
    }

    /// What is in force, if nothing has reverted it.
    #[must_use]
    pub fn current(&self) -> Force {
        Force(self.words().current.load())
    }

    /// Puts a policy in force, at once and on all CPUs.
    pub fn set(&self, force: Force) {
        let words = self.words();
        words.revert_at.store(0);
        words.before.store(words.current.load());
        words.current.store(force.0);
    }
}

impl Drop for FlipWord {
    fn drop(&mut self) {
        // SAFETY: what `map` has mapped, used no more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}
