//! Work in a thread of its own that can be watched, stopped and waited for.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use anyhow::{Context as _, Result, anyhow};

use crate::stop::Stop;

/// What a task has done so far.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) sent: AtomicU64,
    pub(crate) answered: AtomicU64,
}

impl Progress {
    /// Frames or requests sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Requests answered; zero for work that expects no answer.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

/// A running piece of work. Dropping it stops it and waits for its end.
#[must_use = "a dropped task is stopped"]
pub struct Task<T> {
    stop: Stop,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<Result<T>>>,
}

impl<T: Send + 'static> Task<T> {
    /// Starts the work; it ends early when `stop` is asked to.
    ///
    /// # Errors
    /// No thread could be made.
    pub(crate) fn start(
        name: &str,
        stop: &Stop,
        work: impl FnOnce(&Stop, &Progress) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let stop = stop.child();
        let progress = Arc::new(Progress::default());
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn({
                let (stop, progress) = (stop.clone(), Arc::clone(&progress));
                move || work(&stop, &progress)
            })
            .with_context(|| format!("start the thread {name}"))?;
        Ok(Self {
            stop,
            progress,
            thread: Some(thread),
        })
    }

    /// What it has done so far.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Asks it to end early; [`Task::join`] then gives what it had done.
    pub fn stop(&self) {
        self.stop.ask();
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What the work itself failed with, or that it panicked.
    pub fn join(mut self) -> Result<T> {
        let thread = self.thread.take().context("the task was joined before")?;
        let name = thread.thread().name().unwrap_or("unnamed").to_owned();
        thread
            .join()
            .map_err(|_panic| anyhow!("the thread {name} panicked"))?
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            // Whoever wanted the result has called join.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_task_has_ended() {
        let ended = Arc::new(AtomicU64::new(0));
        let task = Task::start("test", &Stop::new(), {
            let ended = Arc::clone(&ended);
            move |stop, _| {
                while stop.sleep(std::time::Duration::from_secs(1)) {}
                ended.store(1, Ordering::Relaxed);
                Ok(())
            }
        })
        .expect("a thread");
        drop(task);
        assert_eq!(ended.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_panic_is_an_error() {
        let task =
            Task::<()>::start("test", &Stop::new(), |_, _| panic!("on purpose")).expect("a thread");
        assert!(task.join().unwrap_err().to_string().contains("panicked"));
    }
}
