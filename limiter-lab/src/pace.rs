//! Doing things at exact moments.

use std::{
    hint,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::prctl,
    unistd::Pid,
};

use crate::stop::Stop;

/// How much before its moment a waiter stops to sleep and begins to watch the clock.
const WATCH: Duration = Duration::from_micros(60);

/// Lets the calling thread wake from sleep as exactly as the kernel can.
pub(crate) fn wake_exactly() -> Result<()> {
    prctl::set_timerslack(1).context("set the thread's timer slack")
}

/// Keeps the calling thread on one CPU.
pub(crate) fn pin_to(cpu: usize) -> Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu)
        .with_context(|| format!("CPU {cpu} is beyond what a CPU set holds"))?;
    sched_setaffinity(Pid::from_raw(0), &cpus)
        .with_context(|| format!("keep the thread on CPU {cpu}"))
}

/// Waits for the moment, at the end by watching the clock; says whether to go on.
#[must_use]
pub(crate) fn wait_exactly(moment: Instant, stop: &Stop) -> bool {
    let Some(near) = moment.checked_sub(WATCH) else {
        return !stop.asked();
    };
    if !stop.sleep_until(near) {
        return false;
    }
    while Instant::now() < moment {
        hint::spin_loop();
    }
    true
}

/// The time of event `n` of so many per second, from the first on.
pub(crate) fn moment_of(n: u64, per_second: u64) -> Duration {
    let nanoseconds = u128::from(n) * 1_000_000_000 / u128::from(per_second);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// How many events of so many per second are due after a time, the first one at once.
pub(crate) fn due_after(elapsed: Duration, per_second: u64) -> u64 {
    let due = elapsed.as_nanos() * u128::from(per_second) / 1_000_000_000 + 1;
    u64::try_from(due).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_do_not_drift() {
        assert_eq!(moment_of(1_001 * 3600, 1_001), Duration::from_secs(3600));
        assert_eq!(moment_of(1, 3), Duration::from_nanos(333_333_333));
        for n in [0, 1, 2, 1_001, 999_999] {
            let at = moment_of(n, 1_000_000);
            assert_eq!(due_after(at, 1_000_000), n + 1);
        }
    }
}
