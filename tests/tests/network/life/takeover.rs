//! From one daemon to the next without a gap.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use limiter_lab::{
    Answers, ECHO_PORT, EchoServer, HOST_INTERFACE, HOST_V4, Manner, Paced, Polite, Stop, Tap,
    frame::Frame,
};
use limiter_userspace::kernel::interface;
use nix::sys::signal::Signal;

use crate::common::{ATTACKER, DISCARD, Site, start};

const BURST: u64 = 10;
const RATE: u64 = 20;
/// How many daemons, one after the other: ended and killed in turn.
const DAEMONS: u64 = 10;

/// Asks the kernel every millisecond which program is on the host's interface, until told to stop; returns all answers but repeated ones.
fn watch(site: &Site, done: &AtomicBool) -> Result<Vec<Option<u32>>> {
    site.host.run(|| {
        let mut programs = Vec::new();
        while !done.load(Ordering::Relaxed) {
            let program = interface::find(HOST_INTERFACE)?.xdp.map(|xdp| xdp.program);
            if programs.last() != Some(&program) {
                programs.push(program);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(programs)
    })
}

/// Frames of the attacker that reach the host's network stack.
fn count_attackers(tap: &mut Tap, frame: &[u8]) -> Result<u64> {
    let mut count = 0;
    while let Some(arrived) = tap.next(Duration::from_millis(50))? {
        count += u64::from(arrived == frame);
    }
    Ok(count)
}

fn polite(site: &Site, stop: &Stop) -> Result<limiter_lab::Task<Answers>> {
    let udp = Manner::Udp { port: ECHO_PORT };
    Polite::new(HOST_V4.into(), udp, Duration::from_secs(60)).start(site, stop)
}

#[test]
fn case_111_a_row_of_daemons_leaves_no_gap() -> Result<()> {
    let site = Site::new()?;
    let _server = EchoServer::start(&site)?;
    let limiter = site.limiter()?;
    let words = format!("--rate {RATE}/s --burst {BURST} --on-exit keep --max-sources 65536");
    let mut daemon = start(&limiter, &words)?;
    let mut tap = Tap::open(&site.host, HOST_INTERFACE)?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4)
        .udp(1234, DISCARD)
        .payload(18)
        .build();
    let (attack, politeness, done) = (Stop::new(), Stop::new(), AtomicBool::new(false));
    let began = Instant::now();
    let attacker = Paced {
        frames: vec![frame.clone()],
        rate_per_second: 1_000,
        packets: 60_000,
    };
    let attacker = attacker.start(&site, &attack)?;
    let client = polite(&site, &politeness)?;
    let programs = thread::scope(|scope| -> Result<_> {
        let watcher = scope.spawn(|| watch(&site, &done));
        let changes = (1..DAEMONS).try_for_each(|n| {
            let signal = if n % 2 == 0 {
                Signal::SIGKILL
            } else {
                Signal::SIGTERM
            };
            daemon.signal(signal)?;
            daemon.wait()?;
            daemon = start(&limiter, &words)?;
            Ok(())
        });
        done.store(true, Ordering::Relaxed);
        let programs = watcher
            .join()
            .map_err(|_panic| anyhow!("the watcher panicked"))?;
        changes.and(programs)
    })?;
    politeness.ask();
    let answers = client.join()?;
    attack.ask();
    let sent = attacker.join()?.sent.packets;
    let span = began.elapsed();
    let programs: Vec<u32> = programs
        .into_iter()
        .collect::<Option<_>>()
        .context("there was a moment without a program")?;
    assert_eq!(
        programs.len() as u64,
        DAEMONS,
        "one program after the other: {programs:?}"
    );
    assert_eq!(answers.lost(), 0, "{answers:?}");
    let admitted = count_attackers(&mut tap, &frame)?;
    // Each daemon starts with buckets of its own, full.
    let most = DAEMONS * BURST + u64::try_from(span.as_millis())? * RATE / 1_000 + 1;
    assert!(
        admitted <= most,
        "{admitted} of {sent} admitted, at most {most} are due"
    );
    assert!(admitted >= DAEMONS * BURST, "{admitted} of {sent} admitted");
    Ok(())
}
