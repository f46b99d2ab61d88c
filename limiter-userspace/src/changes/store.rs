//! The state directory, and the file of changes in it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg, OFlag},
};
use tracing::{error, warn};

use super::{document, kept::Kept, moment::Moment};

/// The file of changes.
const FILE: &str = "changes.json";
/// What is being written; a leftover says nothing and is written over.
const NEW_FILE: &str = "changes.json.new";
/// More is not read; the most bans and overrides with the longest reasons take less.
const LARGEST: u64 = 64 << 20;

/// The state directory of one daemon.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    boot: String,
    /// Held as long as the daemon runs, so that no other one writes here; `None` where the directory cannot be used.
    _lock: Option<Flock<File>>,
}

/// What was found on disk.
#[derive(Debug)]
pub struct Loaded {
    /// The changes; none, if there were none or they could not be used.
    pub kept: Kept,
    /// Why they could not be used, as it was logged.
    pub fault: Option<String>,
}

impl Store {
    /// Takes the directory, which is made where it is missing. One that cannot be used is no error but logged: the
    /// daemon enforces without it, and each [`Self::save`] tries again.
    ///
    /// # Errors
    ///
    /// Where another daemon has the directory.
    pub fn open(directory: &Path) -> Result<Self> {
        let lock = match make(directory).and_then(|()| File::open(directory)) {
            Ok(file) => lock(directory, file)?,
            Err(error) => {
                warn!(
                    "--state-dir {}: cannot be used, bans and overrides will not survive a restart: {error}",
                    directory.display()
                );
                None
            }
        };
        Ok(Self {
            directory: directory.to_owned(),
            boot: boot(),
            _lock: lock,
        })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the changes. A file that does not hold any is renamed, so that it can be looked at, and the daemon goes on
    /// with none: what it would enforce is not known, and one bad byte must not keep it from starting.
    #[must_use]
    pub fn load(&self, now: &Moment) -> Loaded {
        let path = self.directory.join(FILE);
        let document = match read(&path) {
            Ok(Some(document)) => document,
            Ok(None) => return Loaded::none(),
            Err(error) => {
                return Loaded::faulty(format!(
                    "{}: cannot be read, so no bans and overrides are taken over: {error}",
                    path.display()
                ));
            }
        };
        match document::decode(&document, now, &self.boot) {
            Ok(kept) => Loaded { kept, fault: None },
            Err(fault) => {
                let aside = self.set_aside(&path, now);
                Loaded::faulty(format!(
                    "{}: does not hold bans and overrides, so none are taken over ({aside}): {fault}",
                    path.display()
                ))
            }
        }
    }

    fn set_aside(&self, path: &Path, now: &Moment) -> String {
        let to = self
            .directory
            .join(format!("{FILE}.bad-{}", now.wall.seconds()));
        match fs::rename(path, &to) {
            Ok(()) => format!("the file is now {}", to.display()),
            Err(error) => format!("the file cannot be renamed to {}: {error}", to.display()),
        }
    }

    /// Writes the changes. Whatever happens meanwhile, the file holds either these or those before. Takes as long as the
    /// disk does.
    ///
    /// # Errors
    ///
    /// Where they cannot be written: what is in force stays so, but the next daemon goes by what was written before.
    pub fn save(&self, kept: &Kept, at: &Moment) -> Result<()> {
        let path = self.directory.join(FILE);
        let document = document::encode(kept, at, &self.boot);
        self.replace(&path, &document).with_context(|| {
            format!(
                "{}: cannot be written; the change is in force, but will not survive a restart of the daemon",
                path.display()
            )
        })
    }

    fn replace(&self, path: &Path, document: &[u8]) -> io::Result<()> {
        make(&self.directory)?;
        let new_path = self.directory.join(NEW_FILE);
        if let Err(error) = write_durably(&new_path, document) {
            // A full disk is not filled further.
            drop(fs::remove_file(&new_path));
            return Err(error);
        }
        fs::rename(&new_path, path)?;
        // The new name is on disk only with the directory.
        File::open(&self.directory)?.sync_all()
    }
}

impl Loaded {
    fn none() -> Self {
        Self {
            kept: Kept::default(),
            fault: None,
        }
    }

    fn faulty(fault: String) -> Self {
        error!("{fault}");
        Self {
            kept: Kept::default(),
            fault: Some(fault),
        }
    }
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn lock(directory: &Path, file: File) -> Result<Option<Flock<File>>> {
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => bail!(
            "--state-dir {}: another daemon keeps its state there; name another directory",
            directory.display()
        ),
        Err((_, error)) => {
            // Some network file systems have no locks.
            warn!(
                "--state-dir {}: cannot be locked, so nothing keeps a second daemon from writing there: {error}",
                directory.display()
            );
            Ok(None)
        }
    }
}

/// The bytes of a file; `None` if there is none.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Not to wait for the other end of a pipe that somebody has put there.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut document = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut document)?;
    if document.len() as u64 > LARGEST {
        return Err(io::Error::other(format!(
            "it has more than {LARGEST} bytes"
        )));
    }
    Ok(Some(document))
}

