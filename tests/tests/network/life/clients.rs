//! Clients of the control socket that misbehave do not disturb the others.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};

use crate::common::{PATIENCE, Site, request, start, status};

/// How long an answer may take on a busy machine; undisturbed, it takes milliseconds.
const SOON: Duration = Duration::from_secs(2);

fn answers_soon(limiter: &limiter_lab::Limiter<'_>, beside: &str) -> Result<()> {
    let start = Instant::now();
    assert!(status(limiter)?.ready, "beside {beside}");
    let elapsed = start.elapsed();
    assert!(
        elapsed < SOON,
        "beside {beside}, an answer took {elapsed:?}"
    );
    Ok(())
}

#[test]
fn silent_and_talkative_clients_do_not_disturb() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let connect = || UnixStream::connect(&limiter.socket);
    let silent = (0..10).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
    answers_soon(&limiter, "clients that say nothing")?;
    for garbage in [
        &b"\0\x01\x02\xff\xfe"[..],
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
    ] {
        connect()?.write_all(garbage)?;
    }
    answers_soon(&limiter, "clients that send garbage")?;
    let megabyte = vec![b'x'; 1 << 20];
    let mut endless = connect()?;
    endless.set_write_timeout(Some(SOON))?;
    // The daemon may hang up before it has all.
    drop(endless.write_all(&megabyte));
    let mut long_header = connect()?;
    long_header.set_write_timeout(Some(SOON))?;
    long_header.write_all(b"GET /v1/status HTTP/1.1\r\nX: ")?;
    drop(long_header.write_all(&megabyte));
    answers_soon(&limiter, "clients that send a megabyte")?;
    let mut answer = Vec::new();
    drop(long_header.read_to_end(&mut answer));
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"),
        "{answer:?}"
    );
    drop(silent);
    answers_soon(&limiter, "clients that went")
}

#[test]
fn many_silent_clients_are_hung_up_on() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    // More than are served at once.
    let mut silent = (0..100)
        .map(|_| UnixStream::connect(&limiter.socket))
        .collect::<Result<Vec<_>, _>>()?;
    assert!(status(&limiter)?.ready, "the wait is bounded");
    for client in &mut silent {
        is_hung_up_on(client)?;
    }
    Ok(())
}

fn is_hung_up_on(client: &mut UnixStream) -> Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let mut answer = Vec::new();
    client
        .read_to_end(&mut answer)
        .context("who says nothing is hung up on")?;
    Ok(())
}

#[test]
fn a_client_that_falls_silent_is_hung_up_on() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    for words in [
        "GET /v1/status HTTP/1.1\r\nHost: limiter\r\n\r\n",
        "GET /v1/status HTTP/1.1\r\nHost: limi",
        "GET /v1/status HTTP/1.1\r\nHost: limiter\r\nContent-Length: 1000\r\n\r\nx",
    ] {
        let mut client = UnixStream::connect(&limiter.socket)?;
        client.write_all(words.as_bytes())?;
        is_hung_up_on(&mut client).with_context(|| format!("after {words:?}"))?;
    }
    Ok(())
}

#[test]
fn a_megabyte_is_refused_before_it_is_sent() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let mut client = UnixStream::connect(&limiter.socket)?;
    client.write_all(
        b"POST /v1/unload HTTP/1.1\r\nHost: limiter\r\nContent-Length: 1048576\r\n\r\n",
    )?;
    client.set_read_timeout(Some(PATIENCE))?;
    let mut answer = [0; 12];
    client.read_exact(&mut answer)?;
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert!(status(&limiter)?.ready, "it was not unloaded");
    Ok(())
}

#[test]
fn many_clients_at_once_are_all_answered() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    thread::scope(|scope| {
        let askers: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| request(&limiter.socket, "GET", "/v1/status")))
            .collect();
        for asker in askers {
            let answer = asker
                .join()
                .map_err(|_panic| anyhow!("an asker panicked"))??;
            assert_eq!(answer.status, 200);
        }
        Ok(())
    })
}
