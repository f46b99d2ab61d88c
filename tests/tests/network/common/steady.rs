//! Senders that keep their time.

use std::time::Duration;

use anyhow::{Result, bail};

/// How far behind its moment a frame may be where each token counts, at 1,000 a second and a burst of 100: a source that is held up for longer
/// than it takes to fill its bucket loses what would have come in, and then sends more at once than the bucket holds.
const LATEST: Duration = Duration::from_millis(80);

/// Repeats what depends on a sender's time until that was kept. Each attempt says how late a frame was at most.
pub(crate) fn in_time<T>(mut attempt: impl FnMut() -> Result<(Duration, T)>) -> Result<T> {
    for _attempt in 0..4 {
        let (late, outcome) = attempt()?;
        if late <= LATEST {
            return Ok(outcome);
        }
        eprintln!("once more: this machine held a sender up for {late:?}");
    }
    bail!("this machine held senders up for more than {LATEST:?}, each time")
}
