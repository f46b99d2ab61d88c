//! What there is to do on each interface, found out before anything is touched.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use tracing::info;

use super::{
    interface::{self, AttachedXdp, Interface},
    link::{self, Link, Place},
    load, pins, programs,
};
use crate::cli::AttachMode;

/// What there is to do on an interface.
#[derive(Debug)]
pub enum Plan {
    /// Nothing is there.
    Attach,
    /// Nothing is there but the shell of a link whose interface is gone.
    AttachOverShell,
    /// A link of ours, left by a daemon that is gone: put the new program in its place, without a gap.
    Replace(Found),
    /// As before, but in another mode: that needs another link, and a moment without enforcement.
    ChangeMode(Found),
}

/// What an earlier daemon has left on an interface.
#[derive(Debug)]
pub struct Found {
    /// Its link.
    pub link: Link,
    /// Its program.
    pub program: u32,
    /// Where that runs; `None` in hardware.
    pub mode: Option<AttachMode>,
}

/// Finds the interfaces.
///
/// # Errors
///
/// Where one is missing, of a kind that cannot be limited, or named twice.
pub fn find(names: &[String]) -> Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    for name in names {
        let interface = interface::find(name)?;
        if interface.loopback {
            bail!(
                "--iface {name}: is the loopback, whose sources limiter drops as impossible; name the interface to the \
                 network"
            );
        }
        if !interface.ethernet {
            bail!(
                "--iface {name}: has no Ethernet header (tun, wg, ppp, ...), which this version needs; name the \
                 interface below it"
            );
        }
        if found.iter().any(|other| other.index == interface.index) {
            bail!(
                "--iface {name}: is another name of {}, which is named too; name each interface once",
                interface.name
            );
        }
        if interface.name != *name {
            info!(
                interface = interface.name,
                "{name} is another name of this interface"
            );
        }
        found.push(interface);
    }
    Ok(found)
}

/// Checks that no interface is taken, before anything is loaded.
///
/// # Errors
///
/// Where somebody else's program is on one.
pub fn check_free(interfaces: &[Interface], mode: AttachMode, pin_dir: &Path) -> Result<()> {
    interfaces
        .iter()
        .try_for_each(|interface| plan(interface, mode, pin_dir).map(drop))
}

/// Plans what to do on an interface.
///
/// # Errors
///
/// Where somebody else's program is on it.
pub fn plan(interface: &Interface, mode: AttachMode, pin_dir: &Path) -> Result<Plan> {
    let Some(Interface { xdp, .. }) = interface::by_index(interface.index)? else {
        bail!("--iface {}: has just gone", interface.name);
    };
    let pinned = Link::open(&pins::of_interface(pin_dir, interface.index))?;
    let place = pinned.as_ref().map(Link::place).transpose()?;
    match (xdp, pinned, place) {
        (Some(there), Some(link), Some(Place::Here(_))) => {
            let found = Found {
                link,
                program: there.program,
                mode: there.mode,
            };
            Ok(if there.mode == Some(mode) {
                Plan::Replace(found)
            } else {
                Plan::ChangeMode(found)
            })
        }
        (_, Some(link), Some(Place::Elsewhere(_))) => bail!(
            "--pin-dir {}: its link for interface index {} (program {}) is of another network namespace; use a pin \
             directory for each",
            pin_dir.display(),
            interface.index,
            link.program()?
        ),
        (Some(there), ..) => Err(taken(interface, there)),
        (None, Some(_), _) => Ok(Plan::AttachOverShell),
        (None, None, _) => Ok(Plan::Attach),
    }
}

/// Somebody else's program: what can end it depends on who holds it.
fn taken(interface: &Interface, AttachedXdp { program, mode }: AttachedXdp) -> anyhow::Error {
    let interface_name = &interface.name;
    let name = programs::name(program);
    let way_out = match (name == load::PROGRAM, link::holding(program, interface.index)) {
        (true, _) => {
            "by another limiter: end that with `limiter unload` and its --pin-dir and --socket"
                .to_owned()
        }
        (false, Ok(Some(link))) => format!(
            "and held by link {link}: stop whoever holds it (`bpftool link show id {link}` tells who)"
        ),
        (false, Ok(None)) => format!(
            "without a link: stop whoever attached it, or take it off with `ip link set dev {interface_name} {} off`",
            match mode {
                Some(AttachMode::Generic) => "xdpgeneric",
                Some(AttachMode::Native) => "xdpdrv",
                None => "xdp",
            }
        ),
        (false, Err(_)) => {
            "and who holds it only CAP_SYS_ADMIN may ask: stop whoever attached it (`bpftool link` tells who)".to_owned()
        }
    };
    anyhow!(
        "--iface {interface_name}: XDP program {name} (id {program}) is attached already, {way_out}; or name another interface"
    )
}
