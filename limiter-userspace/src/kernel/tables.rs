//! The maps that the program's instances share.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use anyhow::{Context as _, Result, bail};
use aya::{
    Ebpf,
    maps::{Array, HashMap, Map, MapData, PerCpuArray},
};
use limiter_common::{
    counters::Counters, needs::Need, policy::Policy, source::SourceKey, state::SourceState,
};

/// Bucket words of the host's own needs of one interface, by [`Need`].
pub type NeedWords = [u64; Need::COUNT];

/// Handles to the maps.
pub struct Tables {
    policy: Array<MapData, Policy>,
    counters: PerCpuArray<MapData, Counters>,
    needs: Array<MapData, NeedWords>,
    sources: HashMap<MapData, SourceKey, SourceState>,
    sources_fd: OwnedFd,
    /// The time, where the program was loaded to take it from here.
    pub clock: Array<MapData, u64>,
}

impl Tables {
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self> {
        let sources = take(ebpf, "SOURCES")?;
        let sources_fd = match &sources {
            Map::LruHashMap(map) => map.fd().as_fd().try_clone_to_owned()?,
            _ => bail!("the source table is not an LRU hash map"),
        };
        Ok(Self {
            policy: take(ebpf, "POLICY")?.try_into()?,
            counters: take(ebpf, "COUNTERS")?.try_into()?,
            needs: take(ebpf, "NEEDS")?.try_into()?,
            sources: sources.try_into()?,
            sources_fd,
            clock: take(ebpf, "CLOCK")?.try_into()?,
        })
    }

    pub(super) fn set_policy(&mut self, policy: &Policy) -> Result<()> {
        self.policy
            .set(0, policy, 0)
            .context("cannot write the policy")
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

    /// The buckets of the host's own needs on an interface.
    ///
    /// # Errors
    ///
    /// Where the map cannot be read.
    pub fn needs(&self, interface: u32) -> Result<NeedWords> {
        self.needs
            .get(&interface, 0)
            .context("cannot read the buckets of the host's own needs")
    }

    /// The source table, for system calls of our own.
    pub(super) fn sources_fd(&self) -> BorrowedFd<'_> {
        self.sources_fd.as_fd()
    }

    /// What is remembered of a source, if anything.
    ///
    /// # Errors
    ///
    /// Where the table cannot be read.
    pub fn source(&self, key: &SourceKey) -> Result<Option<SourceState>> {
        match self.sources.get(key, 0) {
            Ok(state) => Ok(Some(state)),
            Err(aya::maps::MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(error).context("cannot read the source table"),
        }
    }
}

fn take(ebpf: &mut Ebpf, name: &str) -> Result<Map> {
    ebpf.take_map(name)
        .with_context(|| format!("the object has no map {name}"))
}
