//! The maps that the program's instances share.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf,
    maps::{MapData, PerCpuArray},
};
use limiter_common::{
    counters::{Counters, LimitCounters},
    judge::LogKey,
    limits::{MAX_INTERFACES, SHARED_SLOTS},
    meter::MeterLog,
    needs::Need,
    policy::{METERS, Matching, MeterEntry, MeterRow, POLICIES, Policy},
    source::SourceKey,
    standing::{Ban, Entry, Membership},
    state::Slot,
};

use super::{
    flip::FlipWord, map::RawMap, prefix_map::PrefixMap, sources::Sources, sys::link::open_pin,
};

/// Bucket words of the host's own needs of one interface, by [`Need`].
pub type NeedWords = [u64; Need::COUNT];

const SETS: usize = POLICIES as usize;

/// Handles to the maps.
pub struct Tables {
    /// Which policy is in force.
    pub flip: FlipWord,
    pub(super) policies: RawMap<u32, Policy>,
    pub(super) ports: RawMap<u32, u64>,
    pub(super) matches: RawMap<u32, Matching>,
    pub(super) rows: RawMap<u32, MeterRow>,
    pub(super) meters: RawMap<u32, MeterEntry>,
    pub(super) classes: [PrefixMap<Membership>; SETS],
    pub(super) lists: [PrefixMap<Entry>; SETS],
    /// Bans that limits have made.
    pub bans: RawMap<SourceKey, Ban>,
    /// The source table.
    pub sources: Sources,
    /// State of the limits that everyone shares.
    pub shared: RawMap<u32, Slot>,
    /// Sliding logs.
    pub logs: RawMap<LogKey, MeterLog>,
    counters: PerCpuArray<MapData, Counters>,
    needs: RawMap<u32, NeedWords>,
    /// The time, where the program was loaded to take it from here.
    pub clock: RawMap<u32, u64>,
}

impl Tables {
    /// Opens the maps of an instance by their pins.
    pub(super) fn open(ebpf: &mut Ebpf, pins: &Path, slots: u32) -> Result<Self> {
        let open = |name: &str| -> io::Result<OwnedFd> { open_pin(&pins.join(name)) };
        let flip = open("FLIP").context("cannot open the map FLIP")?;
        let flip = FlipWord::map(flip.as_fd()).context("cannot map which policy is in force")?;
        let sources = open("SOURCES").context("cannot open the source table")?;
        let counters = ebpf
            .take_map("COUNTERS")
            .context("the object has no map COUNTERS")?;
        Ok(Self {
            flip,
            policies: named(pins, "POLICIES")?,
            ports: named(pins, "PORTS")?,
            matches: named(pins, "MATCHES")?,
            rows: named(pins, "ROWS")?,
            meters: named(pins, "METERS")?,
            classes: [
                prefixes(pins, "CLASSES_0")?,
                prefixes(pins, "CLASSES_1")?,
                prefixes(pins, "CLASSES_2")?,
            ],
            lists: [
                prefixes(pins, "LISTS_0")?,
                prefixes(pins, "LISTS_1")?,
                prefixes(pins, "LISTS_2")?,
            ],
            bans: named(pins, "BANS")?,
            sources: Sources::new(sources, slots),
            shared: named(pins, "SHARED")?,
            logs: named(pins, "LOGS")?,
            counters: counters.try_into()?,
            needs: named(pins, "NEEDS")?,
            clock: named(pins, "CLOCK")?,
        })
    }

    /// What all CPUs counted on an interface.
    ///
    /// # Errors
    ///
    /// Where the map cannot be read.
    pub fn counters(&self, interface: u32) -> Result<Counters> {
        let per_cpu = self
            .counters
            .get(&interface, 0)
            .context("cannot read the counters")?;
        let mut total = Counters::default();
        for counters in per_cpu.iter() {
            total.add(counters);
        }
        Ok(total)
    }

    /// A meter by its id.
    ///
    /// # Errors
    ///
    /// Where the map cannot be read.
    pub fn meter(&self, id: u16) -> Result<Option<MeterEntry>> {
        self.meters
            .get(&u32::from(id))
            .context("cannot read a meter")
    }

    /// Takes over all meters: slots name those that have written them.
    ///
    /// # Errors
    ///
    /// Where a map cannot be read or written.
    pub fn copy_meters(&self, from: &Self) -> Result<()> {
        copy(&from.meters, &self.meters, METERS).context("cannot copy the meters")
    }

    /// Takes over the state of the limits that everyone shares.
    ///
    /// # Errors
    ///
    /// Where a map cannot be read or written.
    pub fn copy_shared(&self, from: &Self) -> Result<()> {
        copy(&from.shared, &self.shared, SHARED_SLOTS).context("cannot copy the shared limits")
    }

    /// Takes over the buckets of the host's own needs.
    ///
    /// # Errors
    ///
    /// Where a map cannot be read or written.
    pub fn copy_needs(&self, from: &Self) -> Result<()> {
        copy(&from.needs, &self.needs, MAX_INTERFACES)
            .context("cannot copy the buckets of the host's own needs")
    }

    /// What a limit's counters have counted on all interfaces.
    ///
    /// # Errors
    ///
    /// Where the map cannot be read.
    pub fn limit_counters(&self, counter: u32) -> Result<LimitCounters> {
        let mut total = Counters::default();
        for interface in 0..MAX_INTERFACES {
            total.add(&self.counters(interface)?);
        }
        let limit = total.limits.get(counter as usize);
        Ok(limit.copied().unwrap_or_default())
    }

    /// Forgets what was counted on an interface.
    ///
    /// # Errors
    ///
    /// Where the map cannot be written.
    pub fn clear_counters(&mut self, interface: u32, cpus: usize) -> Result<()> {
        let zeros = aya::maps::PerCpuValues::try_from(vec![Counters::default(); cpus])?;
        self.counters
            .set(interface, zeros, 0)
            .context("cannot write the counters")
    }

    /// The buckets of the host's own needs on an interface.
    ///
    /// # Errors
    ///
    /// Where the map cannot be read.
    pub fn needs(&self, interface: u32) -> Result<NeedWords> {
        let words = self
            .needs
            .get(&interface)
            .context("cannot read the buckets of the host's own needs")?;
        words.context("the interface has no such buckets")
    }

    /// Overwrites the buckets of the host's own needs on an interface.
    ///
    /// # Errors
    ///
    /// Where the map cannot be written.
    pub fn set_needs(&self, interface: u32, words: &NeedWords) -> Result<()> {
        self.needs
            .set(&interface, words)
            .context("cannot write the buckets of the host's own needs")
    }
}

/// Copies the first entries of an array.
fn copy<V: aya::Pod>(from: &RawMap<u32, V>, to: &RawMap<u32, V>, entries: u32) -> io::Result<()> {
    for key in 0..entries {
        if let Some(value) = from.get(&key)? {
            to.set(&key, &value)?;
        }
    }
    Ok(())
}

fn prefixes<V: aya::Pod + Default>(pins: &Path, name: &str) -> Result<PrefixMap<V>> {
    MapData::from_pin(pins.join(name))
        .map_err(anyhow::Error::new)
        .and_then(PrefixMap::new)
        .with_context(|| format!("cannot open the map {name}"))
}

fn named<K: aya::Pod, V: aya::Pod>(pins: &Path, name: &str) -> Result<RawMap<K, V>> {
    open_pin(&pins.join(name))
        .and_then(RawMap::new)
        .with_context(|| format!("cannot open the map {name}"))
}
