//! Attaching to interfaces, all or none: what this run did not bring to an end is as it was before.

use std::{
    mem,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use aya::Ebpf;
use tracing::{info, warn};

use super::{
    interface::{self, Interface},
    link::{self, Link},
    load, pins,
    plan::{Found, Plan, plan},
    refusal, sys,
};
use crate::cli::AttachMode;

/// Our program on an interface, through a pinned link. The link is held open too, so that nobody ends enforcement by
/// removing the pin of a daemon that runs.
#[derive(Debug)]
pub struct Attachment {
    /// The interface.
    pub interface: Interface,
    /// Its number in the per-interface maps.
    pub slot: u32,
    /// Our program there.
    pub program: u32,
    /// Where it runs.
    pub mode: AttachMode,
    link: Link,
    pin: PathBuf,
}

impl Attachment {
    /// Ends enforcement on the interface.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn detach(self) -> Result<()> {
        let name = &self.interface.name;
        self.link
            .detach()
            .with_context(|| format!("{name}: cannot be detached"))?;
        link::unpin(&self.pin)?;
        if self.is_attached() {
            bail!(
                "{name}: program {} is still attached, held by somebody else; `bpftool link` shows by whom",
                self.program
            );
        }
        Ok(())
    }

    /// Leaves enforcement to the kernel; pins the link again if somebody has removed the pin.
    ///
    /// # Errors
    ///
    /// Where it cannot be pinned.
    pub fn keep(self) -> Result<()> {
        if self.pin.exists() {
            return Ok(());
        }
        warn!(interface = self.interface.name, pin = %self.pin.display(), "the pin was removed; pinning again");
        self.link.pin(&self.pin)
    }

    /// Puts another program of ours in the place of this one, in one step.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses; the one before stays then.
    pub fn replace(&mut self, instance: &mut Ebpf) -> Result<()> {
        let xdp = load::program(instance)?;
        let program = xdp
            .info()
            .context("cannot examine the loaded program")?
            .id();
        let fd = xdp.fd().context("the program is not loaded")?.as_fd();
        self.link.replace(fd)?;
        self.program = program;
        Ok(())
    }

    /// Whether our program is still the one on the interface.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        matches!(interface::by_index(self.interface.index), Ok(Some(there)) if there.runs(self.program))
    }
}

/// What was on an interface before.
#[derive(Debug)]
enum Before {
    Nothing,
    /// A program in the same link; `None` where the kernel does not hand it out (without `CAP_SYS_ADMIN`).
    SameLink(Option<OwnedFd>),
    /// A program in a link of another mode.
    OtherLink(OwnedFd, AttachMode),
}

/// What this run has attached. Unless it is kept, all of it is undone on drop.
#[derive(Debug, Default)]
pub struct Attached(Vec<(Attachment, Before)>);

impl Attached {
    /// The attachments, in the order of the interfaces.
    pub fn iter(&self) -> impl Iterator<Item = &Attachment> {
        self.0.iter().map(|(attachment, _)| attachment)
    }

    /// Makes it last.
    #[must_use]
    pub fn keep(mut self) -> Vec<Attachment> {
        mem::take(&mut self.0)
            .into_iter()
            .map(|(attachment, _)| attachment)
            .collect()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        for (attachment, before) in self.0.drain(..).rev() {
            let name = attachment.interface.name.clone();
            if let Err(error) = undo(attachment, before) {
                warn!(interface = name, "cannot be put back as it was: {error:#}");
            }
        }
    }
}

fn undo(attachment: Attachment, before: Before) -> Result<()> {
    let name = attachment.interface.name.clone();
    match before {
        Before::Nothing => attachment.detach(),
        Before::SameLink(Some(program)) => {
            attachment.link.replace(program.as_fd())?;
            info!(
                interface = name,
                "the program of the earlier daemon is back"
            );
            Ok(())
        }
        Before::SameLink(None) => {
            warn!(
                interface = name,
                program = attachment.program,
                "enforcement goes on by the new program, since going back needs CAP_SYS_ADMIN"
            );
            Ok(())
        }
        Before::OtherLink(program, mode) => {
            let (index, pin) = (attachment.interface.index, attachment.pin.clone());
            attachment.detach()?;
            put_back(program.as_fd(), index, mode, &pin)?;
            info!(
                interface = name,
                "the program of the earlier daemon is back"
            );
            Ok(())
        }
    }
}

