//! Loading: one instance of the program per interface, all on the same maps.

use std::{fs, os::fd::AsFd as _, path::Path};

use anyhow::{Context as _, Result, anyhow};
use aya::{Ebpf, EbpfLoader, VerifierLogLevel, programs::Xdp};
use limiter_common::{policy::POLICIES, source::SourceKey, state::value_size};

use super::{bpffs::PinDir, object, prefix_map::MAX_PREFIXES, preflight, sys, tables::Tables};

/// The program's name.
pub const PROGRAM: &str = "limiter";

/// Programs and their maps, loaded and filled, not yet attached.
pub struct Loaded {
    /// One object per interface, in the order of the interfaces.
    pub instances: Vec<Ebpf>,
    /// The maps they share.
    pub tables: Tables,
}

/// How to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Instances.
    pub interfaces: u32,
    /// Room in the maps.
    pub room: Room,
    /// Whether the time comes from a map.
    pub test_clock: bool,
}

/// Room in the maps that a policy decides. Another room needs other maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Sources that the table holds.
    pub sources: u32,
    /// Limits whose state lies with a source, rounded up as [`slots_for`](limiter_common::state::slots_for) does.
    pub slots: u32,
    /// Sliding logs.
    pub logs: u32,
    /// Bans that limits have made.
    pub bans: u32,
}

/// Creates the maps, and loads the program once per interface. The maps hold no policy yet.
///
/// # Errors
///
/// Where the kernel refuses, its text and what that usually means. Nothing is left behind then.
pub fn load(options: Options, pin_dir: &PinDir) -> Result<Loaded> {
    let object = object::bytes()?;
    let sharing = SharedPins::create(pin_dir)?;
    let pins = sharing.0.shared();
    create_sources(options.room, &pins)?;
    let mut instances = Vec::new();
    for interface in 0..options.interfaces {
        instances.push(instance(object, options, interface, &pins)?);
    }
    let first = instances.first_mut().context("no interface given")?;
    let tables = Tables::open(first, &pins, options.room.slots)?;
    for ebpf in &mut instances {
        program(ebpf)?.load().map_err(|error| load_error(&error))?;
    }
    Ok(Loaded { instances, tables })
}

/// Makes the source table, whose values are as long as the policy needs, where the instances find it.
fn create_sources(room: Room, pins: &Path) -> Result<()> {
    // `enum bpf_map_type` (include/uapi/linux/bpf.h).
    const LRU_HASH: u32 = 9;
    let key_size = u32::try_from(size_of::<SourceKey>())?;
    let sizes = (key_size, value_size(room.slots));
    let fd = sys::map::create_map(LRU_HASH, sizes, room.sources, "SOURCES")
        .context("cannot create the source table")?;
    sys::link::pin(fd.as_fd(), &pins.join("SOURCES")).context("cannot pin the source table")
}

fn instance(object: &[u8], options: Options, interface: u32, pins: &Path) -> Result<Ebpf> {
    let Options {
        room, test_clock, ..
    } = options;
    let test_clock = u8::from(test_clock);
    let mut loader = EbpfLoader::new();
    for set in 0..POLICIES {
        loader
            .map_max_entries(SETS[set as usize].0, MAX_PREFIXES)
            .map_max_entries(SETS[set as usize].1, MAX_PREFIXES);
    }
    loader
        .btf(None)
        .default_map_pin_directory(pins)
        .map_max_entries("SOURCES", room.sources)
        .map_max_entries("LOGS", room.logs)
        .map_max_entries("BANS", room.bans)
        .override_global("INTERFACE", &interface, true)
        .override_global("TEST_CLOCK", &test_clock, true)
        .override_global("SLOTS", &room.slots, true)
        .verifier_log_level(VerifierLogLevel::STATS)
        .load(object)
        .map_err(|error| anyhow!(error).context("cannot create the maps"))
}

/// The maps of class and list sets.
const SETS: [(&str, &str); POLICIES as usize] = [
    ("CLASSES_0", "LISTS_0"),
    ("CLASSES_1", "LISTS_1"),
    ("CLASSES_2", "LISTS_2"),
];

/// The program of an instance.
///
/// # Errors
///
/// Where the object holds none, which is a fault of the build.
pub fn program(ebpf: &mut Ebpf) -> Result<&mut Xdp> {
    ebpf.program_mut(PROGRAM)
        .with_context(|| format!("the object has no program {PROGRAM}"))?
        .try_into()
        .context("the program is not XDP")
}

/// One line: the errno and the verifier's last words.
fn load_error(error: &aya::programs::ProgramError) -> anyhow::Error {
    let reason = match error {
        aya::programs::ProgramError::LoadError { io_error, .. }
            if io_error.raw_os_error() == Some(libc::EMFILE) =>
        {
            return anyhow!("the program cannot be loaded: {io_error}");
        }
        aya::programs::ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            let last = log
                .lines()
                .rev()
                .find(|line| !is_statistics(line))
                .unwrap_or_default();
            format!("{io_error}: {last}")
        }
        other => other.to_string(),
    };
    anyhow!(
        "the kernel does not load the program: {reason}; {}",
        preflight::load_hint()
    )
}

fn is_statistics(line: &str) -> bool {
    ["verification time", "stack depth", "processed"]
        .iter()
        .any(|start| line.starts_with(start))
        || line.is_empty()
}

/// Pins by which the instances find each other's maps; gone when loading is over.
struct SharedPins<'a>(&'a PinDir);

impl<'a> SharedPins<'a> {
    fn create(pin_dir: &'a PinDir) -> Result<Self> {
        // Of a load that was killed half-way.
        pin_dir.remove_shared();
        let path = pin_dir.shared();
        fs::create_dir(&path).with_context(|| format!("{}: cannot be made", path.display()))?;
        Ok(Self(pin_dir))
    }
}

impl Drop for SharedPins<'_> {
    fn drop(&mut self) {
        self.0.remove_shared();
    }
}
