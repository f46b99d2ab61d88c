//! Named network namespaces, and doing things inside them.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use nix::{
    sched::{CloneFlags, setns},
    unistd::Uid,
};

use crate::ip::ip;

const DIRECTORY: &str = "/run/netns";
const PREFIX: &str = "limiter";

/// A network namespace of this process. Dropping it deletes it with all its interfaces, once no process is left inside.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    inside: Inside,
}

impl Namespace {
    /// Makes `limiter-<purpose>-<pid>-<number>-<role>`, with its loopback interface up.
    ///
    /// # Errors
    /// Not root, no `ip` command, a purpose or role that does not fit into a name, or a kernel that refuses.
    pub fn create(purpose: &str, role: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        require_root()?;
        for word in [purpose, role] {
            ensure!(
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{word:?} cannot be part of a namespace's name: use ASCII letters and digits"
            );
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}-{purpose}-{}-{number}-{role}", process::id());
        ip(&["netns", "add", &name])?;
        let opened = File::open(path(&name)).with_context(|| format!("open the namespace {name}"));
        let namespace = match opened {
            Ok(file) => Self {
                name,
                inside: Inside(Arc::new(file)),
            },
            Err(error) => {
                delete(&name);
                return Err(error);
            }
        };
        ip(&["-n", &namespace.name, "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name, as `ip -n NAME` takes it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        path(&self.name)
    }

    /// Does something inside, in a thread made for it. What it opens there stays there: a socket may be used anywhere afterwards.
    ///
    /// Mounts stay as they are, so `/sys/class/net` shows the interfaces of the namespace it was mounted in.
    ///
    /// # Errors
    /// The namespace could not be entered, or what `work` failed with.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.inside.enter()?;
                work()
            });
            inside
                .join()
                .map_err(|_panic| anyhow!("a thread inside the namespace {} panicked", self.name))?
        })
    }

    /// A command whose process will run inside. Unlike `ip netns exec`, it sees the mounts of this process (pins on bpffs too).
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let inside = self.inside.clone();
        let mut command = Command::new(program);
        // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
        unsafe { command.pre_exec(move || inside.set()) };
        command
    }

    /// Sets a network setting inside; its name with slashes, such as `net/ipv4/ip_forward`.
    ///
    /// # Errors
    /// There is no such setting, or it refuses the value.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let file = Path::new("/proc/sys").join(key);
        self.run(|| {
            fs::write(&file, value)
                .with_context(|| format!("set {key} to {value} in {}", self.name))
        })
    }

    /// The way in, for a thread that may outlive the name.
    pub(crate) fn inside(&self) -> Inside {
        self.inside.clone()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        delete(&self.name);
    }
}

/// A way into a namespace. It keeps the namespace, though not its name.
#[derive(Clone, Debug)]
pub(crate) struct Inside(Arc<File>);

impl Inside {
    /// Moves the calling thread inside, for the rest of its life.
    pub(crate) fn enter(&self) -> Result<()> {
        self.set().context("enter a network namespace")
    }

    fn set(&self) -> io::Result<()> {
        setns(&*self.0, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
    }
}

/// Deletes the namespaces of processes that are gone, and returns their names.
///
/// # Errors
/// The directory of namespaces cannot be read, or one of them cannot be deleted.
pub fn remove_leftovers() -> Result<Vec<String>> {
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("read {DIRECTORY}"))?,
    };
    let mut removed = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("read {DIRECTORY}"))?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let gone =
            owner(&name).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        if gone {
            match ip(&["netns", "delete", &name]) {
                Ok(_) => removed.push(name),
                // Somebody else tidies up too.
                Err(_) if !path(&name).exists() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(removed)
}

/// Fails, saying so, unless the process is root.
///
/// # Errors
/// The process is not root.
pub fn require_root() -> Result<()> {
    ensure!(
        Uid::effective().is_root(),
        "network namespaces and BPF need root; run this as root"
    );
    Ok(())
}

/// The process that made a namespace of this name, if it is one of ours.
fn owner(name: &str) -> Option<u32> {
    let mut words = name.split('-');
    let (prefix, _purpose, pid, number, _role) = (
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
    );
    let ours = prefix == PREFIX && number.parse::<u32>().is_ok() && words.next().is_none();
    if ours { pid.parse().ok() } else { None }
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// For a drop, which has nobody to tell but the terminal.
fn delete(name: &str) {
    if let Err(error) = ip(&["netns", "delete", name]) {
        eprintln!("the namespace {name} is left behind: {error:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_have_an_owner() {
        assert_eq!(owner("limiter-demo-123-0-host"), Some(123));
        for name in [
            "limiter-demo-123-0",
            "limiter-demo-x-0-host",
            "other-demo-123-0-host",
            "limiter-a-1-2-b-c",
            "eth0",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_is_refused_before_anything_is_made() {
        if require_root().is_ok() {
            assert!(
                Namespace::create("two words", "host")
                    .unwrap_err()
                    .to_string()
                    .contains("two words")
            );
        }
    }
}
