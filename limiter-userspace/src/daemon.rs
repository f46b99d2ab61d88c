//! `limiter run`: loads, attaches, serves, and leaves as it was told.

use std::{
    path::Path,
    process,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use aya::Ebpf;
use aya_log::EbpfLogger;
use limiter_common::{counters::Counters, policy::Policy};
use sd_notify::NotifyState;
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
};
use tracing::{info, warn};

use crate::{
    activity,
    cli::OnExit,
    explain::{self, Explanation, LIMIT_NAME, Question},
    kernel::{
        attach::{self, Attached, Attachment},
        bpffs::PinDir,
        link,
        load::{self, Loaded, Options},
        pins::{self, Detached},
        plan, preflight,
        tables::Tables,
    },
    observer::Observer,
    report::{
        self, InterfaceStatus, LimitStatus, PacketCounts, PolicyStatus, SourcesStatus, Status, Top,
        Unloaded,
    },
    serve::{self, MetricsPort},
    settings::{PolicySpec, Settings},
    signals::{Blocked, Signals, Stop},
    socket, units,
};

/// The policy of the flags is the first, and so far the only one.
const GENERATION: u32 = 1;

/// A running daemon.
pub struct Daemon {
    started: Instant,
    spec: PolicySpec,
    policy: Policy,
    capacity: u32,
    tables: Arc<Tables>,
    observer: Arc<Observer>,
    attachments: Mutex<Vec<Attachment>>,
    measuring: tokio::sync::Mutex<()>,
    unload: mpsc::Sender<oneshot::Sender<Unloaded>>,
}

/// Runs until a signal or `limiter unload`.
///
/// # Errors
///
/// What could not be set up; nothing is left behind then.
pub async fn run(
    settings: Settings,
    socket: &Path,
    pin_dir: &Path,
    signals: Blocked,
) -> Result<()> {
    let Settings {
        interfaces,
        policy: spec,
        capacity,
        attach,
        metrics,
        socket_group,
        on_exit,
        kernel_log,
    } = settings;
    preflight::check(capacity)?;
    let mut signals = Signals::listen(signals)?;
    let interfaces = plan::find(&interfaces)?;
    // Who has the pins may replace a stale socket; nobody else, or two could take each other's for stale.
    let pin_dir = PinDir::take(pin_dir)?;
    let (control, _socket_file) = socket::bind(socket, socket_group.as_deref()).await?;
    let metrics = match metrics {
        Some(address) => {
            let port = MetricsPort::bind(address).await?;
            info!(address = %port.address()?, "serving metrics");
            Some(port)
        }
        None => None,
    };
    plan::check_free(&interfaces, attach, pin_dir.path())?;

    let policy = spec.compile(GENERATION);
    let options = Options {
        interfaces: u32::try_from(interfaces.len())?,
        capacity,
        kernel_log,
        test_clock: false,
    };
    let memory = units::bytes(preflight::table_bytes(capacity));
    info!(rate = %spec.rate, burst = %spec.burst, mode = spec.mode(), capacity, memory, "loading");
    let Loaded {
        mut instances,
        tables,
    } = load::load(options, &policy, &pin_dir)?;
    // Undone if anything fails from here on until the daemon serves.
    let attached = attach::attach(interfaces, &mut instances, attach, pin_dir.path())?;
    for Attachment {
        interface,
        program,
        mode,
        ..
    } in attached.iter()
    {
        info!(
            interface = interface.name,
            ifindex = interface.index,
            program,
            mode = mode.name(),
            held_by = "link",
            "attached"
        );
    }

    warn_of_others(&attached, pin_dir.path())?;

    let (unload, mut unload_requests) = mpsc::channel(1);
    let daemon = Arc::new(Daemon {
        started: Instant::now(),
        spec,
        policy,
        capacity,
        tables: Arc::new(tables),
        observer: Arc::new(Observer::new(capacity)),
        attachments: Mutex::new(Vec::new()),
        measuring: tokio::sync::Mutex::new(()),
        unload,
    });
    daemon
        .observer
        .start(Arc::clone(&daemon.tables))
        .context("cannot start the observer's thread")?;
    if kernel_log {
        for ebpf in &mut instances {
            forward_kernel_log(ebpf)?;
        }
    }
    *daemon.attachments() = attached.keep();
    tokio::spawn(serve::control(control, Arc::clone(&daemon)));
    if let Some(metrics) = metrics {
        tokio::spawn(metrics.serve(Arc::clone(&daemon)));
    }
    notify(&[NotifyState::Ready]);
    info!(socket = %socket.display(), "ready");

    let leave = tokio::select! {
        signal = signals.next() => match (signal, on_exit) {
            (Stop::Terminate, OnExit::Keep) => Leave::Keep,
            (Stop::Interrupt, _) | (Stop::Terminate, OnExit::Detach) => Leave::Detach(None),
        },
        Some(reply) = unload_requests.recv() => Leave::Detach(Some(reply)),
    };
    notify(&[NotifyState::Stopping]);
    daemon.leave(leave, &pin_dir).await
}

