//! While policies change, no packet passes that both would drop, and none is lost that both would pass.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Result;
use limiter_lab::{
    ECHO_PORT, EchoServer, Flood, HOST_V4, Limiter, Manner, Polite, Sources, Stop, frame::Frame,
};

use super::{MANY, Place, done};
use crate::common::{ATTACKER, DISCARD, Site, at_rest, status};

const RELOADS: usize = 200;

/// A flood of a million packets at most.
fn flood(source: Ipv4Addr) -> Flood {
    Flood {
        template: Frame::ipv4(source, HOST_V4)
            .udp(1234, DISCARD)
            .payload(18)
            .template(),
        sources: Sources::one(source.into()),
        packets: 1_000_000,
        duration: Duration::from_secs(60),
        rate_per_second: Some(60_000),
        cpu: None,
    }
}

/// Reloads under a flood of `ATTACKER`, whom the policies ban; two of them in turn.
fn nothing_leaks(policies: [&str; 2], by_command: bool) -> Result<()> {
    let site = Site::new()?;
    let _server = EchoServer::start(&site)?;
    let limiter = site.limiter()?;
    let place = Place::new(policies[0])?;
    let (_daemon, _log) = place.start(&limiter)?;
    if by_command {
        done(&limiter, &["ban", &ATTACKER.to_string()])?;
    }
    let stop = Stop::new();
    let polite = Polite::new(
        HOST_V4.into(),
        Manner::Udp { port: ECHO_PORT },
        Duration::from_secs(3),
    );
    let client = polite.start(&site, &stop)?;
    let flooding = flood(ATTACKER).start(&site, &stop)?;
    let mut dropped = 0;
    for n in 0..RELOADS {
        place.reload(&limiter, policies[(n + 1) % 2])?;
        if n % 50 == 49 {
            let now = status(&limiter)?.interfaces[0].packets.dropped;
            assert!(now > dropped, "counters go on");
            dropped = now;
        }
    }
    let answers = client.join()?;
    flooding.stop();
    let sent = flooding.join()?;
    let now = at_rest(&limiter)?;
    let packets = &now.interfaces[0].packets;
    assert_eq!(
        packets.dropped_by_reason["ban"], sent.packets,
        "all of the flood"
    );
    assert_eq!(packets.dropped, sent.packets);
    assert_eq!(packets.seen, packets.passed + packets.dropped);
    assert_eq!(limiter.explain(ATTACKER.into())?["passed"], 0);
    assert_eq!(answers.lost(), 0, "{answers:?}");
    // What has not changed is not put in force once more.
    let flips = if policies[0] == policies[1] {
        0
    } else {
        RELOADS
    };
    let generation = usize::try_from(now.policy.generation)?;
    assert!(generation > flips, "{generation}");
    Ok(())
}

#[test]
fn case_122_a_ban_of_the_policy_does_not_lapse_in_reloads() -> Result<()> {
    let banning = format!("ban = [\"{ATTACKER}\"]\n{MANY}");
    nothing_leaks([&banning, &banning], false)
}

#[test]
fn a_ban_does_not_lapse_where_policies_alternate() -> Result<()> {
    let lists = ["198.51.100.128/25", "203.0.113.0/24"];
    let policies = lists.map(|other| format!("ban = [\"{ATTACKER}\", \"{other}\"]\n{MANY}"));
    let [one, other] = &policies;
    let other = other.replace("1000000/s", "900000/s");
    nothing_leaks([one, &other], false)
}

#[test]
fn a_ban_by_an_operator_does_not_lapse_in_reloads() -> Result<()> {
    let other = MANY.replace("many", "more");
    nothing_leaks([MANY, &other], true)
}

#[test]
fn a_ban_made_during_a_reload_holds_from_its_first_moment() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    // Long enough to be compiled for a while.
    let list = |first: u32| {
        let prefixes = (0..100_000).map(|n| Ipv4Addr::from_bits(first + 2 * n));
        prefixes.fold(String::new(), |text, prefix| {
            text + &prefix.to_string() + "\n"
        })
    };
    let policies = ["many", "more"].map(|name| {
        format!(
            "ban_files = [\"{name}.txt\"]\n{}",
            MANY.replace("many", name)
        )
    });
    let place = Place::new(&policies[0])?;
    place.write("many.txt", &list(0x0a00_0000))?;
    place.write("more.txt", &list(0x0b00_0000))?;
    let (_daemon, _log) = place.start(&limiter)?;
    let stop = Stop::new();
    let flooding = Flood {
        rate_per_second: Some(20_000),
        ..flood(ATTACKER)
    }
    .start(&site, &stop)?;
    let reloading = AtomicBool::new(true);
    let whom = ATTACKER.to_string();
    let passed = || at_once(&limiter);
    thread::scope(|scope| {
        let reloads = scope.spawn(|| -> Result<()> {
            for n in 1.. {
                if !reloading.load(Ordering::Relaxed) {
                    break;
                }
                place.reload(&limiter, &policies[n % 2])?;
            }
            Ok(())
        });
        let judged = (0..12_u64).try_for_each(|n| -> Result<()> {
            thread::sleep(Duration::from_millis(37 * n % 200));
            done(&limiter, &["ban", &whom])?;
            thread::sleep(Duration::from_millis(5));
            let before = passed()?;
            thread::sleep(Duration::from_millis(400));
            assert_eq!(passed()?, before, "ban {n} leaks");
            done(&limiter, &["unban", &whom])?;
            Ok(())
        });
        reloading.store(false, Ordering::Relaxed);
        let reloaded = reloads.join().expect("reloads do not panic");
        judged.and(reloaded)
    })?;
    flooding.stop();
    flooding.join()?;
    Ok(())
}

/// What has passed so far.
fn at_once(limiter: &Limiter<'_>) -> Result<u64> {
    Ok(status(limiter)?.interfaces[0].packets.passed)
}
