//! Pinned links: what keeps enforcement going without a daemon.

use std::{
    fs::{self, File},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use nix::fcntl::{Flock, FlockArg};

use super::{bpffs::PinDir, interface, sys};

const LINK_PREFIX: &str = "link_";

/// The right to change what is pinned in a directory; one daemon at a time has it.
pub struct PinLock(#[expect(dead_code, reason = "held for its lock")] Flock<File>);

impl PinLock {
    /// Takes the lock.
    ///
    /// # Errors
    ///
    /// Where another daemon has it.
    pub fn take(pin_dir: &PinDir) -> Result<Self> {
        let path = pin_dir.path();
        let directory =
            File::open(path).with_context(|| format!("{}: cannot be opened", path.display()))?;
        match Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Self(lock)),
            Err((_, nix::Error::EWOULDBLOCK)) => bail!(
                "--pin-dir {}: another limiter daemon is using it; ask it with `limiter status`, or stop it",
                path.display()
            ),
            Err((_, error)) => Err(error)
                .with_context(|| format!("--pin-dir {}: cannot be locked", path.display())),
        }
    }
}

/// Where the link of an interface is pinned, and whether there is one. By index: a name may hold a dot, which the BPF
/// file system refuses.
#[must_use]
pub fn of_interface(pin_dir: &Path, interface: u32) -> (PinnedLink, bool) {
    let path = pin_dir.join(format!("{LINK_PREFIX}{interface}"));
    let exists = path.exists();
    (PinnedLink { path, interface }, exists)
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
    /// The program of the link; `None` where the link is an empty shell, its interface gone.
    ///
    /// # Errors
    ///
    /// Where the pin cannot be opened or holds no link.
    pub fn program(&self) -> Result<Option<u32>> {
        let shown = self.path.display();
        let link =
            sys::open_pin(&self.path).with_context(|| format!("{shown}: cannot be opened"))?;
        let info =
            sys::link_info(link.as_fd()).with_context(|| format!("{shown}: cannot be examined"))?;
        Ok((info.interface != 0).then_some(info.program))
    }

    /// The interface's name; its index where it is gone.
    #[must_use]
    pub fn interface_name(&self) -> String {
        match interface::by_index(self.interface) {
            Ok(Some(interface)) => interface.name,
            Ok(None) | Err(_) => format!("interface {} (gone)", self.interface),
        }
    }

    /// Takes the program off at once, and removes the pin.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn detach(&self) -> Result<()> {
        let link = match sys::open_pin(&self.path) {
            Ok(link) => link,
            // Somebody else has removed it, and the program with it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("{}: cannot be opened", self.path.display()));
            }
        };
        match sys::link_detach(link.as_fd()) {
            Ok(()) => {}
            // The interface is gone, and the link with it.
            Err(error) if error.raw_os_error() == Some(libc::ENOLINK) => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("{}: cannot be detached", self.path.display()));
            }
        }
        fs::remove_file(&self.path)
            .with_context(|| format!("{}: cannot be removed", self.path.display()))
    }
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
