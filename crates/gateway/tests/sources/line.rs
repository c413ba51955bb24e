//! A gateway with a device that sends text over TCP.

use crate::stand::{MS, Stand};
use taktwerk_types::StatusCode;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::sleep;

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_closes_each_connection_is_retried_with_growing_pauses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        "[[source]]\nname = \"s\"\ntype = \"line\"\naddress = \"{}\"\nretry = \"20 ms\"\nretry_max = \"10 s\"\n\
         [[tag]]\nsource = \"s\"\nname = \"T\"\n",
        listener.local_addr().unwrap(),
    );
    let stand = Stand::new(&text).await;
    let begin = std::time::Instant::now();
    // Noise without readings is not an answer.
    for _ in 0..5 {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"\n\n").await.unwrap();
    }
    // Five connections are separated by pauses of at least 20, 40, 80 and 160 ms.
    assert!(begin.elapsed() >= 300 * MS, "{:?}", begin.elapsed());
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_polled_read_and_written() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        "[[source]]\nname = \"s\"\ntype = \"line\"\naddress = \"{}\"\nframing = \"stx-etx\"\npoll = \"P\\n\"\npoll_every = \"20 ms\"\n\
         deadline = \"400 ms\"\nretry = \"20 ms\"\nretry_max = \"20 ms\"\nlost_after = \"500 ms\"\n\
         [[tag]]\nsource = \"s\"\nname = \"W\"\npattern = '([-0-9.]+) kg'\n\
         [[tag]]\nsource = \"s\"\nname = \"SP\"\npattern = 'SP=(\\d+)'\ntype = \"Int32\"\naccess = \"read-write\"\nwrite = \"SP {{value}}\\n\"\n",
        listener.local_addr().unwrap(),
    );
    // A scale that answers polls, stores written values, and becomes silent when 99 is written.
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (read, mut write) = stream.into_split();
            let mut lines = BufReader::new(read).lines();
            let mut setpoint = "7".to_owned();
            while let Ok(Some(line)) = lines.next_line().await {
                match line.strip_prefix("SP ") {
                    Some(wanted) => wanted.clone_into(&mut setpoint),
                    None if setpoint == "99" => {}
                    None => {
                        let answer = format!("noise\x02-12.5 kg SP={setpoint}\x03");
                        write.write_all(answer.as_bytes()).await.unwrap();
                    }
                }
            }
        }
    });
    let stand = Stand::new(&text).await;
    stand.value("s/W", -12.5).await;
    stand.value("s/SP", 7).await;
    stand.write("s/SP", 8).await.unwrap();
    stand.value("s/SP", 8).await;
    stand.write("s/SP", 99).await.unwrap();
    for turn in 0.. {
        let error = stand.source("s").statistics.last_error;
        if error.as_ref().is_some_and(|error| error.contains("did not answer within 400ms")) {
            break;
        }
        assert!(turn < 2000, "{error:?}");
        sleep(10 * MS).await;
    }
    // The gateway reconnects, and the device has its initial value again.
    stand.value("s/SP", 7).await;
    assert_eq!(stand.read("s/W").await.status(), StatusCode::GOOD);
    stand.end().await;
}
