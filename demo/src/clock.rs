//! How long the program takes for a packet, as the kernel measures it.

use std::os::fd::OwnedFd;

use anyhow::{Context as _, Result};
use aya::{
    programs::{ProgramInfo, loaded_programs},
    sys::{Stats, enable_stats},
};
use serde_json::Value;

/// Measures while it lives; the kernel's own measuring is part of the figure.
pub(crate) struct ProgramClock {
    program: u64,
    before: ProgramInfo,
    _measuring: OwnedFd,
}

impl ProgramClock {
    /// Starts to measure the program on the first interface.
    pub(crate) fn start(status: &Value) -> Result<Self> {
        let program = status["interfaces"][0]["program_id"]
            .as_u64()
            .context("status has no program_id")?;
        let measuring =
            enable_stats(Stats::RunTime).context("let the kernel measure BPF programs")?;
        Ok(Self {
            program,
            before: info(program)?,
            _measuring: measuring,
        })
    }

    /// Nanoseconds per packet since the start.
    pub(crate) fn nanoseconds_per_packet(&self) -> Result<f64> {
        let now = info(self.program)?;
        let time = now.run_time().saturating_sub(self.before.run_time());
        let count = now.run_count() - self.before.run_count();
        #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
        Ok(time.as_nanos() as f64 / count.max(1) as f64)
    }
}

fn info(program: u64) -> Result<ProgramInfo> {
    loaded_programs()
        .filter_map(Result::ok)
        .find(|info| u64::from(info.id()) == program)
        .context("the program is gone")
}
