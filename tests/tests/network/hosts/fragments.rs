//! Datagrams larger than the MTU, cut up by the sender's kernel.

use std::{
    net::{IpAddr, UdpSocket},
    time::Duration,
};

use anyhow::Result;
use limiter_lab::{HOST_V4, HOST_V6, NET_V4, NET_V6};

use crate::common::{Site, at_rest, start};

const PORT: u16 = 5001;

#[test]
fn cases_13_16_fragments_are_charged_one_by_one() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 10")?;
    let pairs: [(IpAddr, IpAddr); 2] = [
        (NET_V4.into(), HOST_V4.into()),
        (NET_V6.into(), HOST_V6.into()),
    ];
    for (n, (net, host)) in (1..).zip(pairs) {
        let server = site.host.run(|| Ok(UdpSocket::bind((host, PORT))?))?;
        server.set_read_timeout(Some(Duration::from_millis(300)))?;
        let client = site.net.run(|| Ok(UdpSocket::bind((net, 0))?))?;
        let mut received = 0;
        for _ in 0..8 {
            client.send_to(&[0; 2_500], (host, PORT))?;
            received += u64::from(server.recv(&mut [0; 3_000]).is_ok());
        }
        assert_eq!(received, 5, "two fragments each, from {net}");
        let status = at_rest(&limiter)?;
        let odd = &status.interfaces[0].odd;
        assert_eq!(odd["later_fragment"], n * 8);
        assert_eq!(odd["cut_first_fragment"], 0);
        assert_eq!(status.limits[0].passed, n * 10);
        assert_eq!(status.limits[0].dropped, n * 6);
    }
    Ok(())
}
