//! The audit log, for people.

use serde_json::Value;

use super::{line, table::printable};
use crate::audit::{Audit, Entry};

/// Characters of a value that are shown; `--json` shows all.
const SHOWN: usize = 200;

/// `limiter audit`.
#[must_use]
pub fn audit(
    Audit {
        entries,
        unreadable,
    }: &Audit,
) -> String {
    let mut out = String::new();
    if entries.is_empty() {
        line(&mut out, format_args!("no changes recorded"));
    }
    for entry in entries {
        show_entry(&mut out, entry);
    }
    if *unreadable > 0 {
        line(
            &mut out,
            format_args!("{unreadable} lines could not be read: torn, or of another version"),
        );
    }
    out
}

fn show_entry(out: &mut String, entry: &Entry) {
    let Entry {
        time,
        who,
        what,
        before,
        after,
        why,
    } = entry;
    let why = why
        .as_ref()
        .map_or_else(String::new, |why| format!(": {}", printable(why)));
    line(
        out,
        format_args!(
            "{}  {} by {}{why}",
            time.seconds(),
            what.name(),
            printable(&who.to_string())
        ),
    );
    line(
        out,
        format_args!("    {} -> {}", shown(before), shown(after)),
    );
}

/// A value on one line, not too long.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| match value {
                    Value::String(text) => format!("{name} {text}"),
                    value => format!("{name} {value}"),
                })
                .collect();
            fields.join(", ")
        }
        value => value.to_string(),
    };
    let text = printable(&text);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::{
        What,
        who::{Process, Who},
    };

    #[test]
    fn changes_with_who_and_why() {
        let ban = Entry {
            time: "2026-12-01T08:30:00.123456789Z".parse().unwrap(),
            who: Who::Process(Process {
                uid: 1000,
                user: Some("alice".to_owned()),
                pid: Some(42),
                comm: Some("limi\u{1b}ter".to_owned()),
            }),
            what: What::Ban,
            before: Value::Null,
            after: json!({ "prefix": "198.51.100.7", "for_s": 600, "until": null }),
            why: Some("scan".to_owned()),
        };
        let policy = Entry {
            who: Who::File {
                file: "/etc/limiter.toml".to_owned(),
                owner: "root".to_owned(),
            },
            what: What::Policy,
            before: json!("x".repeat(300)),
            after: json!(true),
            why: None,
            ..ban.clone()
        };
        let shown = audit(&Audit {
            entries: vec![ban, policy],
            unreadable: 1,
        });
        let long = "x".repeat(200);
        assert_eq!(
            shown,
            format!(
                "\
2026-12-01T08:30:00Z  ban by alice (limi\\u{{1b}}ter, process 42): scan
    nothing -> for_s 600, prefix 198.51.100.7
2026-12-01T08:30:00Z  policy by root (owner of /etc/limiter.toml)
    {long}... -> true
1 lines could not be read: torn, or of another version
"
            )
        );
        assert_eq!(audit(&Audit::default()), "no changes recorded\n");
    }
}
