//! InfluxDB line protocol: to a real InfluxDB 1, which is killed and restarted, and to a strict imitation of version 2 that
//! rejects some lines.

use crate::counting;
use crate::missing;
use crate::stand::{MS, Stand};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LAST: u32 = 2000;

/// Path of influxd: where interop/gateway.sh installs it, or in the search path.
fn influxd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/influxdb");
    let mut folders = std::env::split_paths(&path).chain([built]);
    folders.find_map(|folder| Some(folder.join("influxd")).filter(|program| program.is_file()))
}

struct Influx {
    child: Child,
    port: u16,
}

impl Influx {
    fn start(program: &Path, folder: &Path, port: u16) -> Self {
        let file = folder.join("influxdb.conf");
        let place = folder.display();
        let text = format!(
            "reporting-disabled = true\nbind-address = \"127.0.0.1:0\"\n[meta]\ndir = \"{place}/meta\"\n\
             [data]\ndir = \"{place}/data\"\nwal-dir = \"{place}/wal\"\nquery-log-enabled = false\n\
             [http]\nbind-address = \"127.0.0.1:{port}\"\nlog-enabled = false\n[monitor]\nstore-enabled = false\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        command.arg("-config").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let influx = Self { child: command.spawn().unwrap(), port };
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "influxd does not listen");
            std::thread::sleep(10 * MS);
        }
        influx
    }

    fn query(&self, method: &str, query: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let query = query.replace(' ', "%20").replace('"', "%22").replace('\'', "%27");
        write!(stream, "{method} /query?db=plant&q={query} HTTP/1.0\r\nContent-Length: 0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for Influx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn destination(url: &str, folder: &Path, more: &str) -> String {
    format!(
        "[[destination]]\nname = \"db\"\ntype = \"influx\"\nurl = \"{url}\"\nqueue = {:?}\nretry = \"20 ms\"\n\
         retry_max = \"200 ms\"\nflush = \"10 ms\"\nbatch_max = 300\n{more}",
        folder.join("q.db").display().to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn values_reach_a_real_influxdb_that_is_killed() {
    let Some(program) = influxd() else {
        missing::skip(missing::SERVERS, "influxd is not installed (interop/servers.sh builds it)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut influx = Influx::start(&program, folder.path(), port);
    influx.query("POST", "CREATE DATABASE plant");
    let text = counting::source(LAST)
        + &destination(&format!("http://127.0.0.1:{port}"), folder.path(), "database = \"plant\"\n");
    let stand = Stand::new(&text).await;
    for until in [50, 600] {
        stand.until_destination("db", |view| view.counters.sent > until).await;
        drop(influx);
        let failed = stand.destination("db").counters.errors;
        stand
            .until_destination("db", |view| view.counters.errors > failed && view.counters.queued > 20)
            .await;
        influx = Influx::start(&program, folder.path(), port);
    }
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("db", |view| view.counters.sent >= u64::from(LAST) && view.counters.queued == 0)
        .await;
    let found =
        influx.query("GET", "SELECT value FROM tag_values WHERE \"tag\" = 'counter/Count' AND status = 0");
    let rows = found["results"][0]["series"][0]["values"].as_array().unwrap_or_else(|| panic!("{found}"));
    let numbers: Vec<i64> =
        rows.iter().filter_map(|row| row[1].as_f64()).map(|number| number as i64).collect();
    assert_eq!(numbers, (1..=i64::from(LAST)).collect::<Vec<_>>());
    let counted = stand.destination("db").counters;
    assert_eq!((counted.refused, counted.overrun, counted.evicted), (0, 0, 0), "{counted:?}");
    stand.end().await;
}

/// The state and behaviour of the imitated server.
#[derive(Default)]
struct State {
    /// Numbers by time.
    stored: BTreeMap<i64, f64>,
    has_bucket: bool,
    heads: Vec<String>,
}

/// Stores the lines of a request, or returns why not.
fn store(state: &mut State, body: &str) -> Result<(), (&'static str, &'static str)> {
    if !state.has_bucket {
        return Err(("404 Not Found", "bucket \\\"line\\\" not found"));
    }
    let mut lines = Vec::new();
    for line in body.lines() {
        let rest =
            line.strip_prefix("m,tag=counter/Count status=").ok_or(("400 Bad Request", "unknown series"))?;
        let (fields, time) = rest.rsplit_once(' ').ok_or(("400 Bad Request", "no time"))?;
        let time: i64 = time.parse().map_err(|_| ("400 Bad Request", "no time"))?;
        // After the last value, the tag becomes uncertain.
        let Some(number) = fields.strip_prefix("0i,value=") else { continue };
        let number: f64 = number.parse().map_err(|_| ("400 Bad Request", "no number"))?;
        if number % 100.0 == 0.0 {
            return Err(("422 Unprocessable Entity", "beyond the retention policy"));
        }
        lines.push((time, number));
    }
    state.stored.extend(lines);
    Ok(())
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let (mut head, mut len) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().unwrap();
            }
            head.push_str(&line);
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body)?;
        let mut state = state.lock().unwrap();
        state.heads.push(head);
        match store(&mut state, core::str::from_utf8(&body).unwrap()) {
            Ok(()) => stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?,
            Err((status, said)) => {
                let json = format!("{{\"code\":\"x\",\"message\":\"{said}\"}}");
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{json}", json.len())?;
            }
        }
    }
}

fn imitation() -> (SocketAddr, Arc<Mutex<State>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let state = Arc::new(Mutex::new(State::default()));
    let shared = Arc::clone(&state);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&shared);
            std::thread::spawn(move || serve(stream, &state));
        }
    });
    (address, state)
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_lines_are_omitted_only_after_the_settings_have_worked() {
    let (address, state) = imitation();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "canary-17\n").unwrap();
    let more = format!(
        "org = \"my org\"\nbucket = \"line\"\nmeasurement = \"m\"\ntoken_file = {:?}\n",
        folder.path().join("token").display().to_string()
    );
    let text = counting::source(1050) + &destination(&format!("http://{address}"), folder.path(), &more);
    let stand = Stand::new(&text).await;
    stand.until_destination("db", |view| view.counters.queued >= 1050).await;
    let view = stand.destination("db").counters;
    assert_eq!((view.sent, view.refused), (0, 0));
    let error = view.last_error.unwrap();
    assert!(
        error.contains("404 Not Found: bucket \"line\" not found") && !error.contains("canary"),
        "{error}"
    );
    state.lock().unwrap().has_bucket = true;
    // The queue is empty just before its last batch is counted.
    stand
        .until_destination("db", |view| {
            let counted = &view.counters;
            counted.queued == 0 && counted.sent + counted.refused == counted.accepted
        })
        .await;
    let view = stand.destination("db").counters;
    assert_eq!(view.refused, 10, "{view:?}");
    assert!(view.last_error.unwrap().contains("beyond the retention policy"));
    stand.end().await;
    let state = state.lock().unwrap();
    let numbers: Vec<i64> = state.stored.values().map(|number| *number as i64).collect();
    assert_eq!(numbers, (1..=1050).filter(|number| number % 100 != 0).collect::<Vec<_>>());
    let head = state.heads.last().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post /api/v2/write?org=my%20org&bucket=line&precision=ns http/1.1"), "{head}");
    assert!(head.contains("authorization: token canary-17"), "{head}");
}
