//! Slow loris: connections that send just enough to look alive.

use crate::Run;
use crate::connections::Connections;
use crate::idle::STAGE;
use crate::report::Findings;
use crate::wire::{Raw, Wire, chunk_head, hello, open};
use std::time::{Duration, Instant};

/// One third of the connections each sends its Hello, its OpenSecureChannel or a message at one byte per second.
pub(crate) fn loris(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let none = "http://opcfoundation.org/UA/SecurityPolicy#None";
    let mut connections = Connections::default();
    let mut texts = Vec::new();
    for number in 0..run.connections {
        if run.is_over() {
            break;
        }
        let source = run.source(number, 40);
        let made = match number % 3 {
            0 => crate::wire::dial(run.address, source, None).and_then(Raw::new).map(|raw| (raw, hello())),
            1 => crate::wire::dial(run.address, source, None).and_then(Raw::new).map(|mut raw| {
                raw.send(&hello());
                (raw, open(none, None, None, &[0; 120]))
            }),
            _ => match Wire::open(run.address, source) {
                Ok(wire) => {
                    let mut text = chunk_head(b'F', 8_000, wire.channel_id(), 1, 52, 2);
                    text.resize(8_000, 0);
                    Raw::new(wire.into_stream()).map(|raw| (raw, text))
                }
                Err(_) => {
                    connections.failed += 1;
                    continue;
                }
            },
        };
        match made {
            Ok((raw, text)) => {
                connections.members.push(crate::connections::Member {
                    raw,
                    since: Instant::now(),
                    ended: None,
                });
                texts.push(text);
            }
            Err(_) => connections.failed += 1,
        }
    }
    let mut next = 0;
    let mut due = Instant::now();
    // The stage of the last connection may have started only now.
    connections.wait(run, run.patience(STAGE), |connections| {
        if Instant::now() < due {
            return;
        }
        due += Duration::from_secs(1);
        for (member, text) in connections.members.iter_mut().zip(&texts) {
            if let (None, Some(byte)) = (member.ended, text.get(next..=next)) {
                member.raw.send(byte);
            }
        }
        next += 1;
    });
    findings.fact("connected", format!("{} (failed: {})", connections.members.len(), connections.failed));
    findings.fact("ended by the server", connections.outcomes());
    findings.fact("longest", format!("{:.1} s", connections.longest().as_secs_f64()));
    findings.claim("all are closed at the deadline of their stage", connections.open() == 0);
    Ok(findings)
}
