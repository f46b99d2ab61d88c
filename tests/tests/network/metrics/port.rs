//! The port serves metrics and nothing else.

use std::net::TcpStream;

use anyhow::Result;

use super::{FLAGS, PORT};
use crate::common::{Site, get, start, status};

#[test]
fn the_port_serves_nothing_else() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, FLAGS)?;
    for path in [
        "/",
        "/v1/status",
        "/v1/top",
        "/v1/explain?address=192.0.2.2",
        "/v1/unload",
        "/v1/ban",
        "/v1/bans",
        "/v1/audit",
        "/metrics/",
    ] {
        let answer = get(&site.host, PORT, path)?;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()?["error"].is_string(), "{path}");
    }
    assert!(status(&limiter)?.ready);
    Ok(())
}

#[test]
fn without_the_flag_nobody_listens() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1000/s --burst 100")?;
    let connected = site.host.run(|| Ok(TcpStream::connect(PORT).is_ok()))?;
    assert!(!connected);
    Ok(())
}

#[test]
fn metrics_are_served_over_ipv6_too() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1000/s --burst 100 --metrics [::1]:9433")?;
    let answer = get(&site.host, "[::1]:9433".parse()?, "/metrics")?;
    assert_eq!(answer.status, 200);
    super::exposition::check(&answer.body).map(drop)
}
