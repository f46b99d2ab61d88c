//! Attaching to interfaces, all or none.

use std::{os::fd::AsFd as _, path::Path};

use anyhow::{Context as _, Result, anyhow, bail};
use aya::{
    Ebpf,
    programs::{
        ProgramError, Xdp, XdpMode,
        links::{FdLink, PinnedLink as AyaPinnedLink},
        xdp::XdpLink,
    },
};
use tracing::{info, warn};

use super::{
    interface::{self, AttachedXdp, Interface},
    load, pins, programs,
};
use crate::cli::AttachMode;

/// Our program on an interface, through a pinned link.
pub struct Attachment {
    /// The interface.
    pub interface: Interface,
    /// Its number in the per-interface maps.
    pub slot: u32,
    /// Our program there.
    pub program: u32,
    /// Where it runs.
    pub mode: AttachMode,
    pin: pins::PinnedLink,
}

impl Attachment {
    /// Ends enforcement on the interface.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn detach(self) -> Result<()> {
        self.pin.detach()
    }

    /// Whether our program is still the one on the interface.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        let found = interface::by_index(self.interface.index);
        matches!(found, Ok(Some(Interface { xdp: Some(AttachedXdp { program, .. }), .. })) if program == self.program)
    }
}

/// What there is to do on an interface.
enum Plan {
    /// Nothing is there.
    Attach,
    /// Nothing is there but the shell of a link whose interface is gone.
    AttachOverShell,
    /// A link of ours, left by a daemon that is gone: put the new program in its place, without a gap.
    Replace,
}

/// Finds the interfaces.
///
/// # Errors
///
/// Where one is missing or of a kind that cannot be limited.
pub fn find(names: &[String]) -> Result<Vec<Interface>> {
    names
        .iter()
        .map(|name| {
            let interface = interface::find(name)?;
            if interface.loopback {
                bail!(
                    "--iface {name}: is the loopback, whose sources limiter drops as impossible; name the interface to \
                     the network"
                );
            }
            if !interface.ethernet {
                bail!(
                    "--iface {name}: has no Ethernet header (tun, wg, ppp, ...), which this version needs; name the \
                     interface below it"
                );
            }
            Ok(interface)
        })
        .collect()
}

/// Checks that no interface is taken, before anything is loaded.
///
/// # Errors
///
/// Where somebody else's program is on one.
pub fn check_free(interfaces: &[Interface], pin_dir: &Path) -> Result<()> {
    interfaces
        .iter()
        .try_for_each(|interface| plan(interface, pin_dir).map(drop))
}

fn plan(interface: &Interface, pin_dir: &Path) -> Result<Plan> {
    let name = &interface.name;
    let (pin, pinned) = pins::of_interface(pin_dir, interface.index);
    let ours = if pinned { pin.program()? } else { None };
    match (interface.xdp, ours) {
        (None, None) if pinned => Ok(Plan::AttachOverShell),
        (None, None) => Ok(Plan::Attach),
        (Some(there), Some(ours)) if there.program == ours => Ok(Plan::Replace),
        (None, Some(ours)) => bail!(
            "--pin-dir {}: its link for interface index {} (program {ours}) is of another network namespace; use a pin \
             directory for each",
            pin_dir.display(),
            interface.index
        ),
        (Some(AttachedXdp { program, .. }), _) => bail!(
            "--iface {name}: XDP program {} (id {program}) is attached already; stop whoever attached it (if nobody holds \
             it: ip link set dev {name} xdp off), or name another interface",
            programs::name(program),
        ),
    }
}

/// Attaches an instance to each interface. If one is refused, those attached before it are detached again.
///
/// # Errors
///
/// Where the kernel refuses: its text and what to try.
pub fn attach(
    interfaces: Vec<Interface>,
    instances: &mut [Ebpf],
    mode: AttachMode,
    pin_dir: &Path,
) -> Result<Vec<Attachment>> {
    let mut attached: Vec<Attachment> = Vec::new();
    for (slot, (interface, ebpf)) in (0..).zip(interfaces.into_iter().zip(instances)) {
        match attach_one(interface, slot, ebpf, mode, pin_dir) {
            Ok(attachment) => attached.push(attachment),
            Err(error) => {
                for attachment in attached {
                    attachment.detach()?;
                }
                return Err(error);
            }
        }
    }
    Ok(attached)
}