/// What this boot is called. Where the kernel does not say, nothing is of this boot, and the wall clock counts.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(
        |_| format!("unknown, process {}", std::process::id()),
        |text| text.trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
        time::{Duration, UNIX_EPOCH},
    };

    use nix::{sys::stat::Mode, unistd::mkfifo};
    use tempfile::TempDir;

    use super::{super::kept::KeptBan, *};

    fn now() -> Moment {
        Moment {
            wall: (UNIX_EPOCH + Duration::from_secs(1_790_000_000)).into(),
            monotonic: 1_000_000_000,
        }
    }

    fn kept(reason: &str) -> Kept {
        let mut kept = Kept::default();
        let ban = KeptBan {
            until: Some(601_000_000_000),
            reason: Some(reason.to_owned()),
            author: "root".to_owned(),
            made: now().wall,
        };
        kept.add_ban("198.51.100.7".parse().unwrap(), ban).unwrap();
        kept
    }

    fn store() -> (TempDir, Store) {
        let temporary = tempfile::tempdir().unwrap();
        let store = Store::open(&temporary.path().join("limiter")).unwrap();
        (temporary, store)
    }

    fn names(store: &Store) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(store.directory())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_there_at_first() {
        let (_temporary, store) = store();
        let loaded = store.load(&now());
        assert_eq!(loaded.kept, Kept::default());
        assert_eq!(loaded.fault, None);
    }

    #[test]
    fn what_is_saved_is_loaded_and_is_nobody_elses() {
        let (_temporary, store) = store();
        store.save(&kept("first"), &now()).unwrap();
        store.save(&kept("second"), &now()).unwrap();
        assert_eq!(store.load(&now()).kept, kept("second"));
        assert_eq!(names(&store), [FILE]);
        let file = fs::metadata(store.directory().join(FILE)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        let directory = fs::metadata(store.directory()).unwrap();
        assert_eq!(directory.permissions().mode() & 0o777, 0o700);
        let before = file.ino();
        store.save(&kept("third"), &now()).unwrap();
        let after = fs::metadata(store.directory().join(FILE)).unwrap().ino();
        assert_ne!(before, after, "written beside, then renamed");
    }

    #[test]
    fn a_writer_killed_in_the_middle_leaves_the_last_good_file() {
        let (_temporary, store) = store();
        store.save(&kept("good"), &now()).unwrap();
        let document = fs::read(store.directory().join(FILE)).unwrap();
        let leftover = store.directory().join(NEW_FILE);
        for cut in [0, 1, document.len() / 2, document.len() - 1] {
            fs::write(&leftover, &document[..cut]).unwrap();
            let loaded = store.load(&now());
            assert_eq!(loaded.kept, kept("good"));
            assert_eq!(loaded.fault, None);
        }
        store.save(&kept("next"), &now()).unwrap();
        assert_eq!(store.load(&now()).kept, kept("next"));
        assert_eq!(names(&store), [FILE]);
    }

    #[test]
    fn a_bad_file_is_set_aside_and_the_daemon_goes_on() {
        let (_temporary, store) = store();
        store.save(&kept("good"), &now()).unwrap();
        let path = store.directory().join(FILE);
        let good = fs::read_to_string(&path).unwrap();
        let aside = format!("{FILE}.bad-2026-09-21T14:13:20Z");
        for bad in [
            good[..good.len() / 2].to_owned(),
            good.replace("\"version\": 1", "\"version\": 2"),
            "\0".repeat(4096),
            String::new(),
        ] {
            fs::write(&path, &bad).unwrap();
            let loaded = store.load(&now());
            assert_eq!(loaded.kept, Kept::default());
            let fault = loaded.fault.unwrap();
            assert!(fault.contains(path.to_str().unwrap()), "{fault}");
            assert!(fault.contains(&aside), "{fault}");
            let kept_aside = fs::read_to_string(store.directory().join(&aside)).unwrap();
            assert_eq!(kept_aside, bad, "nothing of it is lost");
            assert_eq!(names(&store), std::slice::from_ref(&aside));
        }
        store.save(&kept("new"), &now()).unwrap();
        assert_eq!(store.load(&now()).kept, kept("new"));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let (_temporary, store) = store();
        let path = store.directory().join(FILE);
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let fault = store.load(&now()).fault.unwrap();
        assert!(fault.contains("no regular file"), "{fault}");
        store.save(&kept("new"), &now()).unwrap();
        assert_eq!(store.load(&now()).kept, kept("new"));
    }

    #[test]
    fn a_link_in_the_way_is_not_written_through() {
        let (temporary, store) = store();
        let victim = temporary.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, store.directory().join(NEW_FILE)).unwrap();
        assert!(store.save(&kept("new"), &now()).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named_with_what_follows() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, "").unwrap();
        let directory = file.join("limiter");
        let store = Store::open(&directory).unwrap();
        assert!(store.load(&now()).fault.is_some());
        let error = format!("{:#}", store.save(&kept("new"), &now()).unwrap_err());
        assert!(error.contains(directory.to_str().unwrap()), "{error}");
        assert!(error.contains("will not survive a restart"), "{error}");
        fs::remove_file(&file).unwrap();
        store.save(&kept("new"), &now()).unwrap();
        assert_eq!(store.load(&now()).kept, kept("new"), "tried again");
    }

    #[test]
    fn two_daemons_do_not_share_a_directory() {
        let (_temporary, store) = store();
        let error = Store::open(store.directory()).unwrap_err().to_string();
        assert!(error.contains("another daemon"), "{error}");
        let directory = store.directory().to_owned();
        drop(store);
        Store::open(&directory).unwrap();
    }
}
