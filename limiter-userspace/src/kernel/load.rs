//! Loading: one instance of the program per interface, all on the same maps.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, anyhow};
use aya::{Ebpf, EbpfLoader, VerifierLogLevel, programs::Xdp};
use aya_log::LEVEL;
use limiter_common::policy::Policy;

use super::{bpffs::PinDir, object, preflight, tables::Tables};

/// The program's name.
pub const PROGRAM: &str = "limiter";

/// Programs and their maps, loaded and filled, not yet attached.
pub struct Loaded {
    /// One object per interface, in the order of the interfaces.
    pub instances: Vec<Ebpf>,
    /// The maps they share.
    pub tables: Tables,
}

/// Room for what the program logs, in bytes; a ring buffer is at least a page.
const LOG_BYTES: u32 = 1 << 17;
const NO_LOG_BYTES: u32 = 1 << 12;

/// How to load.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Instances.
    pub interfaces: u32,
    /// Sources that the table holds.
    pub capacity: u32,
    /// Whether the program may log rare events.
    pub kernel_log: bool,
    /// Whether the time comes from a map.
    pub test_clock: bool,
}

/// Creates the maps, writes the policy, and loads the program once per interface.
///
/// # Errors
///
/// Where the kernel refuses, its text and what that usually means. Nothing is left behind then.
pub fn load(options: Options, policy: &Policy, pin_dir: &PinDir) -> Result<Loaded> {
    let object = object::bytes()?;
    let sharing = SharedPins::create(pin_dir)?;
    let mut instances = Vec::new();
    for interface in 0..options.interfaces {
        instances.push(instance(object, options, interface, &sharing.0.shared())?);
    }
    let first = instances.first_mut().context("no interface given")?;
    let mut tables = Tables::take(first)?;
    tables.set_policy(policy)?;
    for ebpf in &mut instances {
        program(ebpf)?.load().map_err(|error| load_error(&error))?;
    }
    Ok(Loaded { instances, tables })
}

fn instance(object: &[u8], options: Options, interface: u32, pins: &Path) -> Result<Ebpf> {
    let log_level = if options.kernel_log {
        aya_log::Level::Warn as u8
    } else {
        0
    };
    let test_clock = u8::from(options.test_clock);
    EbpfLoader::new()
        .btf(None)
        .default_map_pin_directory(pins)
        .map_max_entries("SOURCES", options.capacity)
        .map_max_entries(
            "AYA_LOGS",
            if options.kernel_log {
                LOG_BYTES
            } else {
                NO_LOG_BYTES
            },
        )
        .override_global("INTERFACE", &interface, true)
        .override_global("TEST_CLOCK", &test_clock, true)
        .override_global(LEVEL, &log_level, true)
        .verifier_log_level(VerifierLogLevel::STATS)
        .load(object)
        .map_err(|error| anyhow!(error).context("cannot create the maps"))
}

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