fn attach_one(
    interface: Interface,
    slot: u32,
    ebpf: &mut Ebpf,
    mode: AttachMode,
    pin_dir: &Path,
) -> Result<Attachment> {
    let xdp = load::program(ebpf)?;
    let program = xdp
        .info()
        .context("cannot examine the loaded program")?
        .id();
    let (pin, _) = pins::of_interface(pin_dir, interface.index);
    match plan(&interface, pin_dir)? {
        Plan::Replace if interface.xdp.is_some_and(|xdp| xdp.mode == Some(mode)) => {
            replace(xdp, &pin.path)?;
            info!(
                interface = interface.name,
                program, "took over from a daemon that is gone, without a gap"
            );
        }
        Plan::Replace => {
            warn!(
                interface = interface.name,
                mode = mode.name(),
                "changing the attach mode: a moment without enforcement"
            );
            pin.detach()?;
            create(xdp, &interface, mode, &pin.path)?;
        }
        Plan::AttachOverShell => {
            pin.detach()?;
            create(xdp, &interface, mode, &pin.path)?;
        }
        Plan::Attach => create(xdp, &interface, mode, &pin.path)?,
    }
    Ok(Attachment {
        interface,
        slot,
        program,
        mode,
        pin,
    })
}

/// Puts the program into an existing link.
fn replace(xdp: &mut Xdp, path: &Path) -> Result<()> {
    let link = AyaPinnedLink::from_pin(path)
        .with_context(|| format!("{}: cannot be opened", path.display()))?;
    let link = XdpLink::try_from(FdLink::from(link)).context("the pinned link is not of XDP")?;
    let id = xdp
        .attach_to_link(link)
        .context("the program in the link cannot be replaced")?;
    // The pin holds the link from here on.
    drop(xdp.take_link(id)?);
    Ok(())
}

/// Attaches through a new link and pins it.
fn create(xdp: &mut Xdp, interface: &Interface, mode: AttachMode, path: &Path) -> Result<()> {
    let flags = match mode {
        AttachMode::Native => XdpMode::Driver,
        AttachMode::Generic => XdpMode::Skb,
    };
    let id = match xdp.attach_to_if_index(interface.index, flags) {
        Ok(id) => id,
        Err(error) => return Err(refused(&error, xdp, interface, mode)),
    };
    // aya falls back from a link to netlink without saying so; such an attachment cannot be pinned.
    let link = FdLink::try_from(xdp.take_link(id)?)
        .map_err(|error| anyhow!("--iface {}: the kernel gives no link, only a netlink attachment ({error}); it was undone", interface.name))?;
    link.pin(path)
        .with_context(|| format!("{}: cannot be pinned", path.display()))?;
    Ok(())
}

/// The kernel's text, and what to try.
fn refused(
    error: &ProgramError,
    xdp: &Xdp,
    interface: &Interface,
    mode: AttachMode,
) -> anyhow::Error {
    let text = xdp
        .fd()
        .ok()
        .and_then(|fd| interface::refusal_text(interface.index, fd.as_fd(), mode));
    let errno = errno(error);
    let reason = match (text, &errno) {
        (Some(text), Some(errno)) => format!("{text} ({errno})"),
        (Some(text), None) => text,
        (None, Some(errno)) => errno.to_string(),
        (None, None) => error.to_string(),
    };
    anyhow!(
        "--iface {}: the driver refuses {} XDP: {reason}; {}",
        interface.name,
        mode.name(),
        advice(
            errno.and_then(|errno| errno.raw_os_error()),
            &interface.name,
            mode
        )
    )
}

fn errno(error: &ProgramError) -> Option<std::io::Error> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return io.raw_os_error().map(std::io::Error::from_raw_os_error);
        }
        source = error.source();
    }
    None
}

fn advice(errno: Option<i32>, name: &str, mode: AttachMode) -> String {
    if mode == AttachMode::Generic {
        return "generic mode needs nothing of the driver; see the kernel's log (dmesg)".to_owned();
    }
    let generic = "or try --attach generic, which is slower and works with any driver";
    match errno {
        Some(libc::EOPNOTSUPP) => format!("it has no native XDP, {generic}"),
        Some(libc::ERANGE) => format!("lower the MTU (ip link set dev {name} mtu 1500), {generic}"),
        Some(libc::ENOSPC) => format!(
            "the other end has more queues than this one; give it more (ethtool -L {name} rx N), {generic}"
        ),
        Some(libc::ENOTCONN) => {
            format!("the other end of the veth pair is missing or down, {generic}")
        }
        Some(libc::ENOMEM) => {
            format!("there may be fewer rings than CPUs; see ethtool -l {name}, {generic}")
        }
        _ => format!(
            "try a smaller MTU (ip link set dev {name} mtu 1500), large receive offload off (ethtool -K {name} lro off \
             rx-gro-hw off), fewer queues (ethtool -l {name}, ethtool -L {name} combined N), {generic}"
        ),
    }
}
