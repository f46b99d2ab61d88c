//! The socket speaks HTTP with JSON, as curl does.

use anyhow::Result;

use crate::common::{Site, request, start, status};

#[test]
fn curl_gets_what_the_commands_get() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let get = |path: &str| {
        let answer = request(&limiter.socket, "GET", path)?;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    };
    let mut by_curl = get("/v1/status")?;
    let mut by_command = limiter.status()?;
    for status in [&mut by_curl, &mut by_command] {
        // These may differ from one moment to the next.
        status["uptime_s"].take();
        status["sources"]["tracked_age_s"].take();
    }
    assert_eq!(by_curl, by_command);
    assert_eq!(
        get("/v1/explain?address=198.51.100.7&proto=tcp&dport=22&syn=true")?,
        limiter.json(&[
            "explain",
            "198.51.100.7",
            "--proto",
            "tcp",
            "--dport",
            "22",
            "--syn",
            "--json"
        ])?
    );
    assert_eq!(
        get("/v1/explain?address=2001:db8::7")?,
        limiter.json(&["explain", "2001:db8::7", "--json"])?
    );
    assert_eq!(get("/v1/top")?["busiest"], serde_json::json!([]));
    Ok(())
}

#[test]
fn what_cannot_be_answered_is_said_in_json() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    for (path, code, part) in [
        ("/", 404, "no such path"),
        ("/v1", 404, "no such path"),
        ("/v1/", 404, "no such path"),
        ("/v2/status", 404, "no such path"),
        ("/v1/status/", 404, "no such path"),
        ("/metrics", 404, "no such path"),
        ("/v1/explain", 400, "address"),
        ("/v1/explain?address=", 400, "address"),
        ("/v1/explain?address=nonsense", 400, "address"),
        ("/v1/explain?address=192.0.2.1&dport=65536", 400, "dport"),
        ("/v1/explain?address=192.0.2.1&dport=-1", 400, "dport"),
        ("/v1/explain?address=192.0.2.1&sport=x", 400, "sport"),
        ("/v1/explain?address=192.0.2.1&proto=sctp", 400, "proto"),
        ("/v1/explain?address=192.0.2.1&syn=maybe", 400, "syn"),
        ("/v1/top?interval_ms=99", 400, "from 100 to 30000"),
        ("/v1/top?interval_ms=30001", 400, "from 100 to 30000"),
        ("/v1/top?interval_ms=x", 400, "interval_ms"),
        ("/v1/top?interval=1", 400, "interval"),
    ] {
        let answer = request(&limiter.socket, "GET", path)?;
        assert_eq!(answer.status, code, "{path}: {answer:?}");
        let json = answer.json()?;
        let error = json["error"].as_str().unwrap_or_default();
        assert!(error.contains(part), "{path}: {json}");
        assert_eq!(
            json.as_object().map(serde_json::Map::len),
            Some(1),
            "{path}: {json}"
        );
    }
    Ok(())
}

#[test]
fn asking_does_not_change_and_changing_is_not_asking() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    for (method, path) in [
        ("GET", "/v1/unload"),
        ("POST", "/v1/status"),
        ("DELETE", "/v1/status"),
        ("PUT", "/v1/unload"),
    ] {
        let answer = request(&limiter.socket, method, path)?;
        assert_eq!(answer.status, 405, "{method} {path}");
    }
    assert!(status(&limiter)?.ready);
    Ok(())
}

#[test]
fn a_wrong_method_is_answered_in_json_too() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let answer = request(&limiter.socket, "GET", "/v1/unload")?;
    assert!(answer.json()?["error"].is_string(), "{answer:?}");
    Ok(())
}
