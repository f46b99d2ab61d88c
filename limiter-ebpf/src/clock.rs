//! The time.

use aya_ebpf::helpers::bpf_ktime_get_ns;

use crate::{maps, settings};

/// Nanoseconds of the monotonic clock, which stands still while the machine is suspended.
#[inline(always)]
pub(crate) fn now() -> u64 {
    if settings::test_clock() {
        return maps::test_time().unwrap_or(0);
    }
    // SAFETY: the helper has no preconditions.
    unsafe { bpf_ktime_get_ns() }
}
