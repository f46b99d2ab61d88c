//! The limiter at work: a host, polite clients, and a flood of hundreds of thousands of packets per second.
//!
//! Everything happens in network namespaces of its own, which are gone afterwards, also when it is interrupted.

mod cast;
mod clock;
mod report;

use std::{
    io::{self, Write as _},
    process::{ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use limiter_lab::{EchoServer, HOST_INTERFACE, Lab, Limiter, Stop};

use crate::{
    cast::{Attacker, Guest},
    clock::ProgramClock,
    report::{Moment, Report},
};

/// Packets per second and source, and the burst, that the demo's host allows.
const RATE: u64 = 1_000;
const BURST: u64 = 1_000;
/// How long the flood goes on.
const FLOOD: Duration = Duration::from_secs(10);
/// How long the guests are there before and after it.
const CALM: Duration = Duration::from_millis(1_500);

fn main() -> ExitCode {
    let stop = Stop::new();
    let handler = ctrlc::set_handler({
        let stop = stop.clone();
        move || stop.ask()
    });
    let outcome = handler
        .context("listen for signals")
        .and_then(|()| run(&stop));
    if stop.asked() {
        // Whatever failed then failed because everybody was leaving.
        eprintln!("interrupted; everything is cleaned up");
        return ExitCode::FAILURE;
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The whole play; it ends early when asked to stop.
fn run(stop: &Stop) -> Result<()> {
    let lab = Lab::new("demo")?;
    println!(
        "made {} and {}, joined by a cable",
        lab.host.name(),
        lab.net.name()
    );
    let echo = EchoServer::start(&lab)?;
    let limiter = Limiter::new(&lab.host)?;
    let (rate, burst) = (format!("{RATE}/s"), BURST.to_string());
    let arguments = [
        "--iface",
        HOST_INTERFACE,
        "--rate",
        &rate,
        "--burst",
        &burst,
    ];
    println!("# limiter run {}", arguments.join(" "));
    let daemon = limiter.run(&arguments, Stdio::inherit())?;

    let start = Moment::take(&limiter, &lab)?;
    let guests = Guest::invite(&lab, CALM + FLOOD + CALM, stop)?;
    if !stop.sleep(CALM) {
        return Ok(());
    }
    let clock = ProgramClock::start(&limiter.status()?)?;
    let attackers = Attacker::let_loose(&lab, FLOOD, stop)?;
    watch(&attackers, &guests, &limiter, stop)?;
    let attackers: Vec<_> = attackers
        .into_iter()
        .map(Attacker::finish)
        .collect::<Result<_>>()?;
    let per_packet = clock.nanoseconds_per_packet()?;
    let guests: Vec<_> = guests
        .into_iter()
        .map(Guest::leave)
        .collect::<Result<_>>()?;
    if stop.asked() {
        return Ok(());
    }

    let report = Report::new(&limiter, &lab, attackers, guests, per_packet, start)?;
    println!("{report}");
    let verdict = report.verdict();
    drop(daemon);
    drop(echo);
    verdict
}

/// A line a second while the flood goes on.
fn watch(
    attackers: &[Attacker],
    guests: &[Guest],
    limiter: &Limiter<'_>,
    stop: &Stop,
) -> Result<()> {
    let mut before = (0, 0);
    for second in 1..=FLOOD.as_secs() {
        if !stop.sleep(Duration::from_secs(1)) {
            break;
        }
        let status = limiter.status()?;
        let packets = &status["interfaces"][0]["packets"];
        let offered: u64 = attackers.iter().map(Attacker::sent).sum();
        let dropped = packets["dropped"]
            .as_u64()
            .context("status has no dropped")?;
        let (asked, answered) = guests.iter().fold((0, 0), |(asked, answered), guest| {
            let (a, b) = guest.progress();
            (asked + a, answered + b)
        });
        let now = (offered, dropped);
        println!(
            "{second:>3} s   flood {:>9} packets/s   dropped {:>9} packets/s   polite clients: {asked} asked, {answered} answered",
            now.0 - before.0,
            now.1 - before.1
        );
        io::stdout().flush().context("write to standard output")?;
        before = now;
    }
    ensure!(stop.asked() || before.0 > 0, "the flood sent nothing");
    Ok(())
}