fn put_back(program: BorrowedFd<'_>, index: u32, mode: AttachMode, pin: &Path) -> Result<()> {
    Link::create(program, index, mode)
        .context(
            "enforcement has ended, and the program of the earlier daemon cannot be attached again",
        )?
        .pin(pin)
}

/// Attaches an instance to each interface: first where nothing is, last where an earlier daemon has left its program.
/// If one is refused, the others are as before.
///
/// # Errors
///
/// Where the kernel refuses: its text and what to try.
pub fn attach(
    interfaces: Vec<Interface>,
    instances: &mut [Ebpf],
    mode: AttachMode,
    pin_dir: &Path,
) -> Result<Attached> {
    let mut jobs = Vec::new();
    for (slot, (interface, ebpf)) in (0..).zip(interfaces.into_iter().zip(instances)) {
        let plan = plan(&interface, mode, pin_dir)?;
        jobs.push((interface, slot, ebpf, plan));
    }
    jobs.sort_by_key(|(.., plan)| match plan {
        Plan::Attach | Plan::AttachOverShell => 0,
        Plan::ChangeMode(_) => 1,
        Plan::Replace(_) => 2,
    });
    let mut attached = Attached::default();
    for (interface, slot, ebpf, plan) in jobs {
        let one = attach_one(interface, slot, ebpf, mode, pin_dir, plan)?;
        attached.0.push(one);
    }
    attached.0.sort_by_key(|(attachment, _)| attachment.slot);
    Ok(attached)
}

fn attach_one(
    interface: Interface,
    slot: u32,
    ebpf: &mut Ebpf,
    mode: AttachMode,
    pin_dir: &Path,
    plan: Plan,
) -> Result<(Attachment, Before)> {
    let xdp = load::program(ebpf)?;
    let program = xdp
        .info()
        .context("cannot examine the loaded program")?
        .id();
    let fd = xdp.fd().context("the program is not loaded")?.as_fd();
    let pin = pins::of_interface(pin_dir, interface.index);
    let (link, before) = match plan {
        Plan::Attach => (create(fd, &interface, mode, &pin)?, Before::Nothing),
        Plan::AttachOverShell => {
            link::unpin(&pin)?;
            (create(fd, &interface, mode, &pin)?, Before::Nothing)
        }
        Plan::Replace(Found {
            link, program: old, ..
        }) => {
            let old = sys::link::program_by_id(old).ok();
            link.replace(fd)?;
            info!(
                interface = interface.name,
                program, "took over from a daemon that is gone, without a gap"
            );
            (link, Before::SameLink(old))
        }
        Plan::ChangeMode(found) => change_mode(found, fd, &interface, mode, &pin)?,
    };
    let attachment = Attachment {
        interface,
        slot,
        program,
        mode,
        link,
        pin,
    };
    Ok((attachment, before))
}

/// Takes off what an earlier daemon has left and attaches in another mode; if that is refused, puts it back.
fn change_mode(
    found: Found,
    program: BorrowedFd<'_>,
    interface: &Interface,
    mode: AttachMode,
    pin: &Path,
) -> Result<(Link, Before)> {
    let name = &interface.name;
    let (Some(old_mode), Ok(old)) = (found.mode, sys::link::program_by_id(found.program)) else {
        bail!(
            "--iface {name}: an earlier daemon's program {} runs there in another mode, and could not be put back if {} mode \
             is refused; run with CAP_SYS_ADMIN, or `limiter unload` first",
            found.program,
            mode.name()
        );
    };
    warn!(
        interface = name,
        mode = mode.name(),
        "changing the attach mode: a moment without enforcement"
    );
    found.link.detach().with_context(|| {
        format!("--iface {name}: the earlier daemon's program cannot be detached")
    })?;
    drop(found.link);
    link::unpin(pin)?;
    match create(program, interface, mode, pin) {
        Ok(link) => Ok((link, Before::OtherLink(old, old_mode))),
        Err(error) => match put_back(old.as_fd(), interface.index, old_mode, pin) {
            Ok(()) => Err(error),
            Err(worse) => Err(error.context(format!("--iface {name}: {worse:#}"))),
        },
    }
}

/// Attaches through a new link and pins it.
fn create(
    program: BorrowedFd<'_>,
    interface: &Interface,
    mode: AttachMode,
    pin: &Path,
) -> Result<Link> {
    let link = Link::create(program, interface.index, mode)
        .map_err(|error| refusal::explain(error, program, interface, mode))?;
    link.pin(pin)?;
    Ok(link)
}
