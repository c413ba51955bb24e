//! Sends values to a real PostgreSQL server, which is killed and restarted.

#![cfg(feature = "postgres")]

use crate::counting;
use crate::database::{Database, client};
use crate::stand::Stand;

const LAST: u32 = 2000;

#[tokio::test(flavor = "multi_thread")]
async fn each_value_is_stored_once_although_the_server_is_killed() {
    let Some(mut database) = Database::start() else { return };
    let is_extended = client(&database).await.batch_execute("CREATE EXTENSION timescaledb").await.is_ok();
    let text = format!(
        "{}[[source]]\nname = \"more\"\ntype = \"program\"\ncommand = [\"sh\", \"-c\", \"{}\"]\n\
         [[tag]]\nsource = \"more\"\nname = \"Text\"\ntype = \"String\"\n\
         [[destination]]\nname = \"db\"\ntype = \"postgres\"\nurl = \"{}\"\nqueue = {:?}\ntable = \"plant_values\"\n\
         retry = \"20 ms\"\nretry_max = \"200 ms\"\nflush = \"10 ms\"\nbatch_max = 300\n",
        counting::source(LAST),
        r#"echo '{\"name\":\"Text\",\"value\":\"a\\\\u0000b\"}'; exec sleep 1000"#,
        database.url(),
        database.folder().join("q.db").display().to_string(),
    );
    let stand = Stand::new(&text).await;
    for until in [50, 600] {
        stand.until_destination("db", |view| view.counters.sent > until).await;
        database.kill();
        let failed = stand.destination("db").counters.errors;
        stand
            .until_destination("db", |view| view.counters.errors > failed && view.counters.queued > 20)
            .await;
        database.go_on();
    }
    let counted = |view: &taktwerk_gateway::DestinationView| view.counters.clone();
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("db", |view| view.counters.sent > u64::from(LAST) && view.counters.queued == 0)
        .await;
    let client = client(&database).await;
    let sql =
        "SELECT value FROM plant_values WHERE tag = 'counter/Count' AND status = 0 ORDER BY received, ctid";
    let numbers: Vec<f64> = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let expected: Vec<f64> = (1..=LAST).map(f64::from).collect();
    assert_eq!(numbers, expected);
    let sql = "SELECT other #>> '{}' FROM plant_values WHERE tag = 'more/Text' AND status = 0";
    let text: String = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(text, "a\u{fffd}b");
    if is_extended {
        let sql = "SELECT hypertable_name FROM timescaledb_information.hypertables";
        let table: String = client.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(table, "plant_values");
    }
    let counters = counted(&stand.destination("db"));
    assert_eq!((counters.refused, counters.overrun, counters.evicted), (0, 0, 0), "{counters:?}");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_rejected_by_the_table_are_omitted_and_counted() {
    let Some(database) = Database::start() else { return };
    let client = client(&database).await;
    // An existing table with a constraint.
    client
        .batch_execute(
            "CREATE SCHEMA plant; CREATE TABLE plant.few (time timestamptz NOT NULL, received timestamptz NOT NULL, \
             tag text NOT NULL, value double precision CHECK (value::int % 100 <> 0), other jsonb, status bigint NOT NULL, \
             id bigserial)",
        )
        .await
        .unwrap();
    let text = format!(
        "{}[[destination]]\nname = \"db\"\ntype = \"postgres\"\nurl = \"{}\"\nqueue = {:?}\ntable = \"plant.few\"\n",
        counting::source(1000),
        database.url(),
        database.folder().join("q.db").display().to_string(),
    );
    let stand = Stand::new(&text).await;
    stand.until_destination("db", |view| view.counters.refused == 10 && view.counters.queued == 0).await;
    let sql = "SELECT value FROM plant.few WHERE status = 0 ORDER BY id";
    let numbers: Vec<f64> = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let expected: Vec<f64> = (1..=1000).filter(|number| number % 100 != 0).map(f64::from).collect();
    assert_eq!(numbers, expected);
    let error = stand.destination("db").counters.last_error.unwrap();
    assert!(error.contains("violates check constraint"), "{error}");
    stand.end().await;
}
