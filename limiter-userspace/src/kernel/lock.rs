//! Who may change what is pinned in a directory: one process at a time.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use nix::{
    fcntl::{Flock, FlockArg},
    sys::stat::{major, minor},
};

/// The lock, held until dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lock")] Flock<File>);

/// What came of trying to lock a directory.
#[derive(Debug)]
pub enum Try {
    /// It is ours.
    Taken(Lock),
    /// Another process has it.
    Held,
    /// The directory was removed or replaced meanwhile, by whoever had the lock.
    Gone,
}

impl Lock {
    /// Tries to lock a directory.
    ///
    /// # Errors
    ///
    /// Where it cannot be opened or locked.
    pub fn try_take(directory: &Path) -> io::Result<Try> {
        let opened = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(directory);
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Try::Gone),
            Err(error) => return Err(error),
        };
        let inode = opened.metadata()?.ino();
        let lock = match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Self(lock),
            Err((_, nix::Error::EWOULDBLOCK)) => return Ok(Try::Held),
            Err((_, error)) => return Err(error.into()),
        };
        match fs::symlink_metadata(directory) {
            Ok(metadata) if metadata.ino() == inode => Ok(Try::Taken(lock)),
            Ok(_) => Ok(Try::Gone),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Try::Gone),
            Err(error) => Err(error),
        }
    }
}

/// The process that has locked a directory, where there is one and the kernel tells.
#[must_use]
pub fn holder(directory: &Path) -> Option<u32> {
    let metadata = fs::symlink_metadata(directory).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    holder_in(&locks, metadata.dev(), metadata.ino())
}

/// Of lines such as `1: FLOCK  ADVISORY  WRITE 4711 00:2a:17 0 EOF` (`lock_get_status`, fs/locks.c, 6.12).
fn holder_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, "WRITE", pid, place, ..] if place == file => pid.parse().ok(),
            _ => None,
        }
    })
}

/// `, pid 4711`, where the holder is known.
#[must_use]
pub fn shown_holder(directory: &Path) -> String {
    holder(directory).map_or_else(String::new, |pid| format!(", pid {pid},"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_among_other_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:2a:17 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 00:2a:18 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 10 00:2a:17 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 00:2a:17 0 EOF\n";
        let device = nix::sys::stat::makedev(0, 0x2a);
        assert_eq!(holder_in(locks, device, 17), Some(9));
        assert_eq!(holder_in(locks, device, 19), None);
    }

    #[test]
    fn one_at_a_time_has_it_and_is_named() -> io::Result<()> {
        let directory = std::env::temp_dir().join(format!("limiter-lock-{}", std::process::id()));
        fs::create_dir(&directory)?;
        let taken = Lock::try_take(&directory)?;
        assert!(matches!(taken, Try::Taken(_)), "{taken:?}");
        assert!(matches!(Lock::try_take(&directory)?, Try::Held));
        assert_eq!(holder(&directory), Some(std::process::id()));
        drop(taken);
        assert_eq!(holder(&directory), None);
        fs::remove_dir(&directory)?;
        assert!(matches!(Lock::try_take(&directory)?, Try::Gone));
        Ok(())
    }
}
