//! Packet loss.

use super::random::Random;
use serde::Serialize;

/// Model of packet loss.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Each packet with the same probability, independent of others.
    Independent {
        /// The probability.
        probability: f64,
    },
    /// In bursts (Gilbert and Elliott): the link is in a good state without loss, or in a bad state.
    Bursts {
        /// Probability per packet to change from the good to the bad state.
        begin: f64,
        /// Probability per packet to leave the bad state; its inverse is the mean length of a burst in packets.
        end: f64,
        /// Probability that a packet is lost in the bad state.
        lost: f64,
    },
}

impl Loss {
    /// Bursts with this mean number of packets, all of which are lost, such that `share` of all packets are lost.
    #[must_use]
    pub fn bursts(share: f64, packets: f64) -> Self {
        let end = 1.0 / packets.max(1.0);
        let share = share.clamp(0.0, 0.99);
        Self::Bursts { begin: (end * share / (1.0 - share)).min(1.0), end, lost: 1.0 }
    }

    /// The long-term share of lost packets.
    #[must_use]
    pub fn share(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Independent { probability } => probability,
            Self::Bursts { begin, end, lost } if begin + end > 0.0 => lost * begin / (begin + end),
            Self::Bursts { .. } => 0.0,
        }
    }
}

/// State of the loss model.
#[derive(Debug, Clone, Default)]
pub(super) struct Losing {
    is_bad: bool,
}

impl Losing {
    /// Whether the next packet is lost.
    pub(super) fn next(&mut self, loss: &Loss, random: &mut Random) -> bool {
        match *loss {
            Loss::None => false,
            Loss::Independent { probability } => random.chance(probability),
            Loss::Bursts { begin, end, lost } => {
                let turns = random.chance(if self.is_bad { end } else { begin });
                self.is_bad ^= turns;
                self.is_bad && random.chance(lost)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of lost packets, and mean length of a run of lost packets.
    fn observe(loss: Loss) -> (f64, f64) {
        const COUNT: usize = 300_000;
        let (mut random, mut losing) = (Random::new(11), Losing::default());
        let lost: Vec<bool> = (0..COUNT).map(|_| losing.next(&loss, &mut random)).collect();
        let total = lost.iter().filter(|it| **it).count();
        let runs = lost.windows(2).filter(|pair| pair == &[false, true]).count();
        (total as f64 / COUNT as f64, total as f64 / runs.max(1) as f64)
    }

    #[test]
    fn loss_has_the_requested_share_and_run_length() {
        assert_eq!(observe(Loss::None), (0.0, 0.0));
        let (share, run) = observe(Loss::Independent { probability: 0.02 });
        assert!((share - 0.02).abs() < 0.002 && run < 1.1, "{share} {run}");
        let bursts = Loss::bursts(0.02, 5.0);
        assert!((bursts.share() - 0.02).abs() < 1e-9);
        let (share, run) = observe(bursts);
        assert!((share - 0.02).abs() < 0.003 && (run - 5.0).abs() < 0.4, "{share} {run}");
    }
}
