//! The command line.

use std::{
    net::{AddrParseError, IpAddr, SocketAddr},
    num::ParseIntError,
    path::PathBuf,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::{
    commands::{PolicyCommand, StateArgs},
    units::{RateSpec, SizeSpec},
};

/// Drops floods at the network card, per source address, before the network stack sees them.
#[derive(Debug, Parser)]
#[command(
    name = "limiter",
    version,
    max_term_width = 100,
    after_help = "Start with: limiter run --iface eth0 --rate 1000/s --burst 2000 --monitor"
)]
pub struct Cli {
    /// Where the daemon listens for the other commands
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        default_value = "/run/limiter/limiter.sock",
        env = "LIMITER_SOCKET"
    )]
    pub socket: PathBuf,

    /// Where links are pinned, on a BPF file system
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/sys/fs/bpf/limiter",
        env = "LIMITER_PIN_DIR"
    )]
    pub pin_dir: PathBuf,

    /// Where state is kept.
    #[command(flatten)]
    pub state: StateArgs,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Attach to interfaces and limit every source there, in the foreground
    Run(Box<RunArgs>),
    /// Show what the daemon sees, passes and drops
    Status(Output),
    /// Say what would become of a packet from an address now, and why
    Explain(ExplainArgs),
    /// Show the busiest and the most dropped sources of this moment
    Top(TopArgs),
    /// Detach from every interface and stop the daemon, if one runs
    Unload,
    /// What concerns the policy.
    #[command(flatten)]
    Policy(PolicyCommand),
    /// Print a shell's completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How to print.
#[derive(Clone, Copy, Debug, Args)]
pub struct Output {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `limiter top`.
#[derive(Clone, Copy, Debug, Args)]
pub struct TopArgs {
    /// Measure what sources send for this many seconds, 1 to 30
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = interval, allow_hyphen_values = true)]
    pub interval: u64,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `limiter run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Interfaces to protect, by name, separated by commas
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub iface: Vec<String>,

    /// What each source may send: 1000/s, 10/min, 1/h packets, or 10MB/s, 100Mbit/s. Answers to what this host itself
    /// asked for count too: a download arrives as fast as this allows
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<RateSpec>,

    /// How much of it a source may save up: packets, or bytes such as 1MB. In any time t at most burst + rate x t passes
    #[arg(long, value_name = "BURST", allow_hyphen_values = true)]
    pub burst: Option<SizeSpec>,

    /// Tell IPv4 sources apart by this many leading bits, 1 to 32 [default: 32]
    #[arg(long, value_name = "BITS", value_parser = ipv4_prefix, allow_hyphen_values = true)]
    pub ipv4_prefix: Option<u8>,

    /// Tell IPv6 sources apart by this many leading bits, 1 to 128 [default: 64]
    #[arg(long, value_name = "BITS", value_parser = ipv6_prefix, allow_hyphen_values = true)]
    pub ipv6_prefix: Option<u8>,

    /// Remember this many sources; the least recently seen make room [default: 1048576]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub max_sources: Option<u32>,

    /// What each of the host's own needs (ARP, neighbour discovery, path MTU, DHCP, ...) may take per interface
    /// [default: 1000/s]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub needs_rate: Option<RateSpec>,

    /// How much of it may be saved up [default: 2000]
    #[arg(long, value_name = "BURST", allow_hyphen_values = true)]
    pub needs_burst: Option<SizeSpec>,

    /// Drop nothing; count what would be dropped
    #[arg(long)]
    pub monitor: bool,

    /// Read the policy from a file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where in the receive path: in the driver, or behind it, slower, for drivers without XDP
    #[arg(long, value_enum, default_value_t = AttachMode::Native)]
    pub attach: AttachMode,

    /// Serve Prometheus metrics at this address, under /metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    pub metrics: Option<SocketAddr>,

    /// Let this group, too, use the socket
    #[arg(long, value_name = "GROUP")]
    pub socket_group: Option<String>,

    /// What becomes of enforcement at SIGTERM; SIGINT always detaches
    #[arg(long, value_enum, default_value_t = OnExit::Detach)]
    pub on_exit: OnExit,
}

/// A count as people write it, perhaps with underscores.
fn count(text: &str) -> Result<u32, String> {
    let number = text.replace('_', "").parse();
    number.map_err(|_no_u32: ParseIntError| format!("not a whole number up to {}", u32::MAX))
}

fn ipv4_prefix(text: &str) -> Result<u8, String> {
    prefix(text, 32)
}

fn ipv6_prefix(text: &str) -> Result<u8, String> {
    prefix(text, 128)
}

fn prefix(text: &str, longest: u8) -> Result<u8, String> {
    match text.parse() {
        Ok(length) if (1..=longest).contains(&length) => Ok(length),
        Ok(_) | Err(_) => Err(format!("not a whole number from 1 to {longest}")),
    }
}

fn interval(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds) if (1..=30).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("not a whole number of seconds from 1 to 30".to_owned()),
    }
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_no_number: ParseIntError| {
        "not a port number from 0 to 65535, such as 22 for ssh; /etc/services lists them".to_owned()
    })
}

fn address(text: &str) -> Result<IpAddr, String> {
    let example = "such as 192.0.2.1 or 2001:db8::1";
    text.parse().map_err(|_no_address: AddrParseError| {
        let (part, rest) = text.split_once('/').unwrap_or((text, ""));
        match part.parse::<IpAddr>() {
            Ok(address) if !rest.is_empty() => {
                format!("a prefix; write one address of it, for example {address}")
            }
            Ok(_) | Err(_) => format!("not an IP address, {example}"),
        }
    })
}

fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_no_address: AddrParseError| {
        "not an address with a port, such as 127.0.0.1:9433 or [::1]:9433".to_owned()
    })
}

/// Where in the receive path the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttachMode {
    /// In the driver.
    Native,
    /// Behind the driver.
    Generic,
}

impl AttachMode {
    /// The name in status, metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

/// What becomes of enforcement at SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnExit {
    /// It ends.
    Detach,
    /// It goes on in the kernel until `limiter unload` or the next `limiter run`.
    Keep,
}

/// `limiter explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The source address
    #[arg(value_parser = address)]
    pub address: IpAddr,

    /// The packet's protocol [default: udp; tcp with --syn]
    #[arg(long, value_enum)]
    pub proto: Option<Proto>,

    /// The packet's destination port
    #[arg(long, value_name = "PORT", default_value_t = 0, value_parser = port, allow_hyphen_values = true)]
    pub dport: u16,

    /// The packet's source port
    #[arg(long, value_name = "PORT", default_value_t = 0, value_parser = port, allow_hyphen_values = true)]
    pub sport: u16,

    /// The packet is a TCP connection attempt
    #[arg(long)]
    pub syn: bool,

    /// The packet's destination address [default: any of this host's]
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<IpAddr>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A protocol to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proto {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP echo, of the address's family.
    Icmp,
}
