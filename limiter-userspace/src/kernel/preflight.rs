//! What must hold before anything is loaded.

use std::fs;

use anyhow::{Context as _, Result, bail};
use aya::util::{KernelVersion, nr_cpus};
use caps::{CapSet, Capability};
use limiter_common::{limits::MIN_SOURCES_PER_CPU, state::element_size};

use super::load::Room;
use crate::units;

/// Loading needs these; `CAP_SYS_ADMIN` stands for the first two (`bpf_capable`, `perfmon_capable`; 5.8).
const NEEDED: [(Capability, &str); 3] = [
    (Capability::CAP_BPF, "CAP_BPF, to load the program"),
    (
        Capability::CAP_PERFMON,
        "CAP_PERFMON, for the verifier to allow packet pointers to be compared",
    ),
    (Capability::CAP_NET_ADMIN, "CAP_NET_ADMIN, to attach it"),
];

/// Checks capabilities, kernel version and memory.
///
/// # Errors
///
/// The first thing missing, and how to get it.
pub fn check(room: Room) -> Result<()> {
    capabilities()?;
    kernel_version()?;
    table_capacity(room.sources)?;
    table_memory(room)
}

fn capabilities() -> Result<()> {
    let held =
        caps::read(None, CapSet::Effective).context("cannot read this process's capabilities")?;
    for (capability, what) in NEEDED {
        let implied =
            held.contains(&Capability::CAP_SYS_ADMIN) && capability != Capability::CAP_NET_ADMIN;
        if !held.contains(&capability) && !implied {
            bail!(
                "missing capability {what}: run as root, or grant CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
            );
        }
    }
    Ok(())
}

fn kernel_version() -> Result<()> {
    let version = KernelVersion::current().context("cannot tell the kernel's version")?;
    if version < KernelVersion::new(5, 12, 0) {
        bail!(
            "kernel {version} is too old: exact buckets need atomic compare-exchange in BPF, which came with 5.12"
        );
    }
    Ok(())
}

/// The kernel's own text where the program did not load is for experts; what it usually means is not.
#[must_use]
pub fn load_hint() -> &'static str {
    match KernelVersion::current() {
        Ok(version) if version < KernelVersion::new(5, 18, 0) => {
            "this kernel is older than 5.18, which brought the helpers for multi-buffer frames"
        }
        _ => "please report this with the kernel's version",
    }
}

fn table_capacity(capacity: u32) -> Result<()> {
    let cpus = u32::try_from(possible_cpus()?)?;
    let least = MIN_SOURCES_PER_CPU.saturating_mul(cpus);
    if capacity < least {
        bail!(
            "--max-sources {capacity}: too few for {cpus} possible CPUs, since the kernel frees entries in batches per \
             CPU; the lowest is {least} ({MIN_SOURCES_PER_CPU} per CPU)"
        );
    }
    Ok(())
}

/// Possible CPUs, of which the kernel may have more than are online.
///
/// # Errors
///
/// Where the kernel does not say.
pub fn possible_cpus() -> Result<usize> {
    nr_cpus()
        .map_err(|(path, error)| anyhow::Error::new(error).context(format!("cannot read {path}")))
}

/// Bytes that the kernel takes for a source table with this room, up front.
#[must_use]
pub fn table_bytes(room: Room) -> u64 {
    // `struct bucket` (kernel/bpf/hashtab.c, 6.12).
    const BUCKET: u64 = 16;
    let capacity = u64::from(room.sources);
    capacity * u64::from(element_size(room.slots)) + capacity.next_power_of_two() * BUCKET
}

fn table_memory(room: Room) -> Result<()> {
    let capacity = room.sources;
    let needed = table_bytes(room);
    let available = available_memory()?;
    // The rest of the machine wants to live, too.
    let most = available / 4 * 3;
    if needed > most {
        bail!(
            "--max-sources {capacity}: the table would take {needed} bytes ({}), more than three quarters of the {} \
             available; {} sources would fit",
            units::bytes(needed),
            units::bytes(available),
            most / (needed / u64::from(capacity)).max(1),
        );
    }
    Ok(())
}

fn available_memory() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let kilobytes = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?
                .trim()
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
        })
        .context("/proc/meminfo has no MemAvailable")?;
    Ok(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_sources_take_two_cache_lines_each() {
        let room = Room {
            sources: 1 << 20,
            slots: 1,
            logs: 1,
            bans: 1,
        };
        assert_eq!(table_bytes(room), (1 << 20) * (128 + 16));
    }
}
