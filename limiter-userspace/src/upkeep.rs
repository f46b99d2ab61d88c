//! What a daemon does by itself: ends what is over, and takes up changed files.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use tokio::{task::spawn_blocking, time::interval};
use tracing::warn;

use crate::{audit::who::Who, control::Control, peer, settings::PolicySource, watch::Watch};

/// Between looks at what is over. The program honours the times by itself; this only tidies up.
const TICK: Duration = Duration::from_secs(1);

/// Ends bans and overrides that are over, for ever.
pub async fn expire(control: Arc<Control>) {
    let mut ticks = interval(TICK);
    loop {
        ticks.tick().await;
        let control = Arc::clone(&control);
        let done = spawn_blocking(move || control.expire()).await;
        if let Ok(Err(error)) = done {
            warn!("{error:#}");
        }
    }
}

/// Takes up the policy file and its lists as they change, for ever. The watch began before they were read.
pub async fn watch(control: Arc<Control>, mut watch: Watch) {
    if matches!(control.source(), PolicySource::Flags(_)) {
        return;
    }
    loop {
        let changed = watch.changed().await;
        let who = changed.first().map(|file| peer::owner_of(file));
        let who = match who {
            Some(Ok(who)) => who,
            _ => peer::this_process(),
        };
        drop(reload(&control, who, "a file has changed").await);
        watch.set(control.files());
    }
}

/// Takes up the policy file for a signal.
pub async fn hang_up(control: &Arc<Control>) {
    drop(reload(control, peer::this_process(), "SIGHUP").await);
}

async fn reload(control: &Arc<Control>, who: Who, why: &str) -> Result<()> {
    let control = Arc::clone(control);
    let why = why.to_owned();
    spawn_blocking(move || control.reload(&who, Some(&why)))
        .await?
        .map(drop)
}
