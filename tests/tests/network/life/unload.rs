//! `limiter unload` removes all that is ours, and nothing else.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use aya::{EbpfLoader, maps::MapData};
use limiter_lab::{HOST_INTERFACE, Limiter};
use limiter_userspace::kernel::object;
use nix::sys::signal::Signal;

use crate::common::{
    Running, SECOND_HOST_INTERFACE, Site, assert_no_traces, lay_second, on_host, program_on,
    request, start, start_logged, status, to_its_end, wait_until,
};

const POLICY: &str = "--rate 1/h --burst 1";

/// Somebody else's pins: some in a directory beside ours, one inside ours.
struct ForeignPins {
    beside: PathBuf,
    inside: PathBuf,
}

impl ForeignPins {
    fn make(limiter: &Limiter<'_>) -> Result<Self> {
        let mut beside = limiter.pin_dir.clone().into_os_string();
        beside.push("_foreign");
        let pins = Self {
            beside: beside.into(),
            inside: limiter.pin_dir.join("foreign"),
        };
        fs::create_dir(&pins.beside).context("make a directory on the BPF file system")?;
        // Any maps will do; these are at hand.
        let mut ebpf = EbpfLoader::new()
            .default_map_pin_directory(&pins.beside)
            .map_max_entries("SOURCES", 1_024)
            .load(object::bytes()?)
            .context("make a map")?;
        let map = ebpf.take_map("CLOCK").context("there is no map")?;
        map.pin(&pins.inside).context("pin a map")?;
        Ok(pins)
    }

    fn are_there(&self) -> bool {
        self.inside.exists() && self.beside.join("CLOCK").exists()
    }
}

impl Drop for ForeignPins {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.inside));
        drop(fs::remove_dir_all(&self.beside));
    }
}

/// Runs `limiter unload`, and returns what it prints.
fn unload(limiter: &Limiter<'_>) -> Result<String> {
    let output = limiter.output(&["unload"])?;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stderr, b"");
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn unload_stops_the_daemon_and_detaches() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let mut daemon = start(&limiter, "--rate 1/h --burst 1 --on-exit keep")?;
    assert_eq!(
        unload(&limiter)?,
        format!("detached from {HOST_INTERFACE}\n")
    );
    assert_eq!(
        program_on(&site.host, HOST_INTERFACE)?,
        None,
        "when it answers, it is done"
    );
    assert_eq!(daemon.wait()?.code(), Some(0));
    assert_no_traces(&site, &limiter, "unload")?;
    assert_eq!(unload(&limiter)?, "nothing was attached\n");
    Ok(())
}

#[test]
fn unload_removes_the_pins_of_a_daemon_that_is_gone() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let daemon = start(&limiter, "--rate 1/h --burst 1 --on-exit keep")?;
        daemon.end(signal)?;
        assert!(program_on(&site.host, HOST_INTERFACE)?.is_some());
        assert_eq!(
            unload(&limiter)?,
            format!("detached from {HOST_INTERFACE}\n"),
            "{signal}"
        );
        assert_eq!(program_on(&site.host, HOST_INTERFACE)?, None, "{signal}");
        assert!(!limiter.pin_dir.exists(), "{signal}");
    }
    Ok(())
}

#[test]
fn unload_removes_the_socket_of_a_daemon_that_was_killed() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 1")?;
    daemon.end(Signal::SIGKILL)?;
    unload(&limiter)?;
    assert_no_traces(&site, &limiter, "unload")
}

#[test]
fn unload_leaves_what_others_have_pinned() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for (way, end) in [("a daemon", None), ("none", Some(Signal::SIGKILL))] {
        let mut daemon = start(&limiter, "--rate 1/h --burst 1")?;
        let foreign = ForeignPins::make(&limiter)?;
        if let Some(signal) = end {
            daemon.signal(signal)?;
            daemon.wait()?;
        }
        assert_eq!(
            unload(&limiter)?,
            format!("detached from {HOST_INTERFACE}\n"),
            "{way}"
        );
        daemon.wait()?;
        assert_eq!(program_on(&site.host, HOST_INTERFACE)?, None, "{way}");
        assert!(foreign.are_there(), "with {way}, others' pins are gone");
        let left: Vec<_> = fs::read_dir(&limiter.pin_dir)?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<Result<_>>()?;
        assert_eq!(left, ["foreign"], "with {way}");
        drop(foreign);
        fs::remove_dir(&limiter.pin_dir)?;
    }
    Ok(())
}

#[test]
fn unload_over_the_socket_names_the_interfaces() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let mut daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let answer = request(&limiter.socket, "POST", "/v1/unload")?;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json()?,
        serde_json::json!({ "interfaces": [HOST_INTERFACE] })
    );
    assert_eq!(daemon.wait()?.code(), Some(0));
    assert_no_traces(&site, &limiter, "unload")
}

