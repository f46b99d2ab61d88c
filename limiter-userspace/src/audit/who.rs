//! Who changes something.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who changes something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Who {
    /// A process that asked for it.
    Process(Process),
    /// Whoever wrote a file.
    File {
        /// The file.
        file: String,
        /// The name of its owner, or the number of one without a name.
        owner: String,
    },
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its user.
    pub uid: u32,
    /// The user's name, if it has one.
    pub user: Option<String>,
    /// The process, if it can be seen.
    pub pid: Option<i32>,
    /// What the process calls itself, if it can be seen.
    pub comm: Option<String>,
}

impl Who {
    /// The user: a name, or the number of one without a name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Process(Process { uid, user, .. }) => {
                user.clone().unwrap_or_else(|| uid.to_string())
            }
            Self::File { owner, .. } => owner.clone(),
        }
    }
}

impl fmt::Display for Who {
    /// `alice (limiter, process 4242)` or `root (owner of /etc/limiter.toml)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match self {
            Self::Process(Process { pid, comm, .. }) => match (comm, pid) {
                (Some(comm), Some(pid)) => write!(f, " ({comm}, process {pid})"),
                (None, Some(pid)) => write!(f, " (process {pid})"),
                (_, None) => Ok(()),
            },
            Self::File { file, .. } => write!(f, " (owner of {file})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(user: Option<&str>, pid: Option<i32>, comm: Option<&str>) -> Who {
        Who::Process(Process {
            uid: 1000,
            user: user.map(str::to_owned),
            pid,
            comm: comm.map(str::to_owned),
        })
    }

    #[test]
    fn as_people_read_it() {
        for (who, shown) in [
            (
                process(Some("alice"), Some(42), Some("limiter")),
                "alice (limiter, process 42)",
            ),
            (process(None, Some(42), None), "1000 (process 42)"),
            (process(Some("alice"), None, None), "alice"),
            (
                Who::File {
                    file: "/etc/limiter.toml".to_owned(),
                    owner: "root".to_owned(),
                },
                "root (owner of /etc/limiter.toml)",
            ),
        ] {
            assert_eq!(who.to_string(), shown);
            let json = serde_json::to_string(&who).unwrap();
            assert_eq!(serde_json::from_str::<Who>(&json).unwrap(), who, "{json}");
        }
    }
}
