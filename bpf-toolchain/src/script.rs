//! What a build script does: makes a BPF object in `OUT_DIR`.

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use crate::{
    BPF_TARGET, LINKER_NAME, Missing, ROUTE_VARIABLE, Route, Toolchain, UnknownRoute, detect, note,
    target_root, tools_dir,
};

/// What the BPF programs are made of, besides the toolchain.
const SOURCES: [&str; 5] = [
    "limiter-ebpf",
    "limiter-common/src",
    "limiter-common/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

/// The whole of a build script: leaves the BPF program `bin` as the file `OUT_DIR/<bin>`.
///
/// Where there is no toolchain for it the file is empty and a warning says what to run: the host's crates can be worked
/// on everywhere. Where there is one and the program does not compile, the build fails.
#[must_use]
pub fn build(bin: &str) -> ExitCode {
    match Script::from_environment().and_then(|script| script.run(bin)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

struct Script {
    out_dir: PathBuf,
    workspace: PathBuf,
    target_root: PathBuf,
    forced: Option<Route>,
}

impl Script {
    fn from_environment() -> Result<Self, Failure> {
        let out_dir = cargo_variable("OUT_DIR")?;
        let package = cargo_variable("CARGO_MANIFEST_DIR")?;
        let workspace = package
            .parent()
            .ok_or_else(|| Failure::NoWorkspace(package.clone()))?
            .to_owned();
        let target_root =
            target_root(&out_dir).ok_or_else(|| Failure::NoTargetRoot(out_dir.clone()))?;
        Ok(Self {
            out_dir,
            workspace,
            target_root,
            forced: Route::forced()?,
        })
    }

    fn run(&self, bin: &str) -> Result<(), Failure> {
        let tools = tools_dir(&self.target_root);
        make_watchable(&tools).map_err(|error| Failure::Io("create", tools.clone(), error))?;
        println!("cargo::rerun-if-env-changed={ROUTE_VARIABLE}");
        println!("cargo::rerun-if-changed={}", tools.display());
        for source in SOURCES {
            println!(
                "cargo::rerun-if-changed={}",
                self.workspace.join(source).display()
            );
        }
        match detect(&tools, self.forced) {
            Ok(toolchain) => {
                println!(
                    "cargo::rerun-if-changed={}",
                    toolchain.linker().path().display()
                );
                self.compile(&toolchain, bin)
            }
            Err(missing) => self.leave_empty(&missing, bin),
        }
    }

    fn compile(&self, toolchain: &Toolchain, bin: &str) -> Result<(), Failure> {
        let target_dir = self.target_root.join("bpf");
        let mut command = toolchain.build_command(&self.workspace, &target_dir, bin);
        let status = command
            .status()
            .map_err(|error| Failure::Io("start", PathBuf::from(command.get_program()), error))?;
        if !status.success() {
            return Err(Failure::Compile(bin.to_owned(), toolchain.describe()));
        }
        let made = target_dir.join(BPF_TARGET).join("release").join(bin);
        let copied = fs::copy(&made, self.out_dir.join(bin));
        copied
            .map(drop)
            .map_err(|error| Failure::Io("copy", made, error))
    }

    fn leave_empty(&self, missing: &Missing, bin: &str) -> Result<(), Failure> {
        println!("cargo::warning=the BPF program {bin} is not built: run `cargo xtask setup`");
        for line in missing.lines() {
            println!("cargo::warning={line}");
        }
        note::forget(&self.target_root)
            .map_err(|error| Failure::Io("change", tools_dir(&self.target_root), error))?;
        let object = self.out_dir.join(bin);
        fs::write(&object, []).map_err(|error| Failure::Io("write", object, error))
    }
}

/// Makes sure that the directory exists, because cargo runs a script again at every build if a watched path does not.
fn make_watchable(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    // Older than this run: otherwise cargo takes it for a change and runs the script once more for nothing.
    fs::File::open(directory)?.set_modified(SystemTime::UNIX_EPOCH)
}

fn cargo_variable(name: &'static str) -> Result<PathBuf, Failure> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or(Failure::NotInCargo(name))
}

enum Failure {
    NotInCargo(&'static str),
    NoWorkspace(PathBuf),
    NoTargetRoot(PathBuf),
    Route(UnknownRoute),
    Io(&'static str, PathBuf, io::Error),
    Compile(String, String),
}

impl From<UnknownRoute> for Failure {
    fn from(error: UnknownRoute) -> Self {
        Self::Route(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInCargo(name) => write!(
                f,
                "{name} is not set: call this from a build script that cargo runs"
            ),
            Self::NoWorkspace(package) => {
                write!(f, "{} has no directory above it", package.display())
            }
            Self::NoTargetRoot(out_dir) => {
                write!(
                    f,
                    "no target directory above OUT_DIR {}: run `cargo clean` and build again",
                    out_dir.display()
                )
            }
            Self::Route(error) => error.fmt(f),
            Self::Io(verb, path, error) => write!(f, "cannot {verb} {}: {error}", path.display()),
            Self::Compile(bin, toolchain) => write!(
                f,
                "the BPF program {bin} does not compile, the compiler's output is below; made with {toolchain} \
                 (a rustc with a newer LLVM than {LINKER_NAME}'s also ends like this)"
            ),
        }
    }
}
