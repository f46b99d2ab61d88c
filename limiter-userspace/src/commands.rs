//! The commands that check, change and look back: their part of the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use limiter_policy::units::{RateSpec, SizeSpec};

use crate::{
    audit::What,
    changes::{
        length::{parse_length, parse_reason},
        request::{
            BanRequest, MonitorRequest, OverrideRequest, ReloadRequest, RemoveOverrideRequest,
            UnbanRequest,
        },
        target::Target,
    },
    cli::Output,
};

/// Where state is kept; for all commands.
#[derive(Clone, Debug, Args)]
pub struct StateArgs {
    /// Where bans, overrides and the audit log are kept over restarts
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/var/lib/limiter",
        env = "LIMITER_STATE_DIR"
    )]
    pub state_dir: PathBuf,
}

/// What to do; a part of [`crate::cli::Command`].
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Say whether a policy file is right, what it means and what memory it takes; changes nothing
    Check(FileArgs),
    /// Show what a policy file would change; changes nothing
    Diff(FileArgs),
    /// Take up the policy file as it is now; a file that is not right changes nothing
    Reload(ReloadArgs),
    /// Drop everything from an address or prefix, for a time or until `unban`
    Ban(BanArgs),
    /// Lift a ban
    Unban(UnbanArgs),
    /// List the bans in force: who, why, until when
    Bans(Output),
    /// Give a limit another rate or burst for a time, or take that back
    Override(OverrideArgs),
    /// List the overrides in force
    Overrides(Output),
    /// Drop nothing and only count what would be dropped, or drop again
    Monitor(MonitorArgs),
    /// Show who changed what, when and why
    Audit(AuditArgs),
}

/// `limiter check`, `limiter diff`.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The policy, in TOML
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `limiter reload`.
#[derive(Debug, Args)]
pub struct ReloadArgs {
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub reason: Option<String>,
}

/// `limiter ban`.
#[derive(Debug, Args)]
pub struct BanArgs {
    /// Whom: an address, or a prefix such as 198.51.100.0/24
    #[arg(value_name = "ADDRESS|CIDR", allow_hyphen_values = true)]
    pub target: Target,

    /// How long, 1s to 365d: 10m, 1h30m [default: until `unban`]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    pub length: Option<u64>,

    /// Why, for the list and the audit log
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub reason: Option<String>,

    /// Ban even a prefix shorter than /8 or, of IPv6, /19, one around an address of this host or its gateway, or one
    /// inside the policy's `allow`
    #[arg(long)]
    pub force: bool,
}

/// `limiter unban`.
#[derive(Debug, Args)]
pub struct UnbanArgs {
    /// Whom, as `limiter bans` shows it
    #[arg(value_name = "ADDRESS|CIDR", allow_hyphen_values = true)]
    pub target: Target,

    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub reason: Option<String>,
}

/// `limiter override`.
#[derive(Debug, Args)]
pub struct OverrideArgs {
    /// The limit, by name
    #[arg(value_name = "LIMIT")]
    pub limit: String,

    /// Its rate: 1000/s, 10/min or 10MB/s [default: as in the policy]
    #[arg(
        long,
        value_name = "RATE",
        required_unless_present_any = ["burst", "remove"],
        allow_hyphen_values = true
    )]
    pub rate: Option<RateSpec>,

    /// Its burst, or the queue of a leaky bucket: packets, or bytes such as 1MB [default: as in the policy]
    #[arg(long, value_name = "BURST", allow_hyphen_values = true)]
    pub burst: Option<SizeSpec>,

    /// How long, 1s to 365d: 30m, 1h30m. It ends by itself
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = parse_length,
        required_unless_present = "remove",
        allow_hyphen_values = true
    )]
    pub length: Option<u64>,

    /// For these sources only [default: all that have no class with terms of its own]
    #[arg(long, value_name = "CIDR", allow_hyphen_values = true)]
    pub source: Option<Target>,

    /// Take the override back before its time
    #[arg(long, conflicts_with_all = ["rate", "burst", "length"])]
    pub remove: bool,

    /// Why, for the list and the audit log
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub reason: Option<String>,
}

/// `limiter monitor`.
#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// Whether to drop nothing
    #[arg(value_enum, value_name = "on|off", hide_possible_values = true)]
    pub switch: Switch,

    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub reason: Option<String>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// `limiter audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Show at most this many changes, the newest
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub last: usize,

    /// Show changes of this kind only
    #[arg(long, value_enum, value_name = "KIND")]
    pub what: Option<What>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `limiter override` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideAction {
    /// To make an override.
    Make(OverrideRequest),
    /// To take one back.
    Remove(RemoveOverrideRequest),
}

impl From<ReloadArgs> for ReloadRequest {
    fn from(ReloadArgs { reason }: ReloadArgs) -> Self {
        Self { reason }
    }
}

