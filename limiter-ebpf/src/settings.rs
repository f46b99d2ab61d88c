//! Read-only globals, set by the loader for each interface and folded into the program by the verifier.

use aya_ebpf::Global;

/// Which entry of the per-interface maps is ours.
#[unsafe(no_mangle)]
static INTERFACE: Global<u32> = Global::new(0);

/// Not 0: the time comes from a map, for tests.
#[unsafe(no_mangle)]
static TEST_CLOCK: Global<u8> = Global::new(0);

#[inline(always)]
pub(crate) fn interface() -> u32 {
    INTERFACE.load()
}

#[inline(always)]
pub(crate) fn test_clock() -> bool {
    TEST_CLOCK.load() != 0
}

/// Slots of a value of the source table.
#[unsafe(no_mangle)]
static SLOTS: Global<u32> = Global::new(1);

#[inline(always)]
pub(crate) fn slots() -> u32 {
    SLOTS.load()
}
