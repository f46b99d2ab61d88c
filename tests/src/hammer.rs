//! The same work on every CPU at once.

use std::{
    hint, io,
    sync::{Barrier, Mutex, PoisonError},
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

/// Runs `work` on each CPU that we may use, all starting at the same time; it is told its number, from 0.
///
/// The threads are pinned, and nothing but interrupts takes their CPU away: on a busy machine they would otherwise take
/// turns instead of racing. A second of that is as much as the kernel allows (`kernel.sched_rt_runtime_us`).
pub fn on_every_cpu<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    // Two races at once would take turns too.
    static RACING: Mutex<()> = Mutex::new(());
    let _racing = RACING.lock().unwrap_or_else(PoisonError::into_inner);
    let cpus = cpus();
    assert!(
        cpus.len() > 1,
        "nothing races on a single CPU: this test needs two"
    );
    let start = Barrier::new(cpus.len());
    let (work, start) = (&work, &start);
    thread::scope(|scope| {
        let threads: Vec<ScopedJoinHandle<'_, T>> = cpus
            .iter()
            .enumerate()
            .map(|(number, cpu)| {
                scope.spawn(move || {
                    pin(*cpu);
                    start.wait();
                    work(number)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread of the race panicked"))
            .collect()
    })
}

/// Waits without giving up the CPU. Panics if others do not do their part, which they do within microseconds.
pub fn spin_until(done: impl Fn() -> bool) {
    const PATIENCE: Duration = Duration::from_secs(30);
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "the other CPUs do not come");
        hint::spin_loop();
    }
}

/// How many threads [`on_every_cpu`] makes.
#[must_use]
pub fn width() -> usize {
    cpus().len()
}

fn cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("the CPUs that we may use");
    (0..CpuSet::count())
        .filter(|cpu| allowed.is_set(*cpu).is_ok_and(|set| set))
        .collect()
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu).expect("a CPU's number");
    sched_setaffinity(Pid::from_raw(0), &set).expect("pin a thread");
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the pointer is valid for the call.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const priority) };
    assert_eq!(
        result,
        0,
        "cannot take a CPU for the race (SCHED_RR): {}",
        io::Error::last_os_error()
    );
}