impl From<BanArgs> for BanRequest {
    fn from(args: BanArgs) -> Self {
        Self {
            prefix: args.target,
            for_s: args.length,
            reason: args.reason,
            force: args.force,
        }
    }
}

impl From<UnbanArgs> for UnbanRequest {
    fn from(args: UnbanArgs) -> Self {
        Self {
            prefix: args.target,
            reason: args.reason,
        }
    }
}

impl From<MonitorArgs> for MonitorRequest {
    fn from(args: MonitorArgs) -> Self {
        Self {
            on: args.switch == Switch::On,
            reason: args.reason,
        }
    }
}

impl From<OverrideArgs> for OverrideAction {
    fn from(args: OverrideArgs) -> Self {
        let OverrideArgs {
            limit,
            rate,
            burst,
            length,
            source,
            remove: _,
            reason,
        } = args;
        // The parser asks for either a length or `--remove`.
        match length {
            Some(for_s) => Self::Make(OverrideRequest {
                limit,
                source,
                rate,
                burst,
                for_s,
                reason,
            }),
            None => Self::Remove(RemoveOverrideRequest {
                limit,
                source,
                reason,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "limiter")]
    struct Line {
        #[command(flatten)]
        state: StateArgs,
        #[command(subcommand)]
        command: PolicyCommand,
    }

    fn parse(line: &str) -> Result<PolicyCommand, String> {
        let words = ["limiter"].into_iter().chain(line.split(' '));
        match Line::try_parse_from(words) {
            Ok(line) => Ok(line.command),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_parser_is_sound() {
        use clap::CommandFactory as _;
        Line::command().debug_assert();
    }

    #[test]
    fn the_state_directory_may_stand_anywhere() {
        for line in [
            "limiter --state-dir /tmp/x bans",
            "limiter bans --state-dir /tmp/x",
        ] {
            let line = Line::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(line.state.state_dir, PathBuf::from("/tmp/x"));
        }
    }

    #[test]
    fn bans_become_requests() {
        let PolicyCommand::Ban(args) =
            parse("ban ::ffff:198.51.100.7 --for 1h30m --reason scan").unwrap()
        else {
            panic!("a ban");
        };
        assert_eq!(
            BanRequest::from(args),
            BanRequest {
                prefix: "198.51.100.7".parse().unwrap(),
                for_s: Some(5400),
                reason: Some("scan".to_owned()),
                force: false,
            }
        );
        let PolicyCommand::Unban(args) = parse("unban 198.51.100.0/24").unwrap() else {
            panic!("an unban");
        };
        assert_eq!(
            UnbanRequest::from(args).prefix.to_string(),
            "198.51.100.0/24"
        );
    }

    #[test]
    fn overrides_are_made_or_taken_back() {
        let action = |line: &str| match parse(line) {
            Ok(PolicyCommand::Override(args)) => OverrideAction::from(args),
            other => panic!("{line}: {other:?}"),
        };
        let OverrideAction::Make(request) =
            action("override login --rate 10/min --burst 20 --for 30m --source 10.0.0.0/8")
        else {
            panic!("made");
        };
        assert_eq!(request.for_s, 1800);
        assert_eq!(request.source, Some("10.0.0.0/8".parse().unwrap()));
        let OverrideAction::Make(request) = action("override login --burst 20 --for 30m") else {
            panic!("made");
        };
        assert_eq!(request.rate, None);
        let removed = action("override login --remove --source 10.0.0.0/8");
        assert!(matches!(removed, OverrideAction::Remove(request) if request.limit == "login"));
    }

    #[test]
    fn switches() {
        for (line, on) in [("monitor on", true), ("monitor off", false)] {
            let Ok(PolicyCommand::Monitor(args)) = parse(line) else {
                panic!("{line}");
            };
            assert_eq!(MonitorRequest::from(args).on, on);
        }
    }

    #[test]
    fn wrong_lines_say_what_to_write() {
        for (line, part) in [
            ("ban 198.51.100.7 --for 10", "write 10s, 10m, 10h or 10d"),
            ("ban 198.51.100.7 --for 400d", "the longest 365d"),
            ("ban 198.51.100.7/24", "write 198.51.100.0/24"),
            ("ban -1", "198.51.100.7 or 2001:db8::/48"),
            ("ban", "<ADDRESS|CIDR>"),
            ("unban host", "198.51.100.7 or 2001:db8::/48"),
            ("override login --for 30m", "--rate <RATE>"),
            ("override login --rate 1/s", "--for <TIME>"),
            ("override login --rate 10 --for 30m", "write `10/s`"),
            (
                "override login --rate 1/s --for 1s --remove",
                "cannot be used with",
            ),
            ("override login", "required"),
            ("monitor maybe", "invalid value 'maybe'"),
            ("monitor", "<on|off>"),
            ("audit --last x", "invalid digit"),
            ("audit --what everything", "possible values: policy"),
            ("check", "<FILE>"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
