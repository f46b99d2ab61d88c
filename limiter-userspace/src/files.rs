//! The limit of open files, which a daemon for many interfaces can meet.

use anyhow::anyhow;
use nix::sys::resource::{Resource, getrlimit};

/// Adds what to do about it to an error that comes of too many open files.
///
/// Some libraries keep the kernel's error as text only, so it is looked for there.
#[must_use]
pub fn say_limit(error: anyhow::Error) -> anyhow::Error {
    let text = format!("{error:#}");
    if !text.contains(&format!("(os error {})", libc::EMFILE)) {
        return error;
    }
    let limit = getrlimit(Resource::RLIMIT_NOFILE)
        .map_or_else(|_| String::new(), |(soft, _)| format!(" {soft}"));
    anyhow!(
        "{text}; this process may open{limit} files: raise that (ulimit -n, or LimitNOFILE= of a systemd unit)"
    )
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn only_too_many_files_are_explained() {
        let error = |errno| anyhow!(io::Error::from_raw_os_error(errno)).context("--iface x");
        let said = say_limit(error(libc::EMFILE)).to_string();
        assert!(said.starts_with("--iface x: Too many open files"), "{said}");
        assert!(said.contains("ulimit -n"), "{said}");
        let said = format!("{:#}", say_limit(error(libc::EBUSY)));
        assert!(!said.contains("ulimit"), "{said}");
    }
}
