//! Prometheus metrics, read by a real parser and held against the rules of OpenMetrics.

mod agreement;
mod exposition;
mod policy;
mod port;
mod scraping;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, ensure};

use crate::common::{Answer, Site, get};

/// Where the daemon serves them; any port is free in a namespace of one's own.
const PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9433);

/// The flags of a daemon that serves them.
const FLAGS: &str = "--rate 1000/s --burst 100 --metrics 127.0.0.1:9433";

fn scrape(site: &Site) -> Result<Answer> {
    let answer = get(&site.host, PORT, "/metrics")?;
    ensure!(answer.status == 200, "{answer:?}");
    Ok(answer)
}
