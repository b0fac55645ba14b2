// Drives rskafka, which has no consumer groups and leaves partitions to its user.

mod common;

use chrono::{TimeZone, Utc};
use common::{header, key, tell_record, value, Batch, Client, Outcome, PATIENCE};
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Instant;
use tokio::runtime::Runtime;

const PARTITIONS: i64 = 4;
const RECORDS_A_BATCH: usize = 100;
const FETCH_WAIT_MS: i32 = 100;

struct Rskafka {
    bootstrap: String,
    runtime: Runtime,
}

fn compression(codec: &str) -> Compression {
    match codec {
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        _ => Compression::NoCompression,
    }
}

fn record(number: i64, timestamp: i64) -> Record {
    Record {
        key: Some(key(number).into_bytes()),
        value: Some(value(number).into_bytes()),
        headers: BTreeMap::from([("n".to_owned(), header(number).into_bytes())]),
        timestamp: Utc.timestamp_millis_opt(timestamp + number).unwrap(),
    }
}

impl Rskafka {
    async fn client(&self) -> Result<rskafka::client::Client, rskafka::client::error::Error> {
        ClientBuilder::new(vec![self.bootstrap.clone()]).client_id("matrix").build().await
    }

    async fn partition(&self, topic: &str, number: i32) -> Result<PartitionClient, rskafka::client::error::Error> {
        self.client().await?.partition_client(topic, number, UnknownTopicHandling::Retry).await
    }

    async fn write(&self, batch: &Batch<'_>) -> Outcome {
        for remainder in 0..PARTITIONS {
            let partition = self.partition(batch.topic, remainder as i32).await?;
            // A key stays in one partition: the texts repeat their keys every 50 numbers.
            let records: Vec<Record> = batch
                .numbers()
                .filter(|number| number % 50 % PARTITIONS == remainder)
                .map(|number| record(number, batch.timestamp))
                .collect();
            for some in records.chunks(RECORDS_A_BATCH) {
                partition.produce(some.to_vec(), compression(batch.codec)).await?;
            }
        }
        Ok(())
    }

    /// Read the partitions in turns until all records have come: rskafka leaves following a log to its user.
    async fn read(&self, topic: &str, partitions: i32, count: i64) -> Outcome {
        let client = self.client().await?;
        let mut readers = Vec::new();
        for number in 0..partitions {
            readers.push((client.partition_client(topic, number, UnknownTopicHandling::Retry).await?, 0));
        }
        let mut seen = 0;
        let begun = Instant::now();
        while seen < count {
            for (number, (partition, next)) in readers.iter_mut().enumerate() {
                let (records, _) = partition.fetch_records(*next, 1..1_000_000, FETCH_WAIT_MS).await?;
                for fetched in &records {
                    let held = fetched.record.headers.get("n").map(Vec::as_slice);
                    let (key, value) = (fetched.record.key.as_deref(), fetched.record.value.as_deref());
                    let timestamp = Some(fetched.record.timestamp.timestamp_millis());
                    tell_record(number as i32, fetched.offset, key, value, timestamp, held);
                    *next = fetched.offset + 1;
                    seen += 1;
                }
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("only {seen} of {count} records came").into());
            }
        }
        Ok(())
    }
}

impl Client for Rskafka {
    fn create(&mut self, topic: &str, partitions: i32) -> Outcome {
        self.runtime.block_on(async {
            let controller = self.client().await?.controller_client()?;
            Ok(controller.create_topic(topic, partitions, 1, 15_000).await?)
        })
    }

    fn produce(&mut self, batch: &Batch) -> Outcome {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.write(batch)).await? })
    }

    fn consume(&mut self, _committed: bool, topic: &str, partitions: i32, count: i64) -> Outcome {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.read(topic, partitions, count)).await? })
    }

    fn join(&mut self, _topic: &str, _group: &str, _leave: &Receiver<String>) -> Outcome {
        Err("rskafka has no groups".into())
    }
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    common::serve(&mut Rskafka { bootstrap: common::bootstrap(), runtime });
}
