// The story with franz-go: an idempotent producer, a consumer of given partitions, the admin client.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"tailrace.test/clients/story"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func main() {
	bootstrap, topic := story.Arguments()
	ctx, cancel := context.WithTimeout(context.Background(), story.Deadline)
	defer cancel()
	told := story.Told{}
	// Changes are asked about right after they were made, so nothing is remembered for long.
	client := story.Got(connect(kgo.SeedBrokers(bootstrap), kgo.MetadataMinAge(10*time.Millisecond)))
	defer client.Close()
	admin := kadm.NewClient(client)

	configs := map[string]*string{}
	for name, value := range story.Configs {
		configs[name] = kadm.StringPtr(value)
	}
	story.Got(admin.CreateTopic(ctx, story.Partitions, 1, configs, topic))
	_, err := admin.CreateTopic(ctx, story.Partitions, 1, nil, topic)
	told["created again"] = nameOf(err)

	produce(ctx, bootstrap, topic)
	told.Records(consume(ctx, bootstrap, topic))
	told["unknown topic"] = writeToNowhere(ctx, bootstrap, topic+"-unknown")
	told["too large"] = writeTooMuch(ctx, bootstrap, topic)

	told["earliest"] = offsets(story.Got(admin.ListStartOffsets(ctx, topic)), topic)
	told["latest"] = offsets(story.Got(admin.ListEndOffsets(ctx, topic)), topic)
	told["at time"] = offsets(story.Got(admin.ListOffsetsAfterMilli(ctx, story.FirstTimeMs+30, topic)), topic)

	told["config"] = config(ctx, admin, topic)
	change := kadm.AlterConfig{Name: story.Changed, Value: kadm.StringPtr(story.ChangedTo)}
	story.Must(story.Got(admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, topic))[0].Err)
	told["config changed"] = story.Until(story.ChangedTo, func() string { return config(ctx, admin, topic)[story.Changed] })

	cut := kadm.Offsets{}
	cut.AddOffset(topic, 0, story.CutAt, -1)
	deleted := story.Got(admin.DeleteRecords(ctx, cut))
	story.Must(deleted[topic][0].Err)
	told["cut"] = deleted[topic][0].LowWatermark
	told["out of range"] = readFromCut(ctx, bootstrap, topic)

	story.Must(story.Got(admin.CreatePartitions(ctx, 1, topic))[topic].Err)
	told["partitions"] = story.Until(story.PartitionsLater, func() int {
		return len(story.Got(admin.ListTopics(ctx, topic))[topic].Partitions)
	})
	story.Got(admin.DeleteTopic(ctx, topic))
	told["deleted"] = story.Until(story.Gone, func() string {
		return nameOf(story.Got(admin.ListTopics(ctx, topic))[topic].Err)
	})
	told.Print()
}

func connect(options ...kgo.Opt) (*kgo.Client, error) {
	if version := story.Version(); version != "" {
		options = append(options, kgo.MaxVersions(kversion.FromString("v"+version)))
	}
	return kgo.NewClient(options...)
}

func produce(ctx context.Context, bootstrap, topic string) {
	for number, codec := range story.Codecs {
		producer := story.Got(connect(
			kgo.SeedBrokers(bootstrap),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(codecs[codec]),
			kgo.RequiredAcks(kgo.AllISRAcks()),
		))
		var records []*kgo.Record
		for n := number * story.PerCodec; n < (number+1)*story.PerCodec; n++ {
			records = append(records, &kgo.Record{
				Topic: topic, Partition: story.PartitionOf(n), Timestamp: story.Time(n),
				Key: story.Key(n), Value: story.Value(n),
				Headers: []kgo.RecordHeader{{Key: "n", Value: story.HeaderOf(n)}},
			})
		}
		story.Must(producer.ProduceSync(ctx, records...).FirstErr())
		producer.Close()
	}
}

func consume(ctx context.Context, bootstrap, topic string) []story.Read {
	start := map[int32]kgo.Offset{}
	for partition := int32(0); partition < story.Partitions; partition++ {
		start[partition] = kgo.NewOffset().AtStart()
	}
	consumer := story.Got(connect(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	))
	defer consumer.Close()
	var read []story.Read
	for len(read) < story.Total() {
		fetches := consumer.PollFetches(ctx)
		story.Must(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			read = append(read, story.Read{
				Partition: record.Partition, Offset: record.Offset, TimeMs: record.Timestamp.UnixMilli(),
				Key: string(record.Key), Value: string(record.Value), Header: string(record.Headers[0].Value),
			})
		})
	}
	return read
}

func writeToNowhere(ctx context.Context, bootstrap, topic string) string {
	producer := story.Got(connect(kgo.SeedBrokers(bootstrap), kgo.UnknownTopicRetries(0)))
	defer producer.Close()
	return nameOf(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr())
}

func writeTooMuch(ctx context.Context, bootstrap, topic string) string {
	producer := story.Got(connect(kgo.SeedBrokers(bootstrap), kgo.ProducerBatchMaxBytes(4_000_000),
		kgo.ProducerBatchCompression(kgo.NoCompression())))
	defer producer.Close()
	return nameOf(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: make([]byte, 3_000_000)}).FirstErr())
}

// readFromCut asks for an offset that is no longer there, and does not want to be moved.
func readFromCut(ctx context.Context, bootstrap, topic string) string {
	consumer := story.Got(connect(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	))
	defer consumer.Close()
	for {
		for _, failed := range consumer.PollFetches(ctx).Errors() {
			return nameOf(failed.Err)
		}
	}
}

func offsets(listed kadm.ListedOffsets, topic string) map[int32]int64 {
	found := map[int32]int64{}
	listed.Each(func(one kadm.ListedOffset) {
		story.Must(one.Err)
		found[one.Partition] = one.Offset
	})
	return found
}

func config(ctx context.Context, admin *kadm.Client, topic string) map[string]string {
	found := map[string]string{}
	for _, one := range story.Got(story.Got(admin.DescribeTopicConfigs(ctx, topic)).On(topic, nil)).Configs {
		if one.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
			found[one.Key] = one.MaybeValue()
		}
	}
	return found
}

func nameOf(err error) string {
	var refused *kerr.Error
	if errors.As(err, &refused) {
		return refused.Message
	}
	story.Must(err)
	return ""
}
