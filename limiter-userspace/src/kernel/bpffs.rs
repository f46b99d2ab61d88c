//! The BPF file system, where pins live.

use std::{
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    mount::{MsFlags, mount},
    sys::statfs::{FsType, statfs},
};
use tracing::info;

/// `BPF_FS_MAGIC` (`include/uapi/linux/magic.h`).
#[expect(clippy::unreadable_literal, reason = "as in the header")]
const BPF_FS_MAGIC: FsType = FsType(0xcafe4a11);

const USUAL_MOUNT: &str = "/sys/fs/bpf";

/// A directory on a BPF file system, made if need be and removed again on drop if it is then empty.
#[derive(Debug)]
pub struct PinDir(PathBuf);

impl PinDir {
    /// Makes `path`. Mounts the BPF file system at its usual place if it is missing there.
    ///
    /// # Errors
    ///
    /// Where `path` is not on a BPF file system, what to mount.
    pub fn create(path: &Path) -> Result<Self> {
        let parent = nearest_existing(path);
        if !is_bpffs(parent)? {
            if !path.starts_with(USUAL_MOUNT) {
                bail!(
                    "--pin-dir {}: not on a BPF file system; use a directory under {USUAL_MOUNT}, or mount one: \
                     mount -t bpf bpf {}",
                    path.display(),
                    parent.display()
                );
            }
            mount(Some("bpf"), USUAL_MOUNT, Some("bpf"), MsFlags::empty(), None::<&str>)
                .with_context(|| format!("no BPF file system at {USUAL_MOUNT}, and mounting one failed; try: mount -t bpf bpf {USUAL_MOUNT}"))?;
            info!("mounted the BPF file system at {USUAL_MOUNT}");
        }
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains('.'))
        {
            bail!(
                "--pin-dir {}: the BPF file system takes no name with a dot",
                path.display()
            );
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("--pin-dir {}: cannot be made", path.display()))?;
        Ok(Self(path.to_owned()))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PinDir {
    fn drop(&mut self) {
        // Fails, as it should, while a pin is left inside.
        drop(fs::remove_dir(&self.0));
    }
}

fn nearest_existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|ancestor| ancestor.exists())
        .unwrap_or_else(|| Path::new("/"))
}

fn is_bpffs(path: &Path) -> Result<bool> {
    let stat = statfs(path).with_context(|| format!("{}: cannot be examined", path.display()))?;
    Ok(stat.filesystem_type() == BPF_FS_MAGIC)
}