/// Names the interfaces that an earlier daemon has left limited and this one does not serve.
fn warn_of_others(attached: &Attached, pin_dir: &Path) -> Result<()> {
    for pinned in pins::links(pin_dir)? {
        if attached
            .iter()
            .any(|attachment| attachment.interface.index == pinned.interface)
        {
            continue;
        }
        match pinned.enforces_on() {
            Ok(Some(interface)) => warn!(
                interface,
                "still limited by the program of an earlier daemon, not served by this one; `limiter unload` ends that, too"
            ),
            // The shell of a link whose interface is gone.
            Ok(None) => link::unpin(&pinned.path)?,
            Err(error) => warn!("{error:#}"),
        }
    }
    Ok(())
}

/// How to end.
enum Leave {
    Detach(Option<oneshot::Sender<Unloaded>>),
    Keep,
}

impl Daemon {
    /// What `limiter status` shows.
    ///
    /// # Errors
    ///
    /// Where the maps cannot be read.
    pub fn status(&self) -> Result<Status> {
        let attachments = self.attachments();
        let mut total = Counters::default();
        let mut interfaces = Vec::new();
        for attachment in attachments.iter() {
            let counters = self.tables.counters(attachment.slot)?;
            total.add(&counters);
            interfaces.push(interface_status(attachment, &counters));
        }
        let survey = self.observer.latest();
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: !interfaces.is_empty() && interfaces.iter().all(|interface| interface.attached),
            pid: process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            policy: PolicyStatus {
                generation: self.policy.generation,
                source: "flags".to_owned(),
                mode: self.spec.mode().to_owned(),
                ipv4_prefix: self.spec.ipv4_prefix,
                ipv6_prefix: self.spec.ipv6_prefix,
            },
            interfaces,
            limits: vec![LimitStatus {
                name: LIMIT_NAME.to_owned(),
                mode: self.spec.mode().to_owned(),
                per: "source".to_owned(),
                rate: self.spec.rate.to_string(),
                burst: self.spec.burst.to_string(),
                passed: total.limit.passed,
                dropped: total.limit.dropped,
                would_drop: total.limit.would_drop,
            }],
            sources: SourcesStatus {
                capacity: self.capacity,
                tracked: survey.walk.entries,
                tracked_age_s: survey.at.elapsed().as_secs(),
                tracked_complete: survey.walk.complete,
                memory_bytes: preflight::table_bytes(self.capacity),
                events: report::table_events(&total),
            },
        })
    }

    /// What `limiter explain` shows.
    ///
    /// # Errors
    ///
    /// Where the maps cannot be read.
    pub fn explain(&self, question: &Question) -> Result<Explanation> {
        explain::explain(question, &self.spec, &self.policy, &self.tables)
    }

    /// What `limiter top` shows: who sends most in `interval`, or without one, who has sent most so far.
    ///
    /// # Errors
    ///
    /// Where the maps cannot be read.
    pub async fn top(&self, interval: Option<Duration>) -> Result<Top> {
        let survey = self.observer.latest();
        let (ranked, age_s) = match interval {
            Some(interval) => {
                // One at a time, whatever is asked.
                let _alone = self.measuring.lock().await;
                let tables = Arc::clone(&self.tables);
                let tracked = survey.walk.entries;
                let measure = move || activity::measure(&tables, interval, tracked);
                let ranked = spawn_blocking(measure).await.context("cannot measure")??;
                (ranked, 0)
            }
            None => (survey.ranked.clone(), survey.at.elapsed().as_secs()),
        };
        let (busiest, most_dropped) = ranked.shown();
        Ok(Top {
            age_s,
            mode: self.spec.mode().to_owned(),
            interval_ms: interval.and_then(|interval| interval.as_millis().try_into().ok()),
            busiest,
            most_dropped,
        })
    }

    /// Ends enforcement and the daemon; answers when enforcement has ended.
    ///
    /// # Errors
    ///
    /// Where the daemon is ending already.
    pub async fn unload(&self) -> Result<Unloaded> {
        let (reply, done) = oneshot::channel();
        let ending = || anyhow!("the daemon is ending already");
        self.unload
            .try_send(reply)
            .map_err(|_full_or_closed: mpsc::error::TrySendError<_>| ending())?;
        done.await
            .map_err(|_closed: oneshot::error::RecvError| ending())
    }

    fn attachments(&self) -> std::sync::MutexGuard<'_, Vec<Attachment>> {
        self.attachments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn leave(&self, leave: Leave, pin_dir: &PinDir) -> Result<()> {
        let attachments = std::mem::take(&mut *self.attachments());
        let places: Vec<(String, u32)> = attachments
            .iter()
            .map(|attachment| (attachment.interface.name.clone(), attachment.slot))
            .collect();
        match leave {
            Leave::Keep => {
                let kept = attachments.into_iter().map(Attachment::keep);
                let failed: Vec<_> = kept.filter_map(Result::err).collect();
                self.say_what_was_counted(&places);
                if let Some(error) = failed.into_iter().next() {
                    return Err(error.context("enforcement does not go on everywhere"));
                }
                info!("enforcement goes on in the kernel; `limiter unload` ends it");
                Ok(())
            }
            Leave::Detach(reply) => {
                let mut unloaded = detach(attachments);
                self.say_what_was_counted(&places);
                if let Some(reply) = reply {
                    // Everything of ours includes what an earlier daemon has left.
                    let Detached { interfaces, failed } = pins::detach_all(pin_dir)?;
                    unloaded.interfaces.extend(interfaces);
                    unloaded.failed.extend(failed);
                    if reply.send(unloaded.clone()).is_ok() {
                        // The answer is on its way through a connection of its own.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
                if !unloaded.failed.is_empty() {
                    bail!(
                        "enforcement may go on: {}; try `limiter unload`",
                        unloaded.failed.join("; ")
                    );
                }
                Ok(())
            }
        }
    }

    fn say_what_was_counted(&self, places: &[(String, u32)]) {
        for (interface, slot) in places {
            match self.tables.counters(*slot) {
                Ok(counters) => info!(
                    interface,
                    seen = counters.seen,
                    passed = counters.passed,
                    dropped = counters.dropped_total(),
                    would_drop = counters.would_drop.iter().sum::<u64>(),
                    "counted"
                ),
                Err(error) => warn!("{error:#}"),
            }
        }
    }
}

/// Ends enforcement on each interface, as far as that is possible.
fn detach(attachments: Vec<Attachment>) -> Unloaded {
    let mut unloaded = Unloaded::default();
    for attachment in attachments {
        let name = attachment.interface.name.clone();
        match attachment.detach() {
            Ok(()) => {
                info!("detached {name}");
                unloaded.interfaces.push(name);
            }
            Err(error) => unloaded.failed.push(format!("{error:#}")),
        }
    }
    unloaded
}

fn interface_status(attachment: &Attachment, counters: &Counters) -> InterfaceStatus {
    InterfaceStatus {
        name: attachment.interface.name.clone(),
        ifindex: attachment.interface.index,
        attached: attachment.is_attached(),
        attach_mode: attachment.mode.name().to_owned(),
        attach_type: "link".to_owned(),
        program_id: attachment.program,
        packets: PacketCounts::from(counters),
        host_needs: report::needs(counters),
        odd: report::odd(counters),
    }
}

/// Forwards what the program logs to the daemon's log, once a second: the events are rare.
fn forward_kernel_log(ebpf: &mut Ebpf) -> Result<()> {
    let mut logger = EbpfLogger::init(ebpf).context("cannot read the program's log")?;
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            logger.flush();
        }
    });
    Ok(())
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("cannot notify the service manager: {error}");
    }
}
