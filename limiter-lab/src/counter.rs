//! A program on an interface that only counts: what a limiter is measured against.

use std::path::Path;

use anyhow::{Context as _, Result};
use aya::{Ebpf, maps::PerCpuArray, programs::XdpMode};

use crate::{
    netns::Namespace,
    object::{load, xdp},
    plan::Plan,
};

/// What the counting program does with every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Drops it: the floor of what a drop can cost.
    Drop,
    /// Passes it on to the network stack.
    Pass,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel makes anything of the frame.
    Native,
    /// In the network stack.
    Generic,
}

/// A counting program that is attached. Dropping it detaches it.
#[derive(Debug)]
pub struct Counter {
    object: Ebpf,
}

impl Counter {
    /// Attaches one.
    ///
    /// # Errors
    /// Not root, no BPF object, no such interface, or an interface that refuses the program.
    pub fn attach(
        namespace: &Namespace,
        interface: &str,
        mode: Mode,
        verdict: Verdict,
    ) -> Result<Self> {
        let program = match verdict {
            Verdict::Drop => "count_drop",
            Verdict::Pass => "count_pass",
        };
        let mode = match mode {
            Mode::Native => XdpMode::Driver,
            Mode::Generic => XdpMode::Skb,
        };
        let mut object = load(program, &Plan::default())?;
        namespace.run(|| {
            xdp(&mut object, program)?
                .attach(interface, mode)
                .with_context(|| format!("attach {program} to {interface} ({mode:?})"))?;
            Ok(Self { object })
        })
    }

    /// Pins the program, so that others may attach it in ways of their own.
    ///
    /// # Errors
    /// It cannot be pinned there.
    pub fn pin(&mut self, path: &Path) -> Result<()> {
        let mut loaded = self
            .object
            .programs_mut()
            .map(|(_, program)| program)
            .filter(|program| program.fd().is_ok());
        let program = loaded.next().context("no program is loaded")?;
        program
            .pin(path)
            .with_context(|| format!("pin a program at {}", path.display()))
    }

    /// How many frames it has seen.
    ///
    /// # Errors
    /// The kernel does not give the counter.
    pub fn count(&self) -> Result<u64> {
        let map = self
            .object
            .map("COUNTED")
            .context("the BPF object has no map COUNTED")?;
        let counted: PerCpuArray<_, u64> = map.try_into().context("read the map COUNTED")?;
        let per_cpu = counted.get(&0, 0).context("read the map COUNTED")?;
        Ok(per_cpu.iter().sum())
    }
}
