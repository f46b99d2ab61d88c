//! The control socket as a file: whose it is, and whether anybody listens on it.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::stat::{Mode, umask},
    unistd::Group,
};
use tokio::net::{UnixListener, UnixStream};

/// The longest path of a Unix socket: `sun_path` with its terminating zero holds 108 bytes (unix(7)).
const LONGEST_PATH: usize = 107;

/// A directory made for a socket: everybody may look for the socket, whose own mode says who may use it.
const DIRECTORY_MODE: u32 = 0o755;

/// The file of a socket that we made. It is removed on drop, unless another has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: Option<Identity>,
}

/// What tells files at the same path apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Of the file at a path, if there is one.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && Identity::of(&self.path) == self.identity {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Connects; `None` if nobody listens. Any other failure says nothing about that: a full queue means somebody does.
///
/// # Errors
///
/// Where the kernel refuses for another reason.
pub async fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(path).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Removes a socket on which nobody listens; it may be gone.
///
/// # Errors
///
/// Where it cannot be removed, or something else is there.
pub async fn remove_stale(path: &Path) -> Result<()> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            bail!("--socket {shown}: there is a file that is no socket; name another path");
        }
        Ok(_) => {}
        // Whatever is wrong with the path, binding it will say.
        Err(_) => return Ok(()),
    }
    match connect(path).await {
        Ok(None) => match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => {
                done.with_context(|| format!("--socket {shown}: the old socket cannot be removed"))
            }
        },
        Ok(Some(_)) => bail!(
            "--socket {shown}: a daemon is listening there already; ask it with `limiter status`, stop it, or name another \
             path"
        ),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => bail!(
            "--socket {shown}: a daemon is listening there already, too busy to answer; stop it, or name another path"
        ),
        Err(error) => Err(error).with_context(|| {
            format!("--socket {shown}: cannot tell whether a daemon is listening there; name another path")
        }),
    }
}

/// Binds a socket, for root alone or for a group too. Takes the place of one on which nobody listens.
///
/// # Errors
///
/// Where another daemon listens there, or the path cannot be used.
pub async fn bind(path: &Path, group: Option<&str>) -> Result<(UnixListener, SocketFile)> {
    let shown = path.display();
    let length = path.as_os_str().len();
    if length > LONGEST_PATH {
        bail!(
            "--socket {shown}: {length} bytes; a socket's path has at most {LONGEST_PATH}, name a shorter one"
        );
    }
    let group = group.map(find_group).transpose()?;
    if let Some(parent) = path.parent() {
        make_directory(parent)
            .with_context(|| format!("--socket {shown}: its directory cannot be made"))?;
    }
    remove_stale(path).await?;
    // Nobody else may connect before the mode is set.
    let mask = umask(Mode::from_bits_truncate(0o177));
    let listener = UnixListener::bind(path);
    umask(mask);
    let listener = listener.with_context(|| format!("--socket {shown}: cannot be bound"))?;
    let file = SocketFile {
        path: path.to_owned(),
        identity: Identity::of(path),
    };
    if let Some(group) = group {
        chown(path, None, Some(group))
            .with_context(|| format!("--socket {shown}: cannot be given to the group"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))
            .with_context(|| format!("--socket {shown}: cannot be opened to the group"))?;
    }
    Ok((listener, file))
}

/// Makes a directory and those above it, with the same mode under any umask.
fn make_directory(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.is_dir())
        .collect();
    for directory in missing.into_iter().rev() {
        match fs::create_dir(directory) {
            Ok(()) => {
                fs::set_permissions(directory, fs::Permissions::from_mode(DIRECTORY_MODE))?;
            }
            // Another process was faster.
            Err(_) if directory.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn find_group(name: &str) -> Result<u32> {
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => bail!("--socket-group {name}: no such group; see `getent group`"),
        Err(error) => {
            Err(error).with_context(|| format!("--socket-group {name}: cannot be looked up"))
        }
    }
}
