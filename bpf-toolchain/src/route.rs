//! The two ways to a compiler for the BPF target.

use std::{env, fmt, str::FromStr};

/// The environment variable that forces a [`Route`].
pub const ROUTE_VARIABLE: &str = "LIMITER_BPF_TOOLCHAIN";

/// Where the compiler for the BPF target comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// rustup's nightly and the source of `core`.
    Rustup,
    /// The distribution's compiler and its `core` for the BPF target.
    Debian,
}

impl Route {
    /// Every route, the preferred one first.
    pub const ALL: [Self; 2] = [Self::Rustup, Self::Debian];

    /// The route that [`ROUTE_VARIABLE`] asks for, if it asks for one.
    ///
    /// # Errors
    ///
    /// When the variable holds a word that names no route.
    pub fn forced() -> Result<Option<Self>, UnknownRoute> {
        match env::var_os(ROUTE_VARIABLE) {
            None => Ok(None),
            Some(value) if value.is_empty() => Ok(None),
            Some(value) => value.to_string_lossy().parse().map(Some),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rustup => "rustup",
            Self::Debian => "debian",
        })
    }
}

impl FromStr for Route {
    type Err = UnknownRoute;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|route| route.to_string() == word)
            .ok_or_else(|| UnknownRoute(word.to_owned()))
    }
}

/// [`ROUTE_VARIABLE`] holds a word that names no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRoute(String);

impl fmt::Display for UnknownRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{ROUTE_VARIABLE}={} names no route: use rustup or debian, or unset it",
            self.0
        )
    }
}

impl std::error::Error for UnknownRoute {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_read_back_from_its_name() {
        for route in Route::ALL {
            assert_eq!(route.to_string().parse(), Ok(route));
        }
    }

    #[test]
    fn an_unknown_route_is_named_in_the_error() {
        let error = "fedora".parse::<Route>().unwrap_err().to_string();
        assert!(error.contains("LIMITER_BPF_TOOLCHAIN=fedora"), "{error}");
    }
}
