//! Floods: frames made inside the kernel, as fast as it can or at a rate, with sources that change from frame to frame.

use std::{
    fs::File,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use aya::{
    Ebpf, TestRun as _, TestRunAttrs, TestRunOptions,
    maps::Array,
    programs::{ProgramError, XdpMode},
};
use nix::{
    net::if_::if_nametoindex,
    sched::{CloneFlags, unshare},
};

use crate::{
    frame::Template,
    lab::{Lab, NET_INTERFACE},
    netns::Namespace,
    object::{load, xdp},
    pace,
    plan::{Plan, fold},
    sources::Sources,
    stop::Stop,
    task::{Progress, Task},
};

/// How many frames are sent at once at most. A veth ring holds 256, and what it cannot hold is lost, no matter whose it is.
const BATCH: u32 = 64;
/// How many are sent between two looks at the stop token, where there is no rate: about a millisecond's worth.
const UNPACED: u64 = 64 * 64;
/// How often a paced flood wakes at most, per second.
const WAKES: u64 = 5_000;
/// The largest frame that fits into the page of a live frame beside what the kernel keeps there.
const LONGEST: usize = 3_400;

/// A flood: bounded in frames and time, whichever comes first. Needs Linux 5.18.
#[derive(Clone, Debug)]
pub struct Flood {
    /// What is sent.
    pub template: Template,
    /// In whose name.
    pub sources: Sources,
    /// How many frames at most.
    pub packets: u64,
    /// How long at most.
    pub duration: Duration,
    /// Frames per second; `None` for as fast as this CPU can.
    pub rate_per_second: Option<u64>,
    /// The CPU that sends, and thereby receives: on a veth pair a frame stays on its CPU until the program at the other end has judged it.
    pub cpu: Option<usize>,
}

/// What a flood sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Frames, exactly.
    pub packets: u64,
    /// From the first to the last.
    pub elapsed: Duration,
}

impl Sent {
    /// Frames per second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate to be read")]
    pub fn rate(&self) -> f64 {
        self.packets as f64 / self.elapsed.as_secs_f64()
    }

    /// Nanoseconds per frame; where there was no rate to keep, that is the cost of the whole path, from making the frame to the verdict.
    #[must_use]
    pub fn nanoseconds_each(&self) -> f64 {
        1e9 / self.rate()
    }
}

impl Flood {
    /// Starts it at the lab's network, against the host.
    ///
    /// # Errors
    /// As for [`Flood::start_at`].
    pub fn start(&self, lab: &Lab, stop: &Stop) -> Result<Task<Sent>> {
        self.start_at(&lab.net, NET_INTERFACE, stop)
    }

    /// Runs it at the lab's network, against the host, to its end.
    ///
    /// # Errors
    /// As for [`Flood::start_at`], or the kernel stops to generate.
    pub fn run(&self, lab: &Lab, stop: &Stop) -> Result<Sent> {
        self.start(lab, stop)?.join()
    }

    /// Starts it: the frames leave through an interface, and arrive at the other end of its cable.
    ///
    /// # Errors
    /// Not root, no BPF object, sources that do not fit the template, a template too long for a live frame, or no such interface.
    pub fn start_at(
        &self,
        namespace: &Namespace,
        interface: &str,
        stop: &Stop,
    ) -> Result<Task<Sent>> {
        let Self {
            template,
            packets,
            duration,
            rate_per_second,
            cpu,
            ..
        } = self.clone();
        ensure!(
            rate_per_second != Some(0),
            "a rate of 0 frames per second never sends the first"
        );
        let mut object = load("flood", &self.plan()?)?;
        let context = context(&template.bytes, namespace.run(|| index_of(interface))?)?;
        let inside = namespace.inside();
        Task::start("flood", stop, move |stop, progress| {
            let _attached = stay_dispatched(&mut object)?;
            inside.enter()?;
            pace::wake_exactly()?;
            if let Some(cpu) = cpu {
                pace::pin_to(cpu)?;
            }
            let mut generator = Generator {
                object: &mut object,
                frame: &template.bytes,
                context,
                progress,
            };
            let start = Instant::now();
            let mut sent = Sent {
                packets: 0,
                elapsed: Duration::ZERO,
            };
            while sent.packets < packets && start.elapsed() < duration && !stop.asked() {
                let left = packets - sent.packets;
                let now = match rate_per_second {
                    None => UNPACED.min(left),
                    Some(rate) => {
                        let wait = time_to_wake(sent.packets, rate).min(duration);
                        if !stop.sleep_until(start + wait) {
                            break;
                        }
                        let due = pace::due_after(start.elapsed(), rate);
                        due.saturating_sub(sent.packets).min(left).min(BATCH.into())
                    }
                };
                sent = Sent {
                    packets: generator.send(now)?,
                    elapsed: start.elapsed(),
                };
            }
            Ok(sent)
        })
    }

