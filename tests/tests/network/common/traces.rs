//! What a daemon that is gone may not leave behind.

use anyhow::Result;
use limiter_lab::{HOST_INTERFACE, Limiter};

use super::{Site, program_on};

/// Fails if something is left: a program on the interface, pins, a socket.
pub(crate) fn assert_no_traces(site: &Site, limiter: &Limiter<'_>, of: &str) -> Result<()> {
    assert_eq!(
        program_on(&site.host, HOST_INTERFACE)?,
        None,
        "{of} leaves a program attached"
    );
    assert!(
        !limiter.pin_dir.exists(),
        "{of} leaves {}",
        limiter.pin_dir.display()
    );
    assert!(
        !limiter.socket.exists(),
        "{of} leaves {}",
        limiter.socket.display()
    );
    Ok(())
}
