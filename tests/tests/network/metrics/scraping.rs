//! Many scrapers, and slow ones.

use std::{
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use super::{FLAGS, PORT, exposition::check, scrape};
use crate::common::{Site, start, status};

#[test]
fn case_141_twenty_scrapers_at_once_are_all_answered() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, FLAGS)?;
    let series = check(&scrape(&site)?.body)?;
    let begin = Instant::now();
    thread::scope(|scope| {
        let scrapers: Vec<_> = (0..20).map(|_| scope.spawn(|| scrape(&site))).collect();
        for scraper in scrapers {
            let answer = scraper
                .join()
                .map_err(|_panic| anyhow!("a scraper panicked"))??;
            assert_eq!(check(&answer.body)?, series);
        }
        anyhow::Ok(())
    })?;
    let elapsed = begin.elapsed();
    // Milliseconds, were it not for a busy machine.
    assert!(
        elapsed < Duration::from_secs(2),
        "20 scrapes took {elapsed:?}"
    );
    Ok(())
}

#[test]
fn silent_scrapers_do_not_disturb_the_control_socket() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, FLAGS)?;
    let silent = site.host.run(|| {
        (0..40)
            .map(|_| Ok(TcpStream::connect(PORT)?))
            .collect::<Result<Vec<_>>>()
    })?;
    let begin = Instant::now();
    assert!(status(&limiter)?.ready);
    let elapsed = begin.elapsed();
    assert!(
        elapsed < Duration::from_secs(2),
        "a status took {elapsed:?}"
    );
    // They are hung up on after a while, and others are then served.
    check(&scrape(&site)?.body)?;
    drop(silent);
    Ok(())
}
