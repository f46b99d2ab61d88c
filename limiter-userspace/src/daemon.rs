//! `limiter run`: loads, attaches, serves, and leaves as it was told.

use std::{
    path::Path,
    process,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use limiter_common::counters::Counters;
use limiter_policy::spec::PolicySpec;
use sd_notify::NotifyState;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
};
use tracing::{info, warn};

use crate::{
    activity,
    audit::What,
    changes::own,
    cli::OnExit,
    control::{self, Control, Machine, PrefixFiles},
    explain::{self, Explanation, Question},
    kernel::{
        attach::{self, Attached, Attachment},
        bpffs::PinDir,
        link,
        load::{self, Loaded, Options, Room},
        pins::{self, Detached},
        plan, preflight,
    },
    observer::Observer,
    peer,
    report::{self, InterfaceStatus, PacketCounts, SourcesStatus, Status, Top, Unloaded},
    serve::{self, MetricsPort},
    settings::{self, PolicySource, Settings},
    signals::{Blocked, Signals, Stop},
    socket, units, upkeep,
    watch::Watch,
};

/// A running daemon.
pub struct Daemon {
    started: Instant,
    control: Arc<Control>,
    observer: Arc<Observer>,
    attachments: Arc<Mutex<Vec<Attachment>>>,
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
    state_dir: &Path,
    signals: Blocked,
) -> Result<()> {
    let Settings {
        interfaces,
        policy: source,
        attach,
        metrics,
        socket_group,
        on_exit,
    } = settings;
    let mut watch = Watch::new(source.file());
    let Wanted {
        spec,
        prefixes,
        interfaces,
        room,
    } = Wanted::read(&source, interfaces, &mut watch)?;
    preflight::check(room)?;
    let mut signals = Signals::listen(signals)?;
    let interfaces = plan::find(&interfaces)?;
    // Who has the pins may replace a stale socket; nobody else, or two could take each other's for stale.
    let pin_dir = Arc::new(PinDir::take(pin_dir)?);
    let (listener, _socket_file) = socket::bind(socket, socket_group.as_deref()).await?;
    let metrics = match metrics {
        Some(address) => {
            let port = MetricsPort::bind(address).await?;
            info!(address = %port.address()?, "serving metrics");
            Some(port)
        }
        None => None,
    };
    plan::check_free(&interfaces, attach, pin_dir.path())?;

    let options = Options {
        interfaces: u32::try_from(interfaces.len())?,
        room,
        test_clock: false,
    };
    let memory = units::bytes(preflight::table_bytes(room));
    let limits = spec.limits.len();
    info!(
        policy = source.name(),
        limits,
        capacity = room.sources,
        memory,
        "loading"
    );
    let Loaded {
        mut instances,
        tables,
    } = load::load(options, &pin_dir)?;
    let attachments = Arc::new(Mutex::new(Vec::new()));
    let machine = Machine::new(&pin_dir, Arc::clone(&attachments), options.interfaces);
    let control = Arc::new(Control::start(
        (spec, prefixes),
        source,
        (Arc::new(tables), room),
        machine,
        state_dir,
    )?);
    // Undone if anything fails from here on until the daemon serves.
    let attached = attach::attach(interfaces, &mut instances, attach, pin_dir.path())?;
    // The links hold the programs from here on, and those the maps.
    drop(instances);
    say_attached(&attached);
    warn_of_others(&attached, pin_dir.path())?;

    let (unload, mut unload_requests) = mpsc::channel(1);
    let daemon = Arc::new(Daemon {
        started: Instant::now(),
        control: Arc::clone(&control),
        observer: Arc::new(Observer::new()),
        attachments,
        measuring: tokio::sync::Mutex::new(()),
        unload,
    });
    daemon
        .observer
        .start(control.clone())
        .context("cannot start the observer's thread")?;
    *daemon.attachments() = attached.keep();
    tokio::spawn(serve::control(listener, Arc::clone(&daemon)));
    if let Some(metrics) = metrics {
        tokio::spawn(metrics.serve(Arc::clone(&daemon)));
    }
    tokio::spawn(upkeep::expire(Arc::clone(&control)));
    tokio::spawn(upkeep::watch(Arc::clone(&control), watch));
    control.record(
        &peer::this_process(),
        What::Policy,
        Value::Null,
        json!(control.lines()),
        Some("start".to_owned()),
    );
    notify(&[NotifyState::Ready]);
    info!(socket = %socket.display(), "ready");

    let leave = until_told(&mut signals, &mut unload_requests, on_exit, &control).await;
    notify(&[NotifyState::Stopping]);
    daemon.leave(leave, &pin_dir).await
}

