//! The kernel's world: the real program, run through `BPF_PROG_TEST_RUN`.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use aya::{
    maps::{Array, HashMap, Map, MapData, MapInfo, PerCpuArray, PerCpuValues},
    programs::{ProgramError, TestRun as _, TestRunOptions, Xdp, XdpMode},
};
use limiter_common::{
    counters::Counters, limits::MIN_SOURCES_PER_CPU, needs::Need, policy::Policy,
    source::SourceKey, state::SourceState,
};
use limiter_lab::Namespace;
use limiter_userspace::kernel::{
    bpffs::PinDir,
    load::{self, Loaded, Options, PROGRAM},
    preflight::possible_cpus,
    tables::NeedWords,
};

use crate::world::{Action, BEGIN, World};

/// The kernel takes no shorter frame in a test run (`bpf_prog_test_run_xdp`, 6.18).
pub const SHORTEST: usize = 14;

/// The program, loaded and not attached.
pub struct Kernel {
    loaded: Loaded,
    maps: Maps,
    aside: Option<Namespace>,
}

/// Handles of our own to the maps, to begin afresh without loading again.
struct Maps {
    policy: Array<MapData, Policy>,
    counters: PerCpuArray<MapData, Counters>,
    needs: Array<MapData, NeedWords>,
    sources: HashMap<MapData, SourceKey, SourceState>,
}

/// How to load the program.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Instances.
    pub interfaces: u32,
    /// Sources that the table holds.
    pub capacity: u32,
    /// Whether the tests set the time.
    pub test_clock: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            interfaces: 1,
            capacity: 8 * least_capacity(),
            test_clock: true,
        }
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
    pub fn frozen(policy: &Policy) -> Self {
        Self::load(Shape::default(), policy)
    }

    /// Loads the program as the daemon does, on the real clock.
    #[must_use]
    pub fn running(policy: &Policy) -> Self {
        let shape = Shape {
            test_clock: false,
            ..Shape::default()
        };
        Self::load(shape, policy)
    }

    /// Loads the program.
    #[must_use]
    pub fn load(shape: Shape, policy: &Policy) -> Self {
        limiter_lab::require_root().unwrap_or_else(|error| panic!("{error:#}"));
        let Shape {
            interfaces,
            capacity,
            test_clock,
        } = shape;
        let options = Options {
            interfaces,
            capacity,
            kernel_log: false,
            test_clock,
        };
        // Only loading needs it.
        let pins = PinDir::take(&pin_dir()).unwrap_or_else(|error| panic!("{error:#}"));
        let loaded = load::load(options, policy, &pins).unwrap_or_else(|error| panic!("{error:#}"));
        drop(pins);
        let maps = Maps::of(xdp(&loaded, 0));
        let mut kernel = Self {
            loaded,
            maps,
            aside: None,
        };
        if test_clock {
            kernel.set_time(BEGIN);
        }
        kernel
    }

    /// Attaches the program to an interface by which no packet ever comes, so that [`Kernel::flood`] starts at once.
    ///
    /// A repeated test run enters the program into the XDP dispatcher and takes it out again, and waits each time until
    /// all CPUs have seen that, some 16 ms (`bpf_prog_change_xdp`, `bpf_dispatcher_update`, 6.18). It does not where the
    /// program stays there for being attached.
    pub fn attach_aside(&mut self) {
        let namespace = Namespace::create("test", "aside").expect("make a network namespace");
        let instance = &mut self.loaded.instances[0];
        let attached = namespace.run(|| Ok(load::program(instance)?.attach("lo", XdpMode::Skb)?));
        attached.expect("attach to the loopback interface of a namespace");
        self.aside = Some(namespace);
    }

    /// The program of an interface.
    #[must_use]
    pub fn program(&self, interface: u32) -> &Xdp {
        xdp(&self.loaded, interface)
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

    /// What was counted on an interface.
    #[must_use]
    pub fn counters_of(&self, interface: u32) -> Counters {
        let tables = &self.loaded.tables;
        tables
            .counters(interface)
            .unwrap_or_else(|error| panic!("{error:#}"))
    }
}

impl World for Kernel {
    fn reset(&mut self, policy: &Policy) {
        let interfaces = self.loaded.instances.len();
        self.maps
            .clear(u32::try_from(interfaces).expect("few interfaces"));
        self.set_policy(policy);
        self.set_time(BEGIN);
    }

    fn set_policy(&mut self, policy: &Policy) {
        let map = &mut self.maps.policy;
        map.set(0, policy, 0).expect("set the policy");
    }

    fn set_time(&mut self, nanos: u64) {
        let clock = &mut self.loaded.tables.clock;
        clock.set(0, nanos, 0).expect("set the test clock");
    }

    fn judge(&mut self, frame: &[u8]) -> Action {
        self.verdict(frame)
    }

    fn counters(&self) -> Counters {
        self.counters_of(0)
    }

    fn source(&self, key: &SourceKey) -> Option<SourceState> {
        let tables = &self.loaded.tables;
        tables
            .source(key)
            .unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn sources(&self) -> BTreeMap<SourceKey, SourceState> {
        let entries = self.maps.sources.iter();
        entries
            .collect::<Result<_, _>>()
            .expect("read the source table")
    }

    fn needs(&self) -> [u64; Need::COUNT] {
        let tables = &self.loaded.tables;
        tables.needs(0).unwrap_or_else(|error| panic!("{error:#}"))
    }
}

fn xdp(loaded: &Loaded, interface: u32) -> &Xdp {
    let program = loaded.instances[interface as usize].program(PROGRAM);
    let program = program.unwrap_or_else(|| panic!("the object has no program {PROGRAM}"));
    program.try_into().expect("the program is XDP")
}

/// A directory of our own on the BPF file system, which takes no dots in names.
fn pin_dir() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    PathBuf::from(format!("/sys/fs/bpf/limiter_test_{process}_{number}"))
}

impl Maps {
    fn of(program: &Xdp) -> Self {
        Self {
            policy: open(program, "POLICY").try_into().expect("an array"),
            counters: open(program, "COUNTERS").try_into().expect("per CPU"),
            needs: open(program, "NEEDS").try_into().expect("an array"),
            sources: open(program, "SOURCES").try_into().expect("a hash map"),
        }
    }

    fn clear(&mut self, interfaces: u32) {
        let keys: Vec<_> = self.sources.keys().collect();
        for key in keys {
            let key = key.expect("read the source table");
            self.sources.remove(&key).expect("forget a source");
        }
        let cpus = possible_cpus().expect("the number of CPUs");
        for interface in 0..interfaces {
            let none = PerCpuValues::try_from(vec![Counters::default(); cpus]);
            self.counters
                .set(interface, none.expect("one for each CPU"), 0)
                .expect("clear the counters");
            self.needs
                .set(interface, [0; Need::COUNT], 0)
                .expect("clear the buckets of needs");
        }
    }
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

fn open(program: &Xdp, name: &str) -> Map {
    let data = MapData::from_id(map_id(program, name)).expect("open a map by its id");
    Map::from_map_data(data).expect("a map that aya knows")
}
