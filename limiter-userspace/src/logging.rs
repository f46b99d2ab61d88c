//! Logs, to standard error.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Starts logging. `RUST_LOG` chooses what, by default everything from `info` on; under systemd the journal adds the
/// time itself.
pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt::layer()
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .with_target(false);
    let registry = tracing_subscriber::registry().with(filter);
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        registry.with(lines.without_time()).init();
    } else {
        registry.with(lines).init();
    }
}
