//! The kernel's world: the real program, run through `BPF_PROG_TEST_RUN`.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use aya::{
    Ebpf,
    maps::MapInfo,
    programs::{ProgramError, TestRun as _, TestRunOptions, Xdp, XdpMode},
};
use limiter_common::{
    counters::Counters,
    judge::LogKey,
    limits::{MIN_SOURCES_PER_CPU, SHARED_SLOTS},
    meter::MeterLog,
    needs::Need,
    source::SourceKey,
    standing::Ban,
    state::Slot,
};
use limiter_lab::Namespace;
use limiter_policy::{compile::Compiled, host::SourceCopy, identities::Identities};
use limiter_userspace::kernel::{
    apply::Enforcer,
    bpffs::PinDir,
    load::{self, Loaded, Options, PROGRAM, Room},
    monotonic_now,
    preflight::possible_cpus,
    sources,
    tables::Tables,
};

use crate::{
    model::compiled,
    policies::Rules,
    world::{Action, BEGIN, World, shortened},
};

/// The kernel takes no shorter frame in a test run (`bpf_prog_test_run_xdp`, 6.18).
pub const SHORTEST: usize = 14;

/// The program, loaded and not attached.
pub struct Kernel {
    instances: Vec<Ebpf>,
    tables: Arc<Tables>,
    /// None only while the tables are cleared.
    enforcer: Option<Enforcer>,
    identities: Identities,
    slots: u32,
    /// Where the clock stands; `None` if it runs.
    time: Option<u64>,
    aside: Option<Namespace>,
}

/// How to load the program.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Instances.
    pub interfaces: u32,
    /// Room in the tables.
    pub room: Room,
    /// Whether the tests set the time.
    pub test_clock: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self::of_sources(8 * least_capacity())
    }
}

impl Shape {
    /// Room for so many sources, and one limit for each.
    #[must_use]
    pub fn of_sources(sources: u32) -> Self {
        Self {
            interfaces: 1,
            room: Room {
                sources,
                slots: 1,
                logs: least_capacity(),
                bans: 1024,
            },
            test_clock: true,
        }
    }

    /// The same with room for so many limits per source.
    #[must_use]
    pub fn with_slots(mut self, slots: u32) -> Self {
        self.room.slots = slots;
        self
    }
}

/// The smallest table that the daemon would make on this machine.
#[must_use]
pub fn least_capacity() -> u32 {
    let cpus = possible_cpus().expect("the number of CPUs");
    MIN_SOURCES_PER_CPU * u32::try_from(cpus).expect("fewer than 2^32 CPUs")
}

impl Kernel {
    /// Loads the program; its clock is set by [`World::set_time`] and stands still meanwhile.
    #[must_use]
    pub fn frozen(rules: &Rules) -> Self {
        Self::load(Shape::default(), rules)
    }

    /// Loads the program as the daemon does, on the real clock.
    #[must_use]
    pub fn running(rules: &Rules) -> Self {
        let shape = Shape {
            test_clock: false,
            ..Shape::default()
        };
        Self::load(shape, rules)
    }

    /// Loads the program.
    #[must_use]
    pub fn load(shape: Shape, rules: &Rules) -> Self {
        limiter_lab::require_root().unwrap_or_else(|error| panic!("{error:#}"));
        let Shape {
            interfaces,
            room,
            test_clock,
        } = shape;
        let options = Options {
            interfaces,
            room,
            test_clock,
        };
        // Only loading needs it.
        let pins = PinDir::take(&pin_dir()).unwrap_or_else(|error| panic!("{error:#}"));
        let loaded = load::load(options, &pins).unwrap_or_else(|error| panic!("{error:#}"));
        drop(pins);
        let Loaded { instances, tables } = loaded;
        let tables = Arc::new(tables);
        let mut kernel = Self {
            instances,
            enforcer: Some(Enforcer::new(Arc::clone(&tables))),
            tables,
            identities: Identities::default(),
            slots: room.slots,
            time: None,
            aside: None,
        };
        if test_clock {
            kernel.set_time(BEGIN);
        }
        kernel.set_policy(rules);
        kernel
    }

    /// What keeps the maps as the policy says.
    #[must_use]
    pub fn enforcer(&self) -> &Enforcer {
        self.enforcer.as_ref().expect("an enforcer")
    }

