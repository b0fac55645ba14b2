// Drives the rdkafka crate over the librdkafka that it compiles.

mod common;

use common::{header, key, tell, tell_record, value, Batch, Client, Outcome, PATIENCE};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use serde_json::json;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TURN: Duration = Duration::from_millis(200);

struct Rdkafka {
    bootstrap: String,
}

/// Keeps the first error of a delivery.
#[derive(Clone, Default)]
struct Deliveries(Arc<Mutex<Option<String>>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        if let Err((problem, _)) = result {
            self.0.lock().unwrap().get_or_insert(problem.to_string());
        }
    }
}

impl Rdkafka {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap).set("client.id", "matrix");
        config
    }

    fn consumer(&self, group: &str, committed: bool) -> Result<BaseConsumer, KafkaError> {
        self.config()
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("session.timeout.ms", "10000")
            .set("heartbeat.interval.ms", "500")
            .set("fetch.wait.max.ms", "100")
            .set("isolation.level", if committed { "read_committed" } else { "read_uncommitted" })
            .create()
    }
}

impl Client for Rdkafka {
    /// Asks for the topic until it is there: its admin client is for asynchronous programs.
    fn create(&mut self, topic: &str, partitions: i32) -> Outcome {
        let producer: BaseProducer = self.config().set("allow.auto.create.topics", "true").create()?;
        let begun = Instant::now();
        loop {
            let known = producer.client().fetch_metadata(Some(topic), PATIENCE)?;
            if known.topics()[0].partitions().len() == partitions as usize {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err("the topic was not made".into());
            }
            std::thread::sleep(TURN);
        }
    }

    fn produce(&mut self, batch: &Batch) -> Outcome {
        let mut config = self.config();
        config.set("acks", "all").set("linger.ms", "5").set("compression.codec", batch.codec);
        config.set("max.in.flight.requests.per.connection", "1").set("message.timeout.ms", "20000");
        let in_transaction = batch.mode == "aborted" || batch.mode == "committed";
        if batch.mode != "plain" {
            config.set("enable.idempotence", "true");
        }
        if in_transaction {
            config.set("transactional.id", batch.topic);
        }
        let deliveries = Deliveries::default();
        let producer: BaseProducer<Deliveries> = config.create_with_context(deliveries.clone())?;
        if in_transaction {
            producer.init_transactions(PATIENCE)?;
            producer.begin_transaction()?;
        }
        for number in batch.numbers() {
            let (key, value, header) = (key(number), value(number), header(number));
            let headers = OwnedHeaders::new().insert(Header { key: "n", value: Some(&header) });
            let record = BaseRecord::to(batch.topic).key(&key).payload(&value).headers(headers);
            producer.send(record.timestamp(batch.timestamp + number)).map_err(|(problem, _)| problem)?;
        }
        producer.flush(PATIENCE)?;
        if let Some(problem) = deliveries.0.lock().unwrap().take() {
            return Err(problem.into());
        }
        match batch.mode {
            "aborted" => producer.abort_transaction(PATIENCE)?,
            "committed" => producer.commit_transaction(PATIENCE)?,
            _ => (),
        }
        Ok(())
    }

    fn consume(&mut self, committed: bool, topic: &str, partitions: i32, count: i64) -> Outcome {
        let consumer = self.consumer("none", committed)?;
        let mut assigned = TopicPartitionList::new();
        for partition in 0..partitions {
            assigned.add_partition_offset(topic, partition, Offset::Beginning)?;
        }
        consumer.assign(&assigned)?;
        let begun = Instant::now();
        let mut seen = 0;
        while seen < count {
            seen += tell_next(&consumer)?;
            if begun.elapsed() > PATIENCE {
                return Err(format!("only {seen} of {count} records came").into());
            }
        }
        Ok(())
    }

    fn join(&mut self, topic: &str, group: &str, leave: &Receiver<String>) -> Outcome {
        let consumer = self.consumer(group, false)?;
        consumer.subscribe(&[topic])?;
        let mut reported = Vec::new();
        while leave.try_recv().is_err() {
            tell_next(&consumer)?;
            let held = consumer.assignment()?;
            let mut partitions: Vec<i32> = held.elements().iter().map(|element| element.partition()).collect();
            partitions.sort_unstable();
            if partitions != reported {
                tell(json!({"assigned": partitions}));
                reported = partitions;
            }
        }
        match consumer.commit_consumer_state(CommitMode::Sync) {
            Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => Ok(()),
            other => Ok(other?),
        }
    }
}

fn tell_next(consumer: &BaseConsumer) -> Result<i64, KafkaError> {
    let Some(polled) = consumer.poll(TURN) else {
        return Ok(0);
    };
    let message = polled?;
    let held = message.headers().and_then(|headers| headers.iter().find(|header| header.key == "n")?.value);
    tell_record(message.partition(), message.offset(), message.key(), message.payload(), message.timestamp().to_millis(), held);
    Ok(1)
}

fn main() {
    common::serve(&mut Rdkafka { bootstrap: common::bootstrap() });
}
