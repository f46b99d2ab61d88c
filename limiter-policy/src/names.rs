//! Names: of interfaces, and of the things that a policy defines.

use limiter_common::limits::MAX_INTERFACES;

/// The longest name of a limit, service or class.
const MAX_NAME: usize = 63;

/// Checks the name of a limit, service or class. It is part of metrics and of dotted keys, so it needs no quoting anywhere.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.len() <= MAX_NAME
        && name.starts_with(plain)
        && name.chars().all(|c| plain(c) || c == '-' || c == '_');
    if good {
        Ok(())
    } else {
        Err(format!(
            "`{name}` is not a name: use 1 to {MAX_NAME} of a-z, 0-9, `-` and `_`, beginning with a letter or digit"
        ))
    }
}

/// Checks the name of an interface.
pub(crate) fn check_interface(name: &str) -> Result<(), String> {
    let bad = name.is_empty()
        || name.len() > 15
        || name.contains(['/', '\0'])
        || name.contains(char::is_whitespace);
    if bad {
        Err(
            "not an interface name (1 to 15 bytes without blanks or slashes); `ip link` lists them"
                .to_owned(),
        )
    } else {
        Ok(())
    }
}

/// Checks how many interfaces there are.
pub(crate) fn check_interface_count(count: usize) -> Result<(), String> {
    if count > MAX_INTERFACES as usize {
        Err(format!(
            "{count} interfaces, one daemon serves at most {MAX_INTERFACES}; run another with a --socket and --pin-dir of \
             its own"
        ))
    } else {
        Ok(())
    }
}

/// The known name that is most likely meant by one that is not known.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Beyond this no name is near, and comparing takes time and memory by the product of the lengths.
    if name.len() > 2 * MAX_NAME {
        return None;
    }
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .min()
        .map(|(_, known)| known)
}

/// ` did you mean ...` or the list of what there is.
pub(crate) fn suggestion<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    if let Some(near) = nearest(name, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let known: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
    if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("known are {}", known.join(", "))
    }
}