/// Takes up the policy at each SIGHUP, until something ends the daemon.
async fn until_told(
    signals: &mut Signals,
    unload_requests: &mut mpsc::Receiver<oneshot::Sender<Unloaded>>,
    on_exit: OnExit,
    control: &Arc<Control>,
) -> Leave {
    loop {
        tokio::select! {
            signal = signals.next() => match (signal, on_exit) {
                (Stop::Hangup, _) => upkeep::hang_up(control).await,
                (Stop::Terminate, OnExit::Keep) => return Leave::Keep,
                (Stop::Interrupt, _) | (Stop::Terminate, OnExit::Detach) => return Leave::Detach(None),
            },
            Some(reply) = unload_requests.recv() => return Leave::Detach(Some(reply)),
        }
    }
}

/// What is wanted of the daemon, read and checked before the kernel is touched.
struct Wanted {
    spec: PolicySpec,
    prefixes: PrefixFiles,
    interfaces: Vec<String>,
    room: Room,
}

impl Wanted {
    /// `interfaces` are those named on the command line. Files are watched from before they are read.
    fn read(source: &PolicySource, interfaces: Vec<String>, watch: &mut Watch) -> Result<Self> {
        let spec = match source {
            PolicySource::Flags(spec) => spec.as_ref().clone(),
            PolicySource::File(path) => control::read(path)?.spec,
        };
        watch.set(control::files(source, &spec));
        let interfaces = if interfaces.is_empty() {
            settings::interfaces(spec.interfaces.clone())?
        } else {
            interfaces
        };
        let guarded = own::guarded().context("cannot tell this host's own addresses")?;
        let prefixes = PrefixFiles::read(&spec, &PrefixFiles::default(), &guarded)
            .map_err(|reason| anyhow!(reason))?;
        let room = control::first_room(&spec, source);
        Ok(Self {
            spec,
            prefixes,
            interfaces,
            room,
        })
    }
}

fn say_attached(attached: &Attached) {
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
    /// What changes the policy.
    #[must_use]
    pub const fn control(&self) -> &Arc<Control> {
        &self.control
    }

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
            let counters = self.control.engine().counters(attachment.slot)?;
            total.add(&counters);
            interfaces.push(interface_status(attachment, &counters));
        }
        let survey = self.observer.latest();
        let room = self.control.room();
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: !interfaces.is_empty() && interfaces.iter().all(|interface| interface.attached),
            pid: process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            policy: self.control.policy_status(),
            interfaces,
            limits: self.control.limits_status(&total),
            sources: SourcesStatus {
                capacity: room.sources,
                tracked: survey.walk.entries,
                tracked_age_s: survey.at.elapsed().as_secs(),
                tracked_complete: survey.walk.complete,
                memory_bytes: preflight::table_bytes(room),
                events: report::table_events(&total),
            },
            lists: self.control.lists_status(),
            overrides: self.control.overrides().overrides,
            bans: self.control.bans_counted(),
            audit_lost: self.control.audit_lost(),
        })
    }

    /// What `limiter explain` shows.
    ///
    /// # Errors
    ///
    /// Where the maps cannot be read.
    pub fn explain(&self, question: &Question) -> Result<Explanation> {
        explain::explain(question, &self.control)
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
                let tables = self.control.tables();
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
            mode: self.control.mode().to_owned(),
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
            match self.control.engine().counters(*slot) {
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

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("cannot notify the service manager: {error}");
    }
}
