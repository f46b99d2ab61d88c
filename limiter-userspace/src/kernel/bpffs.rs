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

/// A directory on a BPF file system. What was made of it is removed again on drop, if it is then empty.
#[derive(Debug)]
pub struct PinDir {
    path: PathBuf,
    /// The directory and those above it that were made for it, innermost first.
    made: Vec<PathBuf>,
}

impl PinDir {
    /// Makes `path`. Mounts the BPF file system at its usual place if it is missing there.
    ///
    /// # Errors
    ///
    /// Where `path` is not on a BPF file system, what to mount.
    pub fn create(path: &Path) -> Result<Self> {
        let shown = path.display();
        if !is_bpffs(nearest_existing(path))? {
            if !path.starts_with(USUAL_MOUNT) {
                bail!(
                    "--pin-dir {shown}: not on a BPF file system; use a directory under {USUAL_MOUNT}, or mount one: \
                     mkdir -p {shown} && mount -t bpf bpf {shown}"
                );
            }
            mount(Some("bpf"), USUAL_MOUNT, Some("bpf"), MsFlags::empty(), None::<&str>).with_context(|| {
                format!("no BPF file system at {USUAL_MOUNT}, and mounting one failed; try: mount -t bpf bpf {USUAL_MOUNT}")
            })?;
            info!("mounted the BPF file system at {USUAL_MOUNT}");
        }
        let made: Vec<PathBuf> = path
            .ancestors()
            .take_while(|ancestor| !ancestor.exists())
            .map(Path::to_owned)
            .collect();
        let has_dot = |made: &PathBuf| {
            made.file_name()
                .is_some_and(|name| name.to_string_lossy().contains('.'))
        };
        if made.iter().any(has_dot) {
            bail!("--pin-dir {shown}: the BPF file system takes no name with a dot");
        }
        let pin_dir = Self {
            path: path.to_owned(),
            made,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("--pin-dir {shown}: cannot be made"))?;
        Ok(pin_dir)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PinDir {
    fn drop(&mut self) {
        // The directory itself goes in any case, so that a daemon removes what one that was killed has made.
        let itself = std::iter::once(&self.path);
        for directory in itself.chain(self.made.iter().filter(|made| **made != self.path)) {
            // Fails, as it should, while a pin is left inside.
            drop(fs::remove_dir(directory));
        }
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
