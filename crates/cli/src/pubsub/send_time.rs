//! Checks whether the kernel can send at exact times (`--send-time`): only the queueing disciplines `fq` and `etf`
//! support that.

use std::process::Command;

/// Warns if no possible interface has such a queueing discipline, or if that is unknown.
pub(super) fn warn(interface: Option<&str>) {
    let mut tc = Command::new("tc");
    tc.args(["qdisc", "show"]);
    // An address of an interface is not a device name.
    if let Some(name) = interface.filter(|name| !name.contains([':', '.'])) {
        tc.args(["dev", name]);
    }
    let device = interface.unwrap_or("eth0");
    let advice = format!(
        "without one, --send-time has no effect, and messages are sent early by the time of --prepare. Run tc qdisc replace dev \
         {device} root fq"
    );
    match tc.output() {
        Ok(output) if output.status.success() => {
            if !has_timed(&String::from_utf8_lossy(&output.stdout)) {
                tracing::warn!("no queueing discipline fq or etf at the interface: {advice}");
            }
        }
        _ => tracing::warn!(
            "cannot determine whether the interface has the queueing discipline fq or etf: {advice}"
        ),
    }
}

/// Whether the output of `tc qdisc show` contains such a queueing discipline.
fn has_timed(text: &str) -> bool {
    text.lines().any(|line| matches!(line.split_whitespace().nth(1), Some("fq" | "etf")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fq_and_etf_support_send_times() {
        assert!(!has_timed(
            "qdisc noqueue 0: dev lo root refcnt 2 \nqdisc fq_codel 0: dev eth0 root refcnt 2\n"
        ));
        assert!(has_timed("qdisc mq 0: dev eth0 root\nqdisc fq 8001: dev eth0 parent :1 limit 10000p\n"));
        assert!(has_timed("qdisc etf 100: dev eth0 root clockid TAI\n"));
    }
}
