//! `limiter unload`: the daemon does it; where there is none any more, we do.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use hyper::Method;

use crate::{
    client::{self, Client},
    kernel::{
        bpffs::PinDir,
        interface::{self, AttachedXdp},
        link,
        load::PROGRAM,
        lock, pins, programs,
    },
    report::Unloaded,
    socket::{self, Identity},
};

/// How long a daemon may take to detach, and then to end.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Ends enforcement and the daemon, and returns when both have ended.
///
/// # Errors
///
/// Where the daemon does not end, or another one is using the pins.
pub async fn unload(client: Client<'_>, socket: &Path, pin_dir: &Path) -> Result<Unloaded> {
    let Some(stream) = client.connect().await? else {
        return leftovers(socket, pin_dir).await;
    };
    let daemon = client::peer(&stream);
    let file = Identity::of(socket);
    let unloaded = client::request(stream, Method::POST, "/v1/unload", PATIENCE).await?;
    let start = Instant::now();
    // What is there afterwards is of another daemon, perhaps one that a service manager has started at once.
    while (file.is_some() && Identity::of(socket) == file)
        || (daemon.is_some() && lock::holder(pin_dir) == daemon)
    {
        if start.elapsed() > PATIENCE {
            bail!(
                "enforcement has ended, but the daemon{} has not within {} s; see its log",
                daemon.map_or_else(String::new, |pid| format!(" (pid {pid})")),
                PATIENCE.as_secs()
            );
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(unloaded)
}

/// Removes what a daemon that is gone has left.
async fn leftovers(socket: &Path, pin_dir: &Path) -> Result<Unloaded> {
    let mut unloaded = match PinDir::take_existing(pin_dir)? {
        Some(pin_dir) => pins::detach_all(&pin_dir)?.into(),
        None => Unloaded::default(),
    };
    socket::remove_stale(socket).await?;
    if unloaded.interfaces.is_empty() {
        unloaded.others = others();
    }
    Ok(unloaded)
}

/// Where a program of limiter is attached, with the link that holds it.
fn others() -> Vec<String> {
    let mut others = Vec::new();
    for interface in interface::all() {
        let Some(AttachedXdp { program, .. }) = interface.xdp else {
            continue;
        };
        if programs::name(program) != PROGRAM {
            continue;
        }
        let name = &interface.name;
        others.push(match link::holding(program, interface.index) {
            Ok(Some(link)) => format!("program {program} on {name} (link {link})"),
            Ok(None) | Err(_) => format!("program {program} on {name}"),
        });
    }
    others
}
