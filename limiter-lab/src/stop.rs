//! The token that ends everything early.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a sleeper may take to notice that it should stop.
const NOTICE: Duration = Duration::from_millis(20);

/// Asks work in other threads to stop; clones are the same token.
///
/// A child stops when it, or any token above it, is asked to.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    parent: Option<Arc<Stop>>,
}

impl Stop {
    /// A token that nobody has used yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that this one also stops, but that does not stop this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            asked: Arc::default(),
            parent: Some(Arc::new(self.clone())),
        }
    }

    /// Asks for the stop; fit for a signal handler's thread.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
            || self.parent.as_ref().is_some_and(|parent| parent.asked())
    }

    /// Sleeps until the moment, or until asked to stop; says whether to go on.
    #[must_use]
    pub fn sleep_until(&self, moment: Instant) -> bool {
        while !self.asked() {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(NOTICE));
        }
        false
    }

    /// Sleeps for a while, or until asked to stop; says whether to go on.
    #[must_use]
    pub fn sleep(&self, duration: Duration) -> bool {
        self.sleep_until(Instant::now() + duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_stops_its_children_only() {
        let parent = Stop::new();
        let (first, second) = (parent.child(), parent.child());
        first.ask();
        assert!(first.asked());
        assert!(!second.asked());
        parent.ask();
        assert!(second.asked());
    }

    #[test]
    fn a_sleeper_wakes_when_asked() {
        let stop = Stop::new();
        let sleeper = thread::spawn({
            let stop = stop.clone();
            move || stop.sleep(Duration::from_secs(60))
        });
        stop.ask();
        assert!(!sleeper.join().expect("the sleeper does not panic"));
    }
}
