//! The BPF file system, where pins live.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    mount::{MsFlags, mount},
    sys::statfs::{FsType, statfs},
    unistd::geteuid,
};
use tracing::info;

use super::lock::{self, Lock, Try};

/// `BPF_FS_MAGIC` (`include/uapi/linux/magic.h`).
#[expect(clippy::unreadable_literal, reason = "as in the header")]
const BPF_FS_MAGIC: FsType = FsType(0xcafe4a11);

const USUAL_MOUNT: &str = "/sys/fs/bpf";

/// How often a directory may be removed under our hands before that is an error.
const TRIES: u32 = 100;

/// A directory on a BPF file system that nobody else changes meanwhile. On drop it is removed, if it is then empty.
#[derive(Debug)]
pub struct PinDir {
    path: PathBuf,
    /// The directory and those above it that were made for it, innermost first.
    made: Vec<PathBuf>,
    _lock: Lock,
}

impl PinDir {
    /// Makes `path` and locks it. Mounts the BPF file system at its usual place if it is missing there.
    ///
    /// # Errors
    ///
    /// Where `path` is not on a BPF file system, what to mount; where others may write there; where another process
    /// has it.
    pub fn take(path: &Path) -> Result<Self> {
        let shown = path.display();
        mount_if_missing(path)?;
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
        for _ in 0..TRIES {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .with_context(|| format!("--pin-dir {shown}: cannot be made"))?;
            ours_alone(path)?;
            if let Some(lock) = lock(path)? {
                return Ok(Self {
                    path: path.to_owned(),
                    made,
                    _lock: lock,
                });
            }
        }
        bail!("--pin-dir {shown}: is removed again and again; see who does that")
    }

    /// Locks `path` if it is there, whoever may write there.
    ///
    /// # Errors
    ///
    /// Where another process has it.
    pub fn take_existing(path: &Path) -> Result<Option<Self>> {
        if !path.is_dir() {
            return Ok(None);
        }
        Ok(lock(path)?.map(|lock| Self {
            path: path.to_owned(),
            made: Vec::new(),
            _lock: lock,
        }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the maps are pinned while programs that share them are loaded.
    pub(super) fn shared(&self) -> PathBuf {
        self.path.join("loading")
    }

    /// Removes that; nobody else can be loading.
    pub(super) fn remove_shared(&self) {
        drop(fs::remove_dir_all(self.shared()));
    }
}

impl Drop for PinDir {
    fn drop(&mut self) {
        // Of a load that was killed half-way, or that had no file left to look what there is to remove.
        self.remove_shared();
        // The directory itself goes in any case, so that a daemon removes what one that was killed has made.
        let itself = std::iter::once(&self.path);
        for directory in itself.chain(self.made.iter().filter(|made| **made != self.path)) {
            // Fails, as it should, while a pin is left inside.
            drop(fs::remove_dir(directory));
        }
    }
}

fn mount_if_missing(path: &Path) -> Result<()> {
    let shown = path.display();
    if is_bpffs(nearest_existing(path))? {
        return Ok(());
    }
    if !path.starts_with(USUAL_MOUNT) {
        bail!(
            "--pin-dir {shown}: not on a BPF file system; use a directory under {USUAL_MOUNT}, or mount one: \
             mkdir -p {shown} && mount -t bpf -o mode=0700 bpf {shown}"
        );
    }
    // Without a mode everybody may make directories there (`bpf_parse_param`, kernel/bpf/inode.c, 6.12).
    mount(Some("bpf"), USUAL_MOUNT, Some("bpf"), MsFlags::empty(), Some("mode=0700")).with_context(|| {
        format!(
            "no BPF file system at {USUAL_MOUNT}, and mounting one failed; try: mount -t bpf -o mode=0700 bpf {USUAL_MOUNT}"
        )
    })?;
    info!("mounted the BPF file system at {USUAL_MOUNT}");
    Ok(())
}

/// Whoever may write in a pin directory can end enforcement, or make us take a stranger's link for ours.
fn ours_alone(path: &Path) -> Result<()> {
    let shown = path.display();
    let metadata = fs::symlink_metadata(path)
        .with_context(|| format!("--pin-dir {shown}: cannot be examined"))?;
    if !metadata.is_dir() {
        bail!("--pin-dir {shown}: is not a directory; name the directory itself");
    }
    let (us, owner, mode) = (geteuid().as_raw(), metadata.uid(), metadata.mode() & 0o7777);
    if owner != us || mode & 0o022 != 0 {
        bail!(
            "--pin-dir {shown}: is of user {owner}, mode {mode:04o}; others could end enforcement there, so it must be of \
             user {us} and writable for that user alone: chown {us} {shown} && chmod 0700 {shown}, or name another directory"
        );
    }
    Ok(())
}

/// `None` where whoever had it has removed it meanwhile.
fn lock(path: &Path) -> Result<Option<Lock>> {
    let shown = path.display();
    match Lock::try_take(path).with_context(|| format!("--pin-dir {shown}: cannot be locked"))? {
        Try::Taken(lock) => Ok(Some(lock)),
        Try::Gone => Ok(None),
        Try::Held => bail!(
            "--pin-dir {shown}: another limiter{} is using it; ask it with `limiter status`, or stop it with `limiter \
             unload` (both with its --socket)",
            lock::shown_holder(path)
        ),
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
