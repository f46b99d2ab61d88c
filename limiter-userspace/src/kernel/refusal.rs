//! An attachment that is refused: the kernel's text, and what to try.

use std::{io, os::fd::BorrowedFd};

use anyhow::anyhow;

use super::interface::{self, Interface};
use crate::cli::AttachMode;

/// Says why a program cannot be put on an interface.
#[must_use]
pub fn explain(
    error: io::Error,
    program: BorrowedFd<'_>,
    interface: &Interface,
    mode: AttachMode,
) -> anyhow::Error {
    let name = &interface.name;
    let errno = error.raw_os_error();
    if matches!(errno, Some(libc::EMFILE)) {
        return anyhow!(error).context(format!("--iface {name}: cannot be attached to"));
    }
    let reason = match interface::refusal_text(interface.index, program, mode) {
        Some(text) => format!("{text} ({error})"),
        None => error.to_string(),
    };
    anyhow!(
        "--iface {name}: the driver refuses {} XDP: {reason}; {}",
        mode.name(),
        advice(errno, name, mode)
    )
}

fn advice(errno: Option<i32>, name: &str, mode: AttachMode) -> String {
    if mode == AttachMode::Generic {
        return "generic mode needs nothing of the driver; see the kernel's log (dmesg)".to_owned();
    }
    let generic = "or try --attach generic, which is slower and works with any driver";
    match errno {
        Some(libc::EOPNOTSUPP) => format!("it has no native XDP, {generic}"),
        Some(libc::ERANGE) => format!("lower the MTU (ip link set dev {name} mtu 1500), {generic}"),
        Some(libc::ENOSPC) => format!(
            "the other end has more queues than this one; give it more (ethtool -L {name} rx N), {generic}"
        ),
        Some(libc::ENOTCONN) => {
            format!("the other end of the veth pair is missing or down, {generic}")
        }
        Some(libc::ENOMEM) => {
            format!("there may be fewer rings than CPUs; see ethtool -l {name}, {generic}")
        }
        _ => format!(
            "try a smaller MTU (ip link set dev {name} mtu 1500), large receive offload off (ethtool -K {name} lro off \
             rx-gro-hw off), fewer queues (ethtool -l {name}, ethtool -L {name} combined N), {generic}"
        ),
    }
}
