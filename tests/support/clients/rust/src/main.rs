//! The story of go/story with rskafka, which knows no groups, no idempotence and no configs: its topic is there before.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use serde_json::{json, Map, Value};

const PARTITIONS: usize = 3;
const PER_CODEC: usize = 60;
const FIRST_TIME_MS: i64 = 1_700_000_000_000;
const CUT_AT: i64 = 5;
const CODECS: [Compression; 5] = [
    Compression::NoCompression,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

type Failure = Box<dyn std::error::Error>;

fn record(n: usize) -> Record {
    Record {
        key: Some(format!("key-{n}").into_bytes()),
        value: Some(format!("value {n} ").repeat(n % 50 + 1).into_bytes()),
        headers: BTreeMap::from([("n".to_owned(), n.to_string().into_bytes())]),
        timestamp: time(n),
    }
}

fn time(n: usize) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(FIRST_TIME_MS + n as i64).expect("a time")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name of the error a broker answered with; another kind of failure ends the story.
fn refusal<T>(result: Result<T, Error>) -> Result<String, Failure> {
    match result {
        Ok(_) => Ok(String::new()),
        Err(Error::ServerError { protocol_error, .. }) => Ok(match protocol_error {
            ProtocolError::TopicAlreadyExists => "TOPIC_ALREADY_EXISTS".to_owned(),
            ProtocolError::OffsetOutOfRange => "OFFSET_OUT_OF_RANGE".to_owned(),
            ProtocolError::MessageTooLarge => "MESSAGE_TOO_LARGE".to_owned(),
            other => format!("{other:?}"),
        }),
        Err(other) => Err(other.into()),
    }
}

async fn offsets(partitions: &[PartitionClient], at: OffsetAt) -> Result<Value, Failure> {
    let mut found = Map::new();
    for (number, partition) in partitions.iter().enumerate() {
        found.insert(number.to_string(), json!(partition.get_offset(at).await?));
    }
    Ok(Value::Object(found))
}

async fn read(partitions: &[PartitionClient]) -> Result<Value, Failure> {
    let mut records = Vec::new();
    for (number, partition) in partitions.iter().enumerate() {
        let mut offset = 0;
        let end = partition.get_offset(OffsetAt::Latest).await?;
        while offset < end {
            let (batch, _) = partition.fetch_records(offset, 1..2_000, 1_000).await?;
            for one in batch {
                records.push(json!({
                    "partition": number,
                    "offset": one.offset,
                    "timestamp": one.record.timestamp.timestamp_millis(),
                    "key": text(one.record.key.as_deref().unwrap_or_default()),
                    "value": text(one.record.value.as_deref().unwrap_or_default()),
                    "header": text(&one.record.headers["n"]),
                }));
                offset = one.offset + 1;
            }
        }
    }
    Ok(Value::Array(records))
}

async fn is_listed(client: &Client, topic: &str) -> Result<bool, Failure> {
    Ok(client.list_topics().await?.iter().any(|one| one.name == topic))
}

async fn story(bootstrap: String, topic: String) -> Result<Value, Failure> {
    let client = ClientBuilder::new(vec![bootstrap]).build().await?;
    let controller = client.controller_client()?;
    let mut told = Map::new();
    let another = format!("{topic}-another");
    controller.create_topic(&another, PARTITIONS as i32, 1, 5_000).await?;
    let again = controller.create_topic(&topic, PARTITIONS as i32, 1, 5_000).await;
    told.insert("created again".to_owned(), refusal(again)?.into());

    let mut partitions = Vec::new();
    for number in 0..PARTITIONS {
        partitions.push(client.partition_client(&topic, number as i32, UnknownTopicHandling::Retry).await?);
    }
    for (number, codec) in CODECS.into_iter().enumerate() {
        for (index, partition) in partitions.iter().enumerate() {
            let numbers = (number * PER_CODEC..(number + 1) * PER_CODEC).filter(|n| n % PARTITIONS == index);
            partition.produce(numbers.map(record).collect(), codec).await?;
        }
    }
    let large = Record { value: Some(vec![0; 3_000_000]), ..record(0) };
    let refused = partitions[0].produce(vec![large], Compression::NoCompression).await;
    told.insert("too large".to_owned(), refusal(refused)?.into());
    told.insert("records".to_owned(), read(&partitions).await?);
    told.insert("earliest".to_owned(), offsets(&partitions, OffsetAt::Earliest).await?);
    told.insert("latest".to_owned(), offsets(&partitions, OffsetAt::Latest).await?);
    told.insert("at time".to_owned(), offsets(&partitions, OffsetAt::Timestamp(time(30))).await?);

    partitions[0].delete_records(CUT_AT, 5_000).await?;
    told.insert("cut".to_owned(), partitions[0].get_offset(OffsetAt::Earliest).await?.into());
    let gone = partitions[0].fetch_records(0, 1..2_000, 1_000).await;
    told.insert("out of range".to_owned(), refusal(gone)?.into());

    controller.delete_topic(&another, 5_000).await?;
    for _ in 0..500 {
        if !is_listed(&client, &another).await? {
            told.insert("deleted".to_owned(), "UNKNOWN_TOPIC_OR_PARTITION".into());
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Value::Object(told))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(bootstrap), Some(topic)) = (arguments.next(), arguments.next()) else {
        return Err("usage: rskafka BOOTSTRAP TOPIC".into());
    };
    println!("{}", story(bootstrap, topic).await?);
    Ok(())
}
