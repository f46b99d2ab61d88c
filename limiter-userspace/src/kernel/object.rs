//! The BPF object inside this binary.

use anyhow::{Result, bail};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/limiter-xdp"));

/// The compiled XDP program.
///
/// # Errors
///
/// Where the binary was built on a machine without a BPF toolchain.
pub fn bytes() -> Result<&'static [u8]> {
    if OBJECT.is_empty() {
        bail!(
            "this binary was built without its BPF program: run `cargo xtask setup`, then `cargo xtask build`"
        );
    }
    Ok(OBJECT)
}
