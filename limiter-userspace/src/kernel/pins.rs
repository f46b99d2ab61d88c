//! Pinned links: what keeps enforcement going without a daemon.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow};

use super::{
    bpffs::PinDir,
    interface,
    link::{self, Link, Place},
    load, programs,
};

const LINK_PREFIX: &str = "link_";

/// Where the link of an interface is pinned. By index: a name may hold a dot, which the BPF file system refuses.
#[must_use]
pub fn of_interface(pin_dir: &Path, interface: u32) -> PathBuf {
    pin_dir.join(format!("{LINK_PREFIX}{interface}"))
}

/// A pinned link.
#[derive(Clone, Debug)]
pub struct PinnedLink {
    /// Where.
    pub path: PathBuf,
    /// The interface it was made for, by index. A link outlives its interface, as an empty shell.
    pub interface: u32,
}

impl PinnedLink {
    /// The interface on which it enforces; `None` where it enforces nothing.
    ///
    /// # Errors
    ///
    /// Where the pin cannot be opened or holds no link.
    pub fn enforces_on(&self) -> Result<Option<String>> {
        let Some(link) = Link::open(&self.path)? else {
            return Ok(None);
        };
        Ok(match link.place()? {
            Place::Here(interface) => Some(interface.name),
            Place::Elsewhere(index) => Some(elsewhere(index)),
            Place::Nowhere => None,
        })
    }

    /// Takes the program off at once, and removes the pin. Returns where it was.
    ///
    /// # Errors
    ///
    /// Where it is no link, or the kernel refuses.
    pub fn detach(&self) -> Result<String> {
        let shown = self.path.display();
        let Some(link) = Link::open(&self.path)? else {
            return self.without_pin();
        };
        let was = match link.place()? {
            Place::Here(interface) => interface.name,
            Place::Elsewhere(index) => elsewhere(index),
            Place::Nowhere => format!("interface {} (gone)", self.interface),
        };
        link.detach()
            .with_context(|| format!("{shown}: cannot be detached"))?;
        link::unpin(&self.path)?;
        Ok(was)
    }

    /// Somebody has removed the pin, and the program with it, unless it is pinned elsewhere.
    fn without_pin(&self) -> Result<String> {
        let found = interface::by_index(self.interface)?;
        let name = found.as_ref().map_or_else(
            || format!("interface {} (gone)", self.interface),
            |interface| interface.name.clone(),
        );
        match found.and_then(|interface| interface.xdp) {
            Some(xdp) if programs::name(xdp.program) == load::PROGRAM => Err(anyhow!(
                "{}: somebody has removed it, but program {} is still on {name}; `bpftool link` shows who holds it",
                self.path.display(),
                xdp.program
            )),
            _ => Ok(name),
        }
    }
}

fn elsewhere(index: u32) -> String {
    format!("interface {index} of another network namespace")
}

/// The links pinned in a directory; none where there is no such directory.
///
/// # Errors
///
/// Where the directory cannot be read.
pub fn links(pin_dir: &Path) -> Result<Vec<PinnedLink>> {
    let entries = match fs::read_dir(pin_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("--pin-dir {}: cannot be read", pin_dir.display()));
        }
    };
    let mut links = Vec::new();
    for entry in entries {
        let entry =
            entry.with_context(|| format!("--pin-dir {}: cannot be read", pin_dir.display()))?;
        let name = entry.file_name();
        let index = name
            .to_str()
            .and_then(|name| name.strip_prefix(LINK_PREFIX))
            .and_then(|index| index.parse().ok());
        if let Some(interface) = index {
            links.push(PinnedLink {
                path: entry.path(),
                interface,
            });
        }
    }
    links.sort_by_key(|link| link.interface);
    Ok(links)
}

/// What came of [`detach_all`].
#[derive(Clone, Debug, Default)]
pub struct Detached {
    /// Where enforcement has ended.
    pub interfaces: Vec<String>,
    /// What could not be detached, and why.
    pub failed: Vec<String>,
}

/// Detaches all links in a directory, as far as that is possible.
///
/// # Errors
///
/// Where the directory cannot be read.
pub fn detach_all(pin_dir: &PinDir) -> Result<Detached> {
    let mut detached = Detached::default();
    for link in links(pin_dir.path())? {
        match link.detach() {
            Ok(interface) => detached.interfaces.push(interface),
            Err(error) => detached.failed.push(format!("{error:#}")),
        }
    }
    Ok(detached)
}
