//! A polite client: it asks now and then, waits for the answers, and knows what it lost.

mod channel;
mod ping;
mod tcp;

use std::{net::IpAddr, time::Duration};

use anyhow::{Result, ensure};

use self::channel::Channel;
use crate::{lab::Lab, netns::Namespace, stop::Stop, task::Task};

/// How a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Datagrams to an [`crate::EchoServer`].
    Udp {
        /// Its port.
        port: u16,
    },
    /// A TCP connection for every request, to an [`crate::EchoServer`].
    Tcp {
        /// Its port.
        port: u16,
    },
    /// ICMP echo requests, which the kernel answers.
    Ping,
}

/// A client with its habits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polite {
    /// Whom it asks.
    pub server: IpAddr,
    /// How it asks.
    pub manner: Manner,
    /// Requests per second, evenly spaced.
    pub per_second: u64,
    /// How long it goes on asking.
    pub duration: Duration,
    /// How long it waits for an answer; later ones count as lost.
    pub patience: Duration,
}

/// What became of a client's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Requests sent, those included that the kernel refused to send.
    pub sent: u64,
    /// Requests answered in time, each counted once.
    pub answered: u64,
    /// Half of the answers came faster; `None` without answers.
    pub median: Option<Duration>,
    /// The slowest answer.
    pub slowest: Option<Duration>,
}

impl Answers {
    fn new(sent: u64, mut times: Vec<Duration>) -> Result<Self> {
        times.sort_unstable();
        Ok(Self {
            sent,
            answered: u64::try_from(times.len())?,
            median: times.get(times.len() / 2).copied(),
            slowest: times.last().copied(),
        })
    }

    /// Requests without an answer.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent - self.answered
    }
}

impl Polite {
    /// A client that asks ten times a second for `duration` and waits a second for each answer.
    #[must_use]
    pub fn new(server: IpAddr, manner: Manner, duration: Duration) -> Self {
        Self {
            server,
            manner,
            per_second: 10,
            duration,
            patience: Duration::from_secs(1),
        }
    }

    /// Starts it in a lab's network.
    ///
    /// # Errors
    /// As for [`Polite::start_at`].
    pub fn start(&self, lab: &Lab, stop: &Stop) -> Result<Task<Answers>> {
        self.start_at(&lab.net, stop)
    }

    /// Starts it. After a stop, what is under way may still be answered.
    ///
    /// # Errors
    /// No requests at all, no route to the server, or, for a ping, not root.
    pub fn start_at(&self, namespace: &Namespace, stop: &Stop) -> Result<Task<Answers>> {
        let client = *self;
        ensure!(
            client.per_second > 0,
            "0 requests per second never send the first"
        );
        let port = match client.manner {
            Manner::Tcp { port } => {
                let inside = namespace.inside();
                return Task::start("polite-tcp", stop, move |stop, progress| {
                    inside.enter()?;
                    tcp::converse(&client, port, stop, progress)
                });
            }
            Manner::Udp { port } => Some(port),
            Manner::Ping => None,
        };
        let channel = namespace.run(|| Channel::open(client.server, port))?;
        Task::start("polite", stop, move |stop, progress| {
            channel.converse(&client, stop, progress)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_summed_up() {
        let times = [5, 1, 3].map(Duration::from_millis).to_vec();
        let answers = Answers::new(4, times).expect("few");
        assert_eq!((answers.answered, answers.lost()), (3, 1));
        assert_eq!(answers.median, Some(Duration::from_millis(3)));
        assert_eq!(answers.slowest, Some(Duration::from_millis(5)));
        assert_eq!(
            Answers::new(0, Vec::new()).expect("none"),
            Answers::default()
        );
    }
}
