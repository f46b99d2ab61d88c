//! Any frames at an exact rate, sent from user space, evenly spaced.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use crate::{
    flood::Sent,
    lab::{Lab, NET_INTERFACE},
    pace,
    stop::Stop,
    task::Task,
    wire::Wire,
};

/// A stream of frames at a constant rate, up to some 100,000 per second.
///
/// Frame `n` leaves at `n / rate` seconds. A sender that the kernel kept from running catches up, so the total is exact whatever happens.
#[derive(Clone, Debug)]
pub struct Paced {
    /// What is sent, one after the other, round and round.
    pub frames: Vec<Vec<u8>>,
    /// Frames per second.
    pub rate_per_second: u64,
    /// How many frames.
    pub packets: u64,
}

/// What a [`Paced`] stream sent, and how well it kept its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What was sent.
    pub sent: Sent,
    /// How far behind its moment a frame was at most.
    pub latest: Duration,
}

impl Paced {
    /// One frame for so long.
    ///
    /// # Errors
    /// The rate times the duration is beyond all counting.
    pub fn for_duration(frame: Vec<u8>, rate_per_second: u64, duration: Duration) -> Result<Self> {
        let packets = duration.as_nanos() * u128::from(rate_per_second) / 1_000_000_000;
        Ok(Self {
            frames: vec![frame],
            rate_per_second,
            packets: u64::try_from(packets)?,
        })
    }

    /// Starts it at the lab's network, against the host.
    ///
    /// # Errors
    /// Not root, no frames, or a rate of 0.
    pub fn start(&self, lab: &Lab, stop: &Stop) -> Result<Task<Kept>> {
        let wire = Wire::open(&lab.net, NET_INTERFACE)?;
        let Self {
            frames,
            rate_per_second: rate,
            packets,
        } = self.clone();
        ensure!(
            !frames.is_empty() && rate > 0,
            "{} frames at {rate} per second: nothing to send",
            frames.len()
        );
        Task::start("paced", stop, move |stop, progress| {
            pace::wake_exactly()?;
            let start = Instant::now();
            let (mut sent, mut elapsed, mut latest) = (0, Duration::ZERO, Duration::ZERO);
            for (n, frame) in (0..packets).zip(frames.iter().cycle()) {
                let moment = pace::moment_of(n, rate);
                if !pace::wait_exactly(start + moment, stop) {
                    break;
                }
                elapsed = start.elapsed();
                latest = latest.max(elapsed.saturating_sub(moment));
                wire.send(frame)?;
                sent = n + 1;
                progress.sent.store(sent, Ordering::Relaxed);
            }
            Ok(Kept {
                sent: Sent {
                    packets: sent,
                    elapsed,
                },
                latest,
            })
        })
    }

    /// Runs it at the lab's network, against the host, to its end.
    ///
    /// # Errors
    /// As for [`Paced::start`], or a frame could not be sent.
    pub fn run(&self, lab: &Lab, stop: &Stop) -> Result<Kept> {
        self.start(lab, stop)?.join()
    }
}
