//! What enforces: the maps in force, and making others where a policy needs other room in them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use anyhow::{Context as _, Result};
use aya::Ebpf;
use limiter_common::counters::{Counters, LimitCounters};

use crate::kernel::{
    apply::Enforcer,
    attach::Attachment,
    bpffs::PinDir,
    load::{self, Loaded, Options, Room},
    tables::Tables,
};

/// The maps in force, and what was counted in those before them.
pub struct Engine {
    /// What keeps the maps as the policy says.
    pub enforcer: Arc<Enforcer>,
    /// Room in the maps.
    pub room: Room,
    past: BTreeMap<u32, Counters>,
}

/// Where programs run.
pub struct Machine {
    /// The daemon's own, which removes the directory when it ends.
    pin_dir: Weak<PinDir>,
    attachments: Arc<Mutex<Vec<Attachment>>>,
    interfaces: u32,
}

impl Engine {
    /// The first one.
    pub(super) const fn new(enforcer: Arc<Enforcer>, room: Room) -> Self {
        Self {
            enforcer,
            room,
            past: BTreeMap::new(),
        }
    }

    /// The one after this, whose counters go on from here.
    pub(super) fn next(
        &self,
        enforcer: Arc<Enforcer>,
        room: Room,
        interfaces: u32,
    ) -> Result<Self> {
        let mut past = BTreeMap::new();
        for interface in 0..interfaces {
            past.insert(interface, self.counters(interface)?);
        }
        Ok(Self {
            enforcer,
            room,
            past,
        })
    }

    /// What was counted on an interface, each limit by its counter's number.
    ///
    /// # Errors
    ///
    /// Where the map cannot be read.
    pub fn counters(&self, interface: u32) -> Result<Counters> {
        let mut counters = self.enforcer.tables().counters(interface)?;
        if let Some(past) = self.past.get(&interface) {
            counters.add(past);
        }
        Ok(counters)
    }

    /// What a limit has counted, of all that its counters have.
    #[must_use]
    pub fn counted(&self, counter: u32, counters: &LimitCounters) -> LimitCounters {
        self.enforcer.counted(counter, counters)
    }
}

impl Machine {
    /// `interfaces` programs, attached by links pinned in a directory.
    #[must_use]
    pub fn new(
        pin_dir: &Arc<PinDir>,
        attachments: Arc<Mutex<Vec<Attachment>>>,
        interfaces: u32,
    ) -> Self {
        Self {
            pin_dir: Arc::downgrade(pin_dir),
            attachments,
            interfaces,
        }
    }

    /// Interfaces that programs run on.
    pub(super) const fn interfaces(&self) -> u32 {
        self.interfaces
    }

    /// Makes other maps, and loads the program once more for each interface.
    pub(super) fn load(&self, room: Room) -> Result<(Vec<Ebpf>, Arc<Tables>)> {
        let options = Options {
            interfaces: self.interfaces,
            room,
            test_clock: false,
        };
        let pin_dir = self.pin_dir.upgrade().context("the daemon is ending")?;
        let Loaded { instances, tables } = load::load(options, &pin_dir)?;
        Ok((instances, Arc::new(tables)))
    }

    /// Puts the programs into the links, each in one step without a gap.
    pub(super) fn switch(&self, instances: &mut [Ebpf]) -> Result<()> {
        let mut attachments = self
            .attachments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for attachment in attachments.iter_mut() {
            let instance = instances
                .get_mut(attachment.slot as usize)
                .context("there is no program for an interface")?;
            attachment.replace(instance)?;
        }
        Ok(())
    }
}
