//! A 64-bit word in shared memory, changed by compare-and-swap.
//!
//! A map value is written by every CPU at once, and an LRU map cannot hold a spin lock, so all state that must be
//! exact is a [`Word`].

use core::cell::UnsafeCell;

/// One shared word. `repr(transparent)`, so a map value may be viewed as containing words.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Word(UnsafeCell<u64>);

// SAFETY: every access through a shared reference is a single atomic operation, or in the kernel a volatile 64-bit access.
unsafe impl Sync for Word {}

impl Word {
    /// A word holding `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The current value.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        // SAFETY: the pointer is valid and aligned, being that of a reference.
        unsafe { atomic::load(self.0.get()) }
    }

    /// The current value, read later than the word that held `earlier` was.
    #[inline(always)]
    pub fn load_after(&self, earlier: u64) -> u64 {
        // SAFETY: the pointer is valid and aligned, being that of a reference.
        unsafe { atomic::load_after(self.0.get(), earlier) }
    }

    /// Overwrites the value; for words of which the last writer may win.
    #[inline(always)]
    pub fn store(&self, value: u64) {
        // SAFETY: the pointer is valid and aligned, being that of a reference.
        unsafe { atomic::store(self.0.get(), value) }
    }

    /// Replaces `current` by `new`; false, and no change, if the word held something else.
    #[inline(always)]
    pub fn compare_exchange(&self, current: u64, new: u64) -> bool {
        // SAFETY: the pointer is valid and aligned, being that of a reference.
        unsafe { atomic::compare_exchange(self.0.get(), current, new) }
    }

    /// Adds `n`, wrapping; never loses an update.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        // SAFETY: the pointer is valid and aligned, being that of a reference.
        unsafe { atomic::add(self.0.get(), n) }
    }

    /// Adds `n`, wrapping, and returns the value before.
    #[inline(always)]
    pub fn fetch_add(&self, n: u64) -> u64 {
        // SAFETY: the pointer is valid and aligned, being that of a reference.
        unsafe { atomic::fetch_add(self.0.get(), n) }
    }
}

/// `BPF_CMPXCHG` needs Linux 5.12 (commit 5ffa25502b5a, "bpf: Add instructions for atomic_[cmp]xchg").
#[cfg(target_arch = "bpf")]
mod atomic {
    use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_xadd};

    use crate::opaque::zero_after;

    #[inline(always)]
    pub(super) unsafe fn load(word: *mut u64) -> u64 {
        // SAFETY: the caller passes a valid, aligned pointer; aligned 64-bit accesses do not tear.
        unsafe { word.read_volatile() }
    }

    #[inline(always)]
    pub(super) unsafe fn load_after(word: *mut u64, earlier: u64) -> u64 {
        // Linux 5.12 has no load that acquires. A CPU that reorders loads, as Arm's do, keeps those in order of which one
        // has its address from the other.
        let word = word.wrapping_byte_add(zero_after(earlier) as usize);
        // SAFETY: the pointer is the caller's.
        unsafe { load(word) }
    }

    #[inline(always)]
    pub(super) unsafe fn store(word: *mut u64, value: u64) {
        // SAFETY: as in `load`.
        unsafe { word.write_volatile(value) }
    }

    #[inline(always)]
    pub(super) unsafe fn compare_exchange(word: *mut u64, current: u64, new: u64) -> bool {
        // SAFETY: the caller passes a valid, aligned pointer.
        unsafe {
            atomic_cxchg::<u64, { AtomicOrdering::SeqCst }, { AtomicOrdering::SeqCst }>(
                word, current, new,
            )
            .1
        }
    }

    #[inline(always)]
    pub(super) unsafe fn fetch_add(word: *mut u64, n: u64) -> u64 {
        // SAFETY: the caller passes a valid, aligned pointer.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(word, n) }
    }

    #[inline(always)]
    pub(super) unsafe fn add(word: *mut u64, n: u64) {
        // The result stays unused: LLVM 22 miscompiles a relaxed fetch-and-add whose result is used.
        // SAFETY: the caller passes a valid, aligned pointer.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(word, n) };
    }
}

#[cfg(not(target_arch = "bpf"))]
mod atomic {
    use core::sync::atomic::{AtomicU64, Ordering};

    pub(super) unsafe fn load(word: *mut u64) -> u64 {
        // SAFETY: the caller passes a valid, aligned pointer.
        let word = unsafe { AtomicU64::from_ptr(word) };
        word.load(Ordering::SeqCst)
    }

    pub(super) unsafe fn load_after(word: *mut u64, _: u64) -> u64 {
        // SAFETY: the caller passes a valid, aligned pointer.
        unsafe { load(word) }
    }

    pub(super) unsafe fn store(word: *mut u64, value: u64) {
        // SAFETY: the caller passes a valid, aligned pointer.
        let word = unsafe { AtomicU64::from_ptr(word) };
        word.store(value, Ordering::SeqCst);
    }

    pub(super) unsafe fn compare_exchange(word: *mut u64, current: u64, new: u64) -> bool {
        // SAFETY: the caller passes a valid, aligned pointer.
        let word = unsafe { AtomicU64::from_ptr(word) };
        word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    pub(super) unsafe fn fetch_add(word: *mut u64, n: u64) -> u64 {
        // SAFETY: the caller passes a valid, aligned pointer.
        let word = unsafe { AtomicU64::from_ptr(word) };
        word.fetch_add(n, Ordering::SeqCst)
    }

    pub(super) unsafe fn add(word: *mut u64, n: u64) {
        // SAFETY: the caller passes a valid, aligned pointer.
        let word = unsafe { AtomicU64::from_ptr(word) };
        word.fetch_add(n, Ordering::Relaxed);
    }
}
