//! The XDP program on an interface, as `ip` shows it.

use anyhow::{Context as _, Result, ensure};
use limiter_lab::Namespace;
use serde_json::Value;

/// Its id, if there is one.
pub(crate) fn program_on(namespace: &Namespace, interface: &str) -> Result<Option<u64>> {
    let output = namespace
        .command("ip")
        .args(["-j", "link", "show", "dev", interface])
        .output()
        .context("run ip")?;
    ensure!(
        output.status.success(),
        "ip link show dev {interface}: {}",
        output.status
    );
    let links: Value = serde_json::from_slice(&output.stdout).context("read what ip prints")?;
    Ok(links[0]["xdp"]["prog"]["id"].as_u64())
}
