//! A link: the hold that a program has on an interface.

use std::{
    fs, io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use anyhow::{Context as _, Result, anyhow};

use super::{
    interface::{self, AttachedXdp, Interface},
    sys::link::{self as sys, LinkInfo},
};
use crate::cli::AttachMode;

/// An open XDP link. Its program stays on the interface while it is open or pinned.
#[derive(Debug)]
pub struct Link(OwnedFd);

/// Where a link holds its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this interface.
    Here(Interface),
    /// On an interface of another network namespace, by index.
    Elsewhere(u32),
    /// Nowhere: its interface is gone, or it was detached.
    Nowhere,
}

impl Link {
    /// Puts a program on an interface.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses, its number.
    pub fn create(program: BorrowedFd<'_>, interface: u32, mode: AttachMode) -> io::Result<Self> {
        sys::create(program, interface, interface::mode_flag(mode)).map(Self)
    }

    /// Opens a pinned one; `None` if nothing is pinned there.
    ///
    /// # Errors
    ///
    /// Where it cannot be opened, or is no XDP link.
    pub fn open(pin: &Path) -> Result<Option<Self>> {
        let shown = pin.display();
        let link = match sys::open_pin(pin) {
            Ok(link) => link,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("{shown}: cannot be opened")),
        };
        let info =
            sys::info(link.as_fd()).with_context(|| format!("{shown}: cannot be examined"))?;
        match info {
            Some(_) => Ok(Some(Self(link))),
            None => Err(anyhow!(
                "{shown}: is no XDP link, so not of limiter; whoever pinned it may remove it: rm {shown}"
            )),
        }
    }

    /// Pins it, unless something is pinned there.
    ///
    /// # Errors
    ///
    /// Where the BPF file system refuses.
    pub fn pin(&self, path: &Path) -> Result<()> {
        sys::pin(self.0.as_fd(), path)
            .with_context(|| format!("{}: cannot be pinned", path.display()))
    }

    /// Its program, wherever that is.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell.
    pub fn program(&self) -> Result<u32> {
        Ok(self.info()?.program)
    }

    /// Where it holds its program. A name alone would not do: another network namespace may have given it, and the
    /// index, to another interface.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell.
    pub fn place(&self) -> Result<Place> {
        let info = self.info()?;
        if info.interface == 0 {
            return Ok(Place::Nowhere);
        }
        Ok(match interface::by_index(info.interface)? {
            Some(interface) if interface.runs(info.program) => Place::Here(interface),
            Some(_) | None => Place::Elsewhere(info.interface),
        })
    }

    /// Puts another program in the place of its own, without a gap.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn replace(&self, program: BorrowedFd<'_>) -> Result<()> {
        sys::update(self.0.as_fd(), program).context("the program in the link cannot be replaced")
    }

    /// Takes its program off at once, whoever else holds the link.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn detach(&self) -> io::Result<()> {
        match sys::detach(self.0.as_fd()) {
            // The interface is gone, and the program with it.
            Err(error) if error.raw_os_error() == Some(libc::ENOLINK) => Ok(()),
            done => done,
        }
    }

    fn info(&self) -> Result<LinkInfo> {
        sys::info(self.0.as_fd())
            .context("the link cannot be examined")?
            .context("it is no XDP link any more")
    }
}

/// The id of the link that holds a program on an interface, if one does. A program may be on many, by a link or without.
///
/// # Errors
///
/// Where we may not ask, for want of `CAP_SYS_ADMIN`.
pub fn holding(program: u32, interface: u32) -> io::Result<Option<u32>> {
    let mut id = 0;
    while let Some((next, link)) = sys::next_link(id)? {
        match sys::info(link.as_fd())? {
            Some(info) if info.program == program && info.interface == interface => {
                return Ok(Some(info.id));
            }
            _ => id = next,
        }
    }
    Ok(None)
}

/// Removes a pin; it may be gone.
///
/// # Errors
///
/// Where the BPF file system refuses.
pub fn unpin(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.with_context(|| format!("{}: cannot be removed", path.display())),
    }
}

impl Interface {
    /// Whether this program is on it.
    #[must_use]
    pub fn runs(&self, program: u32) -> bool {
        matches!(self.xdp, Some(AttachedXdp { program: there, .. }) if there == program)
    }
}
