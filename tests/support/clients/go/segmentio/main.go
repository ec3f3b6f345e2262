// The story with segmentio/kafka-go: writer, readers of given partitions, the requests that its client offers.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
	"tailrace.test/clients/story"
)

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func main() {
	bootstrap, topic := story.Arguments()
	ctx, cancel := context.WithTimeout(context.Background(), story.Deadline)
	defer cancel()
	told := story.Told{}
	client := &kafka.Client{Addr: kafka.TCP(bootstrap)}

	wanted := kafka.TopicConfig{Topic: topic, NumPartitions: story.Partitions, ReplicationFactor: 1}
	for name, value := range story.Configs {
		wanted.ConfigEntries = append(wanted.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	creation := &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wanted}}
	story.Must(story.Got(client.CreateTopics(ctx, creation)).Errors[topic])
	told["created again"] = nameOf(story.Got(client.CreateTopics(ctx, creation)).Errors[topic])

	produce(ctx, bootstrap, topic)
	told.Records(consume(ctx, bootstrap, topic))
	told["earliest"] = offsets(ctx, client, topic, kafka.FirstOffsetOf)
	told["latest"] = offsets(ctx, client, topic, kafka.LastOffsetOf)
	told["at time"] = offsets(ctx, client, topic, func(partition int) kafka.OffsetRequest {
		return kafka.TimeOffsetOf(partition, story.Time(30))
	})

	told["config"] = config(ctx, client, topic)
	story.Must(errors.Join(alter(ctx, client, topic)...))
	told["config changed"] = story.Until(story.ChangedTo, func() string { return config(ctx, client, topic)[story.Changed] })

	more := &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: story.PartitionsLater}}}
	story.Must(story.Got(client.CreatePartitions(ctx, more)).Errors[topic])
	told["partitions"] = story.Until(story.PartitionsLater, func() int { return len(story.Got(partitions(bootstrap, topic))) })
	story.Must(story.Got(client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})).Errors[topic])
	told["deleted"] = story.Until(story.Gone, func() string {
		_, err := partitions(bootstrap, topic)
		return nameOf(err)
	})
	told.Print()
}

// partitions asks on a connection of its own: the client remembers what it was told.
func partitions(bootstrap, topic string) ([]kafka.Partition, error) {
	connection := story.Got(kafka.Dial("tcp", bootstrap))
	defer connection.Close()
	return connection.ReadPartitions(topic)
}

func produce(ctx context.Context, bootstrap, topic string) {
	for number, codec := range story.Codecs {
		writer := &kafka.Writer{
			Addr: kafka.TCP(bootstrap), Topic: topic, Compression: codecs[codec], RequiredAcks: kafka.RequireAll,
			BatchSize: story.PerCodec / story.Partitions,
			Balancer:  kafka.BalancerFunc(func(message kafka.Message, _ ...int) int { return message.WriterData.(int) }),
		}
		var messages []kafka.Message
		for n := number * story.PerCodec; n < (number+1)*story.PerCodec; n++ {
			messages = append(messages, kafka.Message{
				Key: story.Key(n), Value: story.Value(n), Time: story.Time(n), WriterData: int(story.PartitionOf(n)),
				Headers: []kafka.Header{{Key: "n", Value: story.HeaderOf(n)}},
			})
		}
		story.Must(writer.WriteMessages(ctx, messages...))
		story.Must(writer.Close())
	}
}

func consume(ctx context.Context, bootstrap, topic string) []story.Read {
	var read []story.Read
	for partition := 0; partition < story.Partitions; partition++ {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{bootstrap}, Topic: topic, Partition: partition, MaxWait: 100 * time.Millisecond,
		})
		for count := 0; count < story.Total()/story.Partitions; count++ {
			message := story.Got(reader.ReadMessage(ctx))
			read = append(read, story.Read{
				Partition: int32(message.Partition), Offset: message.Offset, TimeMs: message.Time.UnixMilli(),
				Key: string(message.Key), Value: string(message.Value), Header: string(message.Headers[0].Value),
			})
		}
		story.Must(reader.Close())
	}
	return read
}

func offsets(ctx context.Context, client *kafka.Client, topic string, of func(int) kafka.OffsetRequest) map[int]int64 {
	found := map[int]int64{}
	for partition := 0; partition < story.Partitions; partition++ {
		request := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {of(partition)}}}
		for _, one := range story.Got(client.ListOffsets(ctx, request)).Topics[topic] {
			story.Must(one.Error)
			found[one.Partition] = max(one.FirstOffset, one.LastOffset)
			for offset := range one.Offsets {
				found[one.Partition] = offset
			}
		}
	}
	return found
}

func config(ctx context.Context, client *kafka.Client, topic string) map[string]string {
	resource := kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}
	answer := story.Got(client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{resource},
	}))
	story.Must(answer.Resources[0].Error)
	found := map[string]string{}
	for _, one := range answer.Resources[0].ConfigEntries {
		if one.ConfigSource == 1 {
			found[one.ConfigName] = one.ConfigValue
		}
	}
	return found
}

func alter(ctx context.Context, client *kafka.Client, topic string) []error {
	change := kafka.IncrementalAlterConfigsRequestConfig{
		Name: story.Changed, Value: story.ChangedTo, ConfigOperation: kafka.ConfigOperationSet,
	}
	answer := story.Got(client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{change},
		}},
	}))
	var failed []error
	for _, one := range answer.Resources {
		failed = append(failed, one.Error)
	}
	return failed
}

var names = map[kafka.Error]string{
	kafka.TopicAlreadyExists: "TOPIC_ALREADY_EXISTS", kafka.UnknownTopicOrPartition: "UNKNOWN_TOPIC_OR_PARTITION",
}

func nameOf(err error) string {
	var code kafka.Error
	if errors.As(err, &code) {
		if name, known := names[code]; known {
			return name
		}
	}
	story.Must(err)
	return ""
}
