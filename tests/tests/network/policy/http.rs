//! What curl can do: every route that concerns the policy, and what it answers to what cannot be meant.

use anyhow::Result;
use serde_json::json;

use super::{FEW, Place, Probe};
use crate::common::{ATTACKER, Site, request, send, send_in_chunks, status};

const ASKING: [&str; 4] = ["/v1/policy", "/v1/bans", "/v1/overrides", "/v1/audit"];
const CHANGING: [&str; 6] = [
    "/v1/reload",
    "/v1/ban",
    "/v1/unban",
    "/v1/override",
    "/v1/override/remove",
    "/v1/monitor",
];

#[test]
fn curl_changes_what_the_commands_change() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let socket = &limiter.socket;
    let mut probe = Probe::new(&site)?;
    for (path, body, done) in [
        (
            "/v1/ban",
            json!({ "prefix": ATTACKER, "for_s": 600, "reason": "scan" }),
            format!("{ATTACKER} is banned for 600 s"),
        ),
        (
            "/v1/override",
            json!({ "limit": "few", "rate": "1000/s", "burst": "50", "for_s": 60 }),
            "few has other terms now, for 60 s".to_owned(),
        ),
        (
            "/v1/override/remove",
            json!({ "limit": "few" }),
            "few has the policy's terms again".to_owned(),
        ),
        (
            "/v1/unban",
            json!({ "prefix": ATTACKER }),
            format!("{ATTACKER} is banned no more"),
        ),
        (
            "/v1/monitor",
            json!({ "on": true }),
            "nothing is dropped from now on; what would be is counted".to_owned(),
        ),
    ] {
        let answer = send(socket, "POST", path, &body.to_string())?;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(
            answer.json()?,
            json!({ "done": done, "notices": [] }),
            "{path}"
        );
        if path == "/v1/ban" {
            assert!(!probe.passes(ATTACKER)?);
        }
    }
    assert!(probe.passes(ATTACKER)?);
    // A reload needs no body.
    for body in ["", "{}", "{\"reason\": \"why not\"}"] {
        let answer = send(socket, "POST", "/v1/reload", body)?;
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
    }
    for path in ASKING {
        let answer = request(socket, "GET", path)?;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()?;
    }
    let policy = request(socket, "GET", "/v1/policy")?.json()?;
    let lines = policy["lines"].as_array().cloned().unwrap_or_default();
    assert!(lines.contains(&json!("limits.few.burst = 5")), "{policy}");
    Ok(())
}

#[test]
fn asking_does_not_change_and_changing_is_not_asking() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let wrong = ASKING
        .into_iter()
        .flat_map(|path| ["POST", "PUT", "DELETE"].map(|method| (method, path)))
        .chain(
            CHANGING
                .into_iter()
                .flat_map(|path| ["GET", "PUT", "DELETE", "PATCH"].map(|method| (method, path))),
        );
    for (method, path) in wrong {
        let answer = request(&limiter.socket, method, path)?;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(
            answer.json()?,
            json!({ "error": "this path takes another method" })
        );
    }
    Ok(())
}

#[expect(clippy::too_many_lines, reason = "a table of requests and answers")]
#[test]
fn what_is_not_understood_changes_nothing_and_is_named() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    for (path, body, part) in [
        ("/v1/ban", "", "EOF while parsing"),
        ("/v1/ban", "nonsense", "expected ident at line 1 column 2"),
        ("/v1/ban", "{}", "missing field `prefix`"),
        (
            "/v1/ban",
            r#"{"prefix":"198.51.100.7","for":600}"#,
            "unknown field `for`",
        ),
        (
            "/v1/ban",
            r#"{"prefix":"198.51.100.7/24"}"#,
            "198.51.100.0/24",
        ),
        (
            "/v1/ban",
            r#"{"prefix":"198.51.100.7","for_s":0}"#,
            "for_s: 0 s is out of range",
        ),
        (
            "/v1/ban",
            r#"{"prefix":"198.51.100.7","for_s":"10m"}"#,
            "invalid type",
        ),
        ("/v1/ban", r#"{"prefix":"192.0.2.1"}"#, "own address"),
        (
            "/v1/ban",
            r#"{"prefix":"198.51.100.7"} {}"#,
            "trailing characters",
        ),
        ("/v1/unban", r#"{"prefix":"198.51.100.7"}"#, "is not banned"),
        (
            "/v1/unban",
            r#"{"address":"198.51.100.7"}"#,
            "unknown field `address`",
        ),
        (
            "/v1/override",
            r#"{"limit":"few","for_s":60}"#,
            "at least one",
        ),
        (
            "/v1/override",
            r#"{"limit":"few","rate":"2/h"}"#,
            "missing field `for_s`",
        ),
        (
            "/v1/override",
            r#"{"limit":"none","rate":"2/h","for_s":60}"#,
            "it has few",
        ),
        (
            "/v1/override",
            r#"{"limit":"few","rate":"2","for_s":60}"#,
            "a rate needs a time",
        ),
        (
            "/v1/override",
            r#"{"limit":"few","rate":"2MB/s","for_s":60}"#,
            "the limit counts packets",
        ),
        (
            "/v1/override/remove",
            r#"{"limit":"few"}"#,
            "there is no override of it",
        ),
        (
            "/v1/override/remove",
            r#"{"name":"few"}"#,
            "unknown field `name`",
        ),
        ("/v1/monitor", r#"{"on":"yes"}"#, "expected a boolean"),
        ("/v1/monitor", r#"{"off":true}"#, "unknown field `off`"),
        (
            "/v1/reload",
            r#"{"file":"/etc/passwd"}"#,
            "unknown field `file`",
        ),
        ("/v1/reload", r#"{"reason":"two\nlines"}"#, "one line"),
    ] {
        let answer = send(&limiter.socket, "POST", path, body)?;
        assert_eq!(answer.status, 400, "{path} {body}: {answer:?}");
        let json = answer.json()?;
        let error = json["error"].as_str().unwrap_or_default();
        assert!(error.contains(part), "{path} {body}: {json}");
        assert_eq!(
            json.as_object().map(serde_json::Map::len),
            Some(1),
            "{json}"
        );
    }
    for (path, part) in [
        ("/v1/audit?last=x", "last"),
        ("/v1/audit?what=everything", "unknown variant `everything`"),
        ("/v1/audit?first=1", "unknown field `first`"),
    ] {
        let answer = request(&limiter.socket, "GET", path)?;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        let error = answer.json()?["error"].to_string();
        assert!(error.contains(part), "{path}: {error}");
    }
    let now = status(&limiter)?;
    assert_eq!((now.policy.generation, now.bans.operator), (1, 0));
    assert_eq!(now.policy.mode, "enforce");
    Ok(())
}

#[test]
fn too_much_is_refused() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let place = Place::new(FEW)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let body = format!("{{\"prefix\":\"{}\"}}", "1".repeat(64 << 10));
    for path in CHANGING {
        let answer = send(&limiter.socket, "POST", path, &body)?;
        assert_eq!(answer.status, 413, "{path}: {answer:?}");
        let error = answer.json()?["error"].to_string();
        assert!(error.contains("at most 65536"), "{path}: {error}");
        let answer = send_in_chunks(&limiter.socket, path, &body)?;
        assert_eq!(answer.status, 413, "{path}: {answer:?}");
        let error = answer.json()?["error"].to_string();
        assert!(error.contains("length limit exceeded"), "{path}: {error}");
    }
    Ok(())
}
