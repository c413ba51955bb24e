//! A PostgreSQL server for tests, and connections to it.

#[path = "../../../history/src/postgres/database.rs"]
mod server;

pub(crate) use server::Database;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls};

/// Connects as soon as possible.
pub(crate) async fn client(database: &Database) -> Client {
    let config: Config = database.url().parse().unwrap();
    for _ in 0..600 {
        if let Ok((client, connection)) = config.connect(NoTls).await {
            tokio::spawn(connection);
            return client;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the database does not start");
}