    /// Compiles rules, for [`Enforcer::apply`].
    pub fn compile(&mut self, rules: &Rules) -> Compiled {
        let now = self.time.unwrap_or_else(monotonic_now);
        let compiled = compiled(rules, &mut self.identities, now);
        assert!(
            compiled.slots() <= self.slots,
            "the table has too few slots"
        );
        compiled
    }

    /// Clears what verdicts have left, but not the policy.
    fn clear(&mut self) {
        // Whoever enforced the policy before holds on to the tables, and knows what was in force.
        self.enforcer = None;
        let tables = Arc::get_mut(&mut self.tables).expect("nobody else has the tables");
        let cpus = possible_cpus().expect("the number of CPUs");
        for interface in (0..).take(self.instances.len()) {
            tables.clear_counters(interface, cpus).expect("no counts");
            tables.set_needs(interface, &[0; Need::COUNT]).expect("set");
        }
        let mut known = Vec::new();
        tables
            .sources
            .walk_all(|key, _| known.push(key))
            .expect("read the source table");
        for key in known {
            tables.sources.remove(&key).expect("forget a source");
        }
        let shared: Vec<u32> = (0..SHARED_SLOTS).collect();
        let zeros = vec![Slot::default(); shared.len()];
        tables.shared.set_all(&shared, &zeros).expect("no state");
        for (key, _) in tables.logs.entries().expect("read the logs") {
            tables.logs.remove(&key).expect("forget a log");
        }
        for (key, _) in tables.bans.entries().expect("read the bans") {
            tables.bans.remove(&key).expect("forget a ban");
        }
        self.enforcer = Some(Enforcer::new(Arc::clone(&self.tables)));
        self.identities = Identities::default();
    }

    /// Attaches the program to an interface by which no packet ever comes, so that [`Kernel::flood`] starts at once.
    ///
    /// A repeated test run enters the program into the XDP dispatcher and takes it out again, and waits each time until
    /// all CPUs have seen that, some 16 ms (`bpf_prog_change_xdp`, `bpf_dispatcher_update`, 6.18). It does not where the
    /// program stays there for being attached.
    pub fn attach_aside(&mut self) {
        let namespace = Namespace::create("test", "aside").expect("make a network namespace");
        let instance = &mut self.instances[0];
        let attached = namespace.run(|| Ok(load::program(instance)?.attach("lo", XdpMode::Skb)?));
        attached.expect("attach to the loopback interface of a namespace");
        self.aside = Some(namespace);
    }

    /// The program of an interface.
    #[must_use]
    pub fn program(&self, interface: u32) -> &Xdp {
        let program = self.instances[interface as usize].program(PROGRAM);
        let program = program.unwrap_or_else(|| panic!("the object has no program {PROGRAM}"));
        program.try_into().expect("the program is XDP")
    }

    /// Judges a frame, as [`World::judge`] does, on whichever CPU this is.
    #[must_use]
    pub fn verdict(&self, frame: &[u8]) -> Action {
        self.judge_repeatedly(0, frame, 1)
    }

    /// Judges a frame so many times.
    pub fn flood(&self, frame: &[u8], times: u32) {
        self.flood_on(0, frame, times);
    }

    /// Judges a frame so many times, received on an interface.
    pub fn flood_on(&self, interface: u32, frame: &[u8], times: u32) {
        let _last = self.judge_repeatedly(interface, frame, times);
    }