#[test]
fn unload_detaches_also_where_the_daemon_does_not_serve() -> Result<()> {
    let site = Site::new()?;
    lay_second(&site)?;
    let limiter = site.limiter()?;
    let both = format!("{HOST_INTERFACE},{SECOND_HOST_INTERFACE}");
    let arguments = [
        "--iface",
        &both,
        "--rate",
        "1/h",
        "--burst",
        "1",
        "--on-exit",
        "keep",
    ];
    let (daemon, _log) = start_logged(&limiter, &arguments)?;
    daemon.end(Signal::SIGTERM)?;
    let mut daemon = start(&limiter, "--rate 1/h --burst 1")?;
    unload(&limiter)?;
    daemon.wait()?;
    assert_eq!(program_on(&site.host, SECOND_HOST_INTERFACE)?, None);
    assert_no_traces(&site, &limiter, "unload")
}

#[test]
fn when_unload_returns_the_next_daemon_can_start() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for _round in 0..10 {
        let mut daemon = start(&limiter, "--rate 1/h --burst 1")?;
        unload(&limiter)?;
        let mut next = Running::start(limiter.command(&["run"]).args(on_host(POLICY)))?;
        wait_until("the next one is ready", || {
            assert!(next.goes_on()?, "{}", next.log.text());
            Ok(status(&limiter).is_ok_and(|status| status.ready))
        })?;
        daemon.wait()?;
        unload(&limiter)?;
        next.wait()?;
    }
    assert_no_traces(&site, &limiter, "unload")
}

#[test]
fn unload_does_not_pull_the_links_from_under_a_daemon_with_another_socket() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, POLICY)?;
    let other = site.limiter()?;
    let mut command = other.command(&["unload"]);
    let output = to_its_end(command.arg("--pin-dir").arg(&limiter.pin_dir))?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaint = String::from_utf8(output.stderr)?;
    let holder = format!("another limiter, pid {}, is using it", daemon.pid());
    assert!(complaint.contains(&holder), "{complaint}");
    assert!(status(&limiter)?.ready);
    Ok(())
}

#[test]
fn unload_removes_what_a_killed_start_has_left() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    start(&limiter, POLICY)?.end(Signal::SIGKILL)?;
    // As if it had been killed while its instances found each other's maps.
    let shared = limiter.pin_dir.join("loading");
    fs::create_dir(&shared)?;
    let mut ebpf = EbpfLoader::new()
        .default_map_pin_directory(&shared)
        .map_max_entries("SOURCES", 1_024)
        .load(object::bytes()?)?;
    drop(ebpf.take_map("CLOCK"));
    drop(ebpf);
    assert!(fs::read_dir(&shared)?.count() > 0);
    unload(&limiter)?;
    assert_no_traces(&site, &limiter, "unload")
}

#[test]
fn what_is_no_link_does_not_keep_the_links_pinned() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for end in [None, Some(Signal::SIGKILL)] {
        let mut daemon = start(&limiter, POLICY)?;
        // Two, so that one comes first whatever the interface's index.
        let strangers = [1_u32, 99_999].map(|n| limiter.pin_dir.join(format!("link_{n}")));
        let foreign = ForeignPins::make(&limiter)?;
        for stranger in &strangers {
            let map = MapData::from_pin(&foreign.inside)?;
            map.pin(stranger)?;
        }
        if let Some(signal) = end {
            daemon.signal(signal)?;
            daemon.wait()?;
        }
        let output = limiter.output(&["unload"])?;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(
            String::from_utf8(output.stdout)?,
            format!("detached from {HOST_INTERFACE}\n")
        );
        let complaint = String::from_utf8(output.stderr)?;
        for stranger in &strangers {
            let shown = stranger.display().to_string();
            assert!(complaint.contains(&shown), "{complaint}");
            assert!(stranger.exists(), "it is not ours to remove");
            fs::remove_file(stranger)?;
        }
        daemon.wait()?;
        assert_eq!(program_on(&site.host, HOST_INTERFACE)?, None);
        drop(foreign);
        fs::remove_dir(&limiter.pin_dir)?;
    }
    Ok(())
}

#[test]
fn a_pin_that_was_moved_away_does_not_keep_the_program_attached() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let elsewhere = PathBuf::from(format!("{}_moved", limiter.pin_dir.display()));
    let move_away = || -> Result<()> {
        let index = status(&limiter)?.interfaces[0].ifindex;
        fs::rename(limiter.pin_dir.join(format!("link_{index}")), &elsewhere)?;
        Ok(())
    };
    let daemon = start(&limiter, POLICY)?;
    move_away()?;
    unload(&limiter)?;
    drop(daemon);
    fs::remove_file(&elsewhere)?;
    assert_no_traces(&site, &limiter, "unload")?;
    // Without its daemon it cannot be found, but is not said to be gone.
    let daemon = start(&limiter, POLICY)?;
    let program = status(&limiter)?.interfaces[0].program_id;
    move_away()?;
    daemon.end(Signal::SIGKILL)?;
    let said = unload(&limiter)?;
    fs::remove_file(&elsewhere)?;
    assert!(
        said.starts_with(&format!(
            "nothing was attached\nstill attached, by pins elsewhere: program {program} on {HOST_INTERFACE} (link "
        )),
        "{said}"
    );
    Ok(())
}
