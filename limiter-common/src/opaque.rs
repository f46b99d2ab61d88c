//! Values hidden from those who know too much about them.

/// `value`, about which LLVM knows nothing any more.
#[cfg(target_arch = "bpf")]
#[inline(always)]
pub(crate) fn opaque(mut value: u64) -> u64 {
    // SAFETY: a move to itself. Without an instruction of its own, its line would stand at the offset of the next one,
    // and the kernel refuses two lines at one offset.
    unsafe {
        core::arch::asm!("{0} = {0}", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    value
}

/// `value`.
#[cfg(not(target_arch = "bpf"))]
pub(crate) const fn opaque(value: u64) -> u64 {
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