    fn judge_repeatedly(&self, interface: u32, frame: &[u8], times: u32) -> Action {
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: times,
            ..TestRunOptions::default()
        };
        self.run(interface, options)
            .unwrap_or_else(|error| panic!("cannot run {} bytes: {error}", frame.len()))
    }

    /// Judges a frame of which only the first `linear` bytes can be read directly. `None` where the kernel cannot split
    /// a frame so.
    ///
    /// Since 6.18 ("bpf: Support specifying linear xdp packet data size for `BPF_PROG_TEST_RUN`").
    #[must_use]
    pub fn judge_split(&self, frame: &[u8], linear: usize) -> Option<Action> {
        let linear = u32::try_from(linear).expect("a frame's length fits");
        // `struct xdp_md`: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let context = [0, linear, 0, 0, 0, 0].map(u32::to_ne_bytes).concat();
        let options = TestRunOptions {
            data_in: Some(frame),
            ctx_in: Some(&context),
            ..TestRunOptions::default()
        };
        match self.run(0, options) {
            Ok(action) => Some(action),
            Err(ProgramError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::EINVAL) =>
            {
                None
            }
            Err(error) => panic!("cannot run {} bytes: {error}", frame.len()),
        }
    }

    fn run(&self, interface: u32, options: TestRunOptions<'_>) -> Result<Action, ProgramError> {
        const XDP_DROP: u32 = 1;
        const XDP_PASS: u32 = 2;
        match self.program(interface).test_run(options)?.return_value {
            XDP_PASS => Ok(Action::Pass),
            XDP_DROP => Ok(Action::Drop),
            other => panic!("the program returned {other}, neither XDP_PASS nor XDP_DROP"),
        }
    }

    /// The sliding logs.
    #[must_use]
    pub fn logs(&self) -> Vec<(LogKey, MeterLog)> {
        self.tables.logs.entries().expect("read the logs")
    }

    /// Writes the time that a load with the test clock takes from a map.
    pub fn set_clock(&self, nanos: u64) {
        let clock = &self.tables.clock;
        clock.set(&0, &nanos).expect("set the test clock");
    }

    /// What was counted on an interface.
    #[must_use]
    pub fn counters_of(&self, interface: u32) -> Counters {
        self.tables
            .counters(interface)
            .unwrap_or_else(|error| panic!("{error:#}"))
    }
}

impl World for Kernel {
    fn reset(&mut self, rules: &Rules) {
        self.clear();
        if self.time.is_some() {
            self.set_time(BEGIN);
        }
        self.set_policy(rules);
    }

    fn set_policy(&mut self, rules: &Rules) {
        let compiled = self.compile(rules);
        self.enforcer()
            .apply(compiled, rules.spec.monitor)
            .unwrap_or_else(|error| panic!("{error:#}"));
    }

    fn set_monitor(&mut self, monitor: bool) {
        self.enforcer().set_monitor(monitor);
    }

    fn set_time(&mut self, nanos: u64) {
        self.time = Some(nanos);
        self.set_clock(nanos);
    }

    fn judge(&mut self, frame: &[u8]) -> Action {
        self.verdict(frame)
    }

    fn counters(&self) -> Counters {
        self.counters_of(0)
    }

    fn source(&self, key: &SourceKey) -> Option<SourceCopy> {
        let source = self.tables.sources.get(key);
        source
            .unwrap_or_else(|error| panic!("{error:#}"))
            .map(copied)
    }

    fn sources(&self) -> BTreeMap<SourceKey, SourceCopy> {
        let mut found = BTreeMap::new();
        self.tables
            .sources
            .walk_all(|key, source| {
                found.insert(key, copied(source));
            })
            .unwrap_or_else(|error| panic!("{error:#}"));
        found
    }

    fn shared(&self, slot: u32) -> Slot {
        let state = self.tables.shared.get(&slot).expect("read the table");
        state.expect("a slot")
    }

    fn bans(&self) -> BTreeMap<SourceKey, Ban> {
        let bans = self.tables.bans.entries().expect("read the bans");
        bans.into_iter().collect()
    }

    fn needs(&self) -> [u64; Need::COUNT] {
        self.tables
            .needs(0)
            .unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn compiled(&self) -> Compiled {
        let (compiled, _) = self.enforcer().in_force().expect("a policy");
        Compiled::clone(&compiled)
    }
}

fn copied(sources::SourceCopy { head, slots }: sources::SourceCopy) -> SourceCopy {
    shortened(SourceCopy { head, slots })
}

/// A directory of our own on the BPF file system, which takes no dots in names.
fn pin_dir() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    PathBuf::from(format!("/sys/fs/bpf/limiter_test_{process}_{number}"))
}

/// The id of the map of that name that a program uses.
#[must_use]
pub fn map_id(program: &Xdp, name: &str) -> u32 {
    let info = program.info().expect("what the kernel knows of a program");
    let ids = info.map_ids().expect("its maps").unwrap_or_default();
    ids.into_iter()
        .find(|id| MapInfo::from_id(*id).is_ok_and(|map| map.name_as_str() == Some(name)))
        .unwrap_or_else(|| panic!("the program uses no map {name}"))
}
