// What the drivers of Rust clients share: the texts of records, commands from standard input, lines of JSON.

use serde_json::{json, Value};
use std::io::BufRead;
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(25);
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

// The texts of record n, as compat_tests/matrix/records.py has them.
pub fn key(number: i64) -> String {
    format!("key-{}", number % 50)
}

pub fn value(number: i64) -> String {
    format!("value-{}-{}", number, "x".repeat(100))
}

pub fn header(number: i64) -> String {
    format!("header-{}", number / 100)
}

fn text(data: Option<&[u8]>) -> Option<String> {
    data.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

pub fn tell(event: Value) {
    println!("{event}");
}

pub fn tell_record(
    partition: i32,
    offset: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    timestamp: Option<i64>,
    header: Option<&[u8]>,
) {
    tell(json!({"partition": partition, "offset": offset, "key": text(key), "value": text(value),
        "timestamp": timestamp, "header": text(header)}));
}

/// What `produce` is to do.
pub struct Batch<'a> {
    pub mode: &'a str,
    pub topic: &'a str,
    pub codec: &'a str,
    pub first: i64,
    pub count: i64,
    pub timestamp: i64,
}

impl Batch<'_> {
    pub fn numbers(&self) -> std::ops::Range<i64> {
        self.first..self.first + self.count
    }
}

/// What a driver has to do; see compat_tests/matrix/driver.py.
pub trait Client {
    fn create(&mut self, topic: &str, partitions: i32) -> Outcome;
    fn produce(&mut self, batch: &Batch) -> Outcome;
    fn consume(&mut self, committed: bool, topic: &str, partitions: i32, count: i64) -> Outcome;
    fn join(&mut self, topic: &str, group: &str, leave: &Receiver<String>) -> Outcome;
}

fn obey(client: &mut dyn Client, words: &[&str], lines: &Receiver<String>) -> Outcome {
    match words[0] {
        "create" => client.create(words[1], words[2].parse()?),
        "produce" => client.produce(&Batch {
            mode: words[1],
            topic: words[2],
            codec: words[3],
            first: words[4].parse()?,
            count: words[5].parse()?,
            timestamp: words[6].parse()?,
        }),
        "consume" => client.consume(words[1] == "committed", words[2], words[3].parse()?, words[4].parse()?),
        _ => client.join(words[1], words[2], lines),
    }
}

pub fn serve(client: &mut dyn Client) {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    while let Ok(line) = lines.recv() {
        let words: Vec<&str> = line.split(' ').collect();
        match obey(client, &words, &lines) {
            Ok(()) => tell(json!({"done": true})),
            Err(problem) => tell(json!({"error": problem.to_string()})),
        }
    }
}

pub fn bootstrap() -> String {
    std::env::args().last().unwrap_or_default()
}
