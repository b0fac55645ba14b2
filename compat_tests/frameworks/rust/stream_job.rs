// A job over the StreamConsumer of the rdkafka crate: it sends every value of NAME in capitals to NAME-out, until SIGTERM.
// The records of a batch and the offsets that were read are committed in one transaction.
// Arguments: the bootstrap servers, NAME.

use futures::future::try_join_all;
use futures::StreamExt;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use std::error::Error;
use std::time::Duration;
use tokio::signal::unix::{signal, SignalKind};
use tokio::task::block_in_place;

const BATCH: usize = 20;
const PATIENCE: Duration = Duration::from_secs(30);

struct Job {
    output: String,
    consumer: StreamConsumer,
    producer: FutureProducer,
}

impl Job {
    fn new(bootstrap: &str, name: &str) -> Result<Job, KafkaError> {
        let mut common = ClientConfig::new();
        common.set("bootstrap.servers", bootstrap).set("client.id", name);
        let consumer: StreamConsumer = common
            .clone()
            .set("group.id", name)
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("isolation.level", "read_committed")
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "1000")
            .set("fetch.wait.max.ms", "100")
            .create()?;
        let producer: FutureProducer =
            common.set("transactional.id", name).set("linger.ms", "0").create()?;
        Ok(Job { output: format!("{name}-out"), consumer, producer })
    }

    async fn run(&self, name: &str) -> Result<(), Box<dyn Error>> {
        block_in_place(|| self.producer.init_transactions(PATIENCE))?;
        self.consumer.subscribe(&[name])?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut batches =
            self.consumer.stream().take_until(Box::pin(terminate.recv())).ready_chunks(BATCH);
        while let Some(batch) = batches.next().await {
            self.commit(&batch.into_iter().collect::<Result<Vec<_>, _>>()?).await?;
        }
        Ok(())
    }

    /// Write a batch and the positions after it. The calls that end a transaction block, and the runtime lets them.
    async fn commit(&self, batch: &[BorrowedMessage<'_>]) -> Result<(), Box<dyn Error>> {
        self.producer.begin_transaction()?;
        let deliveries = batch.iter().map(|message| self.send(message)).collect::<Result<Vec<_>, _>>()?;
        for delivery in try_join_all(deliveries).await? {
            delivery.map_err(|(problem, _)| problem)?;
        }
        let positions = find_positions(batch)?;
        let group = self.consumer.group_metadata().ok_or("the consumer has no group")?;
        block_in_place(|| {
            self.producer.send_offsets_to_transaction(&positions, &group, PATIENCE)?;
            self.producer.commit_transaction(PATIENCE)
        })?;
        Ok(())
    }

    /// Hand a record to the producer, which keeps the order of the calls.
    fn send(&self, message: &BorrowedMessage<'_>) -> Result<rdkafka::producer::DeliveryFuture, Box<dyn Error>> {
        let key = message.key().unwrap_or_default();
        let value = message.payload_view::<str>().ok_or("a record has no value")??.to_uppercase();
        let record = FutureRecord::to(&self.output).partition(message.partition()).key(key).payload(&value);
        Ok(self.producer.send_result(record).map_err(|(problem, _)| problem)?)
    }
}

/// The position after the last record of each partition.
fn find_positions(batch: &[BorrowedMessage<'_>]) -> Result<TopicPartitionList, KafkaError> {
    let mut positions = TopicPartitionList::new();
    for message in batch {
        let after = Offset::Offset(message.offset() + 1);
        match positions.find_partition(message.topic(), message.partition()) {
            Some(mut position) => position.set_offset(after)?,
            None => positions.add_partition_offset(message.topic(), message.partition(), after)?,
        }
    }
    Ok(positions)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, name] = arguments.as_slice() else {
        return Err("give the bootstrap servers and a name".into());
    };
    Job::new(bootstrap, name)?.run(name).await
}
