//! A gateway that polls a web server.

use crate::stand::{MS, Stand};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taktwerk_types::{StatusCode, UtcTime};
use tokio::time::sleep;

/// A web server that answers each request with the same bytes, or hangs if there are none.
struct Site {
    address: SocketAddr,
    answer: Arc<Mutex<String>>,
    asked: Arc<Mutex<Vec<String>>>,
}

fn site() -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, asked) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(Vec::new())));
    let (text, heard) = (Arc::clone(&answer), Arc::clone(&asked));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (text, heard) = (Arc::clone(&text), Arc::clone(&heard));
            std::thread::spawn(move || serve(stream, &text, &heard));
        }
    });
    Site { address, answer, asked }
}

fn serve(mut stream: TcpStream, text: &Mutex<String>, heard: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut request = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            request.push_str(&line);
        }
        heard.lock().unwrap().push(request);
        let answer = text.lock().unwrap().clone();
        if !answer.is_empty() && stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

impl Site {
    fn json(&self, json: &str) {
        *self.answer.lock().unwrap() =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{json}", json.len());
    }

    fn raw(&self, text: &str) {
        text.clone_into(&mut self.answer.lock().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_becomes_values_and_errors_are_reported() {
    let site = site();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "canary-91\n").unwrap();
    let text = format!(
        "[[source]]\nname = \"web\"\ntype = \"http\"\nurl = \"http://{}/a?b=c\"\ninterval = \"50 ms\"\ndeadline = \"300 ms\"\n\
         retry = \"50 ms\"\nretry_max = \"50 ms\"\nlost_after = \"1 s\"\nbody_max = 1000\ntoken_file = {:?}\nheaders = [\"X-Key: 7\"]\n\
         [[tag]]\nsource = \"web\"\nname = \"T\"\njson = \"$.t.c\"\ntime = \"$.at\"\n\
         [[tag]]\nsource = \"web\"\nname = \"L\"\njson = \"$.list\"\narray = true\n\
         [[tag]]\nsource = \"web\"\nname = \"No\"\njson = \"$.no\"\n",
        site.address,
        folder.path().join("token").display().to_string(),
    );
    site.json(r#"{"t":{"c":21.5},"at":"2023-11-14T22:13:20Z","list":[1,2]}"#);
    let stand = Stand::new(&text).await;
    stand.value("web/T", 21.5).await;
    assert_eq!(stand.read("web/T").await.source_timestamp, UtcTime::parse("2023-11-14T22:13:20Z"));
    stand.value("web/L", vec![1.0, 2.0]).await;
    stand.until("web/No", |value| value.status() == StatusCode::BAD_NO_DATA).await;
    let request = site.asked.lock().unwrap().last().cloned().unwrap().to_lowercase();
    assert!(request.starts_with("get /a?b=c http/1.1"), "{request}");
    assert!(request.contains("authorization: bearer canary-91") && request.contains("x-key: 7"), "{request}");
    site.json(r#"{"t":{"c":"x"}}"#);
    stand.until("web/T", |value| value.status() == StatusCode::BAD_TYPE_MISMATCH).await;
    let wait = async |said: &str| {
        for _ in 0..1000 {
            let error = stand.source("web").statistics.last_error.unwrap_or_default();
            assert!(!error.contains("canary"), "{error}");
            if error.contains(said) {
                return;
            }
            sleep(10 * MS).await;
        }
        panic!("{said}: {:?}", stand.source("web"));
    };
    site.raw("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    wait("the server answers 503").await;
    site.json("{\"t\":");
    wait("no JSON").await;
    site.json(&format!("{{\"t\":{{\"c\":1}},\"x\":\"{}\"}}", "y".repeat(2000)));
    wait("length limit exceeded").await;
    site.raw("what?\r\n\r\n");
    wait("invalid HTTP").await;
    // An endless head and an endless body.
    site.raw(&format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(5000)));
    wait("head is too large").await;
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    site.raw(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(1000)));
    wait("length limit exceeded").await;
    // A truncated body.
    site.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"t\":");
    wait("did not answer within 300ms").await;
    site.raw("");
    wait("did not answer within 300ms").await;
    stand.until("web/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    site.json(r#"{"t":{"c":3}}"#);
    stand.value("web/T", 3.0).await;
    tokio::time::timeout(Duration::from_secs(5), stand.end()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn user_and_password_are_sent_correctly() {
    let site = site();
    site.json(r#"{"t":21.5}"#);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("password"), "open sesame\n").unwrap();
    let text = format!(
        "[[source]]\nname = \"web\"\ntype = \"http\"\nurl = \"http://{}/a\"\ninterval = \"50 ms\"\n\
         user = \"Aladdin\"\npassword_file = \"password\"\n\
         [[tag]]\nsource = \"web\"\nname = \"T\"\njson = \"$.t\"\n",
        site.address
    );
    let stand = Stand::in_folder(folder.path(), &text).await;
    stand.value("web/T", 21.5).await;
    let request = site.asked.lock().unwrap().last().cloned().unwrap();
    // The example of RFC 7617 §2.
    assert!(
        request.to_lowercase().contains("authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq=="),
        "{request}"
    );
    stand.end().await;
    let parse = |text: &str| {
        let error = taktwerk_gateway::GatewayConfig::parse(std::path::Path::new("g.toml"), text);
        error.unwrap_err().to_string()
    };
    let far = text.replace(&site.address.to_string(), "meter.example.com");
    assert!(parse(&far).contains("the password would cross the network unencrypted"), "{}", parse(&far));
    let both = text.replace("user =", "token_file = \"password\"\nuser =");
    assert!(parse(&both).contains("there are a token and a user"), "{}", parse(&both));
    let half = text.replace("user = \"Aladdin\"\n", "");
    assert!(parse(&half).contains("set user and password_file"), "{}", parse(&half));
}