    fn plan(&self) -> Result<Plan> {
        let Template {
            bytes,
            version,
            ip_offset,
            transport_checksum_offset,
        } = &self.template;
        let mut plan = self.sources.plan()?;
        ensure!(
            plan.version == u32::from(*version),
            "the template is of IP version {version}, the sources are of version {}",
            plan.version
        );
        ensure!(
            bytes.len() <= LONGEST,
            "a template of {} bytes; a live frame holds {LONGEST}",
            bytes.len()
        );
        let (source, length) = if *version == 4 {
            (ip_offset + 12, 4)
        } else {
            (ip_offset + 8, 16)
        };
        let old = bytes
            .get(source..source + length)
            .context("the template ends before its source address")?;
        plan.source_offset = u32::try_from(source)?;
        if *version == 4 {
            plan.header_checksum_offset = u32::try_from(ip_offset + 10)?;
            plan.header_checksum_base = base(bytes, ip_offset + 10, old)?;
        }
        if let Some(offset) = *transport_checksum_offset {
            plan.transport_checksum_offset = u32::try_from(offset)?;
            plan.transport_checksum_base = base(bytes, offset, old)?;
        }
        Ok(plan)
    }
}

/// Makes the calling thread the first in a new namespace, and attaches the program there, where no packet ever comes.
///
/// The kernel calls XDP programs through a dispatcher. A run of several frames enters its program there and removes it again, and each time
/// waits for all CPUs: 25 ms for a batch that takes 10 microseconds. A program that is attached somewhere is there already.
/// It stays attached until the returned file, the namespace, is closed.
fn stay_dispatched(object: &mut Ebpf) -> Result<File> {
    unshare(CloneFlags::CLONE_NEWNET).context("make a namespace for the generator")?;
    let namespace =
        File::open("/proc/thread-self/ns/net").context("open the generator's namespace")?;
    xdp(object, "flood")?
        .attach("lo", XdpMode::Skb)
        .context("attach the generator")?;
    Ok(namespace)
}

/// The sum that a checksum stands for, less the source's share; in the byte order of memory, like the program's.
fn base(bytes: &[u8], checksum: usize, source: &[u8]) -> Result<u32> {
    let word = |pair: &[u8]| u64::from(!u16::from_ne_bytes([pair[0], pair[1]]));
    let checksum = bytes
        .get(checksum..checksum + 2)
        .context("the template ends before its checksum")?;
    Ok(fold(word(checksum) + source.chunks_exact(2).map(word).sum::<u64>()).into())
}

/// `struct xdp_md` for a run whose frames are sent out of the interface of this index.
fn context(frame: &[u8], interface: u32) -> Result<Vec<u8>> {
    let end = u32::try_from(frame.len())?;
    Ok([0, end, 0, interface, 0, 0].map(u32::to_ne_bytes).concat())
}

fn index_of(interface: &str) -> Result<u32> {
    if_nametoindex(interface).with_context(|| format!("find the interface {interface}"))
}

/// When, after the start, so many frames are due that sending them is worth a wake.
fn time_to_wake(sent: u64, rate: u64) -> Duration {
    let worth_it = (rate / WAKES).clamp(1, BATCH.into());
    pace::moment_of(sent + worth_it - 1, rate)
}

/// The loaded program with what every run of it needs.
struct Generator<'a> {
    object: &'a mut Ebpf,
    frame: &'a [u8],
    context: Vec<u8>,
    progress: &'a Progress,
}

impl Generator<'_> {
    /// Sends so many frames, and returns how many were sent since the start.
    fn send(&mut self, frames: u64) -> Result<u64> {
        let batch = u64::from(BATCH);
        // The kernel rounds up to whole batches, so what is no whole batch needs a run of its own.
        let (whole, rest) = (frames - frames % batch, frames % batch);
        if whole > 0 {
            self.run(u32::try_from(whole)?, BATCH)?;
        }
        if rest > 0 {
            let rest = u32::try_from(rest)?;
            self.run(rest, rest)?;
        }
        let sent = self.generated()?;
        self.progress.sent.store(sent, Ordering::Relaxed);
        Ok(sent)
    }

    fn run(&mut self, repeat: u32, batch: u32) -> Result<()> {
        let options = TestRunOptions {
            data_in: Some(self.frame),
            ctx_in: Some(&self.context),
            repeat,
            attrs: TestRunAttrs::new().xdp_live_frames(batch),
            ..TestRunOptions::default()
        };
        match xdp(self.object, "flood")?.test_run(options) {
            Ok(_) => Ok(()),
            // A signal's handler ran in this thread: the program's own counter says how far the run came.
            Err(ProgramError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::EINTR) =>
            {
                Ok(())
            }
            Err(error) => Err(anyhow!(error).context("generate frames")),
        }
    }

    fn generated(&self) -> Result<u64> {
        let map = self
            .object
            .map("GENERATED")
            .context("the BPF object has no map GENERATED")?;
        let counter: Array<_, u64> = map.try_into().context("read the map GENERATED")?;
        counter.get(&0, 0).context("read the map GENERATED")
    }
}
