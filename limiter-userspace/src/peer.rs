//! Who asks: the process at the other end of the control socket, as the kernel tells.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use nix::unistd::{Uid, User};
use tokio::net::UnixStream;

use crate::audit::who::{Process, Who};

/// The process that has connected a stream. Where user and process are in other namespaces, the kernel tells them as
/// this process sees them.
///
/// # Errors
///
/// Where the kernel does not say.
pub fn of(stream: &UnixStream) -> io::Result<Peer> {
    let credentials = stream.peer_cred()?;
    Ok(Peer {
        uid: credentials.uid(),
        pid: credentials.pid(),
    })
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its effective user when it connected.
    pub uid: u32,
    /// The process that connected; `None` or 0 where it cannot be seen from here.
    pub pid: Option<i32>,
}

impl Peer {
    /// The user's and the program's names, too. The user database may be remote: call this off the event loop, and only
    /// for what is worth it. The program's name is its own claim, and gone with the process.
    #[must_use]
    pub fn who(self) -> Who {
        let Self { uid, pid } = self;
        let pid = pid.filter(|pid| *pid > 0);
        let command = pid.and_then(|pid| fs::read(format!("/proc/{pid}/comm")).ok());
        Who::Process(Process {
            uid,
            user: user_name(uid),
            pid,
            comm: command.map(|name| String::from_utf8_lossy(&name).trim_end().to_owned()),
        })
    }
}

/// This process: for what its own flags and signals change.
#[must_use]
pub fn this_process() -> Who {
    let peer = Peer {
        uid: Uid::effective().as_raw(),
        pid: i32::try_from(std::process::id()).ok(),
    };
    peer.who()
}

/// Whoever owns a file: for what a changed file changes.
///
/// # Errors
///
/// Where the file cannot be looked at.
pub fn owner_of(file: &Path) -> io::Result<Who> {
    let uid = fs::metadata(file)?.uid();
    Ok(Who::File {
        file: file.display().to_string(),
        owner: user_name(uid).unwrap_or_else(|| uid.to_string()),
    })
}

fn user_name(uid: u32) -> Option<String> {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map(|user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_other_end_is_this_test() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = of(&one).unwrap();
        assert_eq!(peer.uid, Uid::effective().as_raw());
        let Who::Process(process) = peer.who() else {
            panic!("a process");
        };
        assert_eq!(process.pid, i32::try_from(std::process::id()).ok());
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(process.comm.as_deref(), Some(name.trim_end()));
        assert_eq!(this_process(), Who::Process(process));
    }

    #[test]
    fn a_process_that_is_gone_has_no_name() {
        // The highest process id is 2^22.
        for pid in [None, Some(0), Some(i32::MAX)] {
            let Who::Process(process) = (Peer { uid: 0, pid }).who() else {
                panic!("a process");
            };
            assert_eq!(process.comm, None);
            assert_eq!(process.user.as_deref(), Some("root"));
        }
    }

    #[test]
    fn a_user_without_a_name_is_a_number() {
        let peer = Peer {
            uid: u32::MAX - 7,
            pid: None,
        };
        assert_eq!(peer.who().name(), (u32::MAX - 7).to_string());
    }

    #[test]
    fn files_have_owners() {
        let Who::File { owner, .. } = owner_of(Path::new("/proc/1")).unwrap() else {
            panic!("a file");
        };
        assert_eq!(owner, "root");
        owner_of(Path::new("/nowhere")).unwrap_err();
    }
}
