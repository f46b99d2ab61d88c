//! Values hidden from those who know too much about them.

/// `value`, about which LLVM knows nothing any more.
#[cfg(target_arch = "bpf")]
#[inline(always)]
#[must_use]
pub fn opaque(mut value: u64) -> u64 {
    // SAFETY: a move to itself. Without an instruction of its own, its line would stand at the offset of the next one,
    // and the kernel refuses two lines at one offset.
    unsafe {
        core::arch::asm!("{0} = {0}", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// `value`.
#[cfg(not(target_arch = "bpf"))]
#[must_use]
pub const fn opaque(value: u64) -> u64 {
    value
}

/// `value`, for use after a check of it: LLVM may compute nothing from it before.
///
/// The verifier wants to see the check first, where to LLVM a pointer that is never followed harms nobody.
#[cfg(target_arch = "bpf")]
#[inline(always)]
#[must_use]
pub fn checked(mut value: u64) -> u64 {
    // SAFETY: a move to itself, as above. It does not count as pure, so that it stays behind the check.
    unsafe {
        core::arch::asm!("{0} = {0}", inout(reg) value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// `value`.
#[cfg(not(target_arch = "bpf"))]
#[must_use]
pub const fn checked(value: u64) -> u64 {
    value
}

/// Zero, which no CPU can have before it has `value`: an address made with it is read after what `value` was read from.
#[cfg(target_arch = "bpf")]
#[inline(always)]
#[must_use]
pub(crate) fn zero_after(mut value: u64) -> u64 {
    // SAFETY: clears a register.
    unsafe {
        core::arch::asm!("{0} &= 0", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// `value`, of which the BPF verifier knows no more than that it is at most `MASK`.
///
/// The verifier follows each path with all it has learnt, such as how many tags came before; forgetting what does not
/// matter lets it see that it has been here already.
#[inline(always)]
pub(crate) fn forget<const MASK: u32>(value: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value was 32 bits wide"
    )]
    let forgotten = opaque(value.into()) as u32 & MASK;
    debug_assert!(forgotten == value, "{value} is not within the mask");
    forgotten
}

/// `value`, of which the BPF verifier knows nothing any more; `unknown` is anything that it knows nothing of.
#[inline(always)]
pub(crate) fn forget_all(value: u64, unknown: u64) -> u64 {
    opaque(value ^ unknown) ^ unknown
}
