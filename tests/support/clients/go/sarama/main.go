// The story with sarama: an idempotent producer, consumers of given partitions, the admin client.
package main

import (
	"errors"

	"github.com/IBM/sarama"
	"tailrace.test/clients/story"
)

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	if version := story.Version(); version != "" {
		config.Version = story.Got(sarama.ParseKafkaVersion(version))
	}
	config.Consumer.Return.Errors = true
	config.Producer.Return.Successes = true
	config.Producer.Return.Errors = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.RequiredAcks = sarama.WaitForAll
	return config
}

func main() {
	bootstrap, topic := story.Arguments()
	servers := []string{bootstrap}
	told := story.Told{}
	admin := story.Got(sarama.NewClusterAdmin(servers, settings()))
	defer admin.Close()

	detail := &sarama.TopicDetail{NumPartitions: story.Partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for name, value := range story.Configs {
		detail.ConfigEntries[name] = &value
	}
	story.Must(admin.CreateTopic(topic, detail, false))
	told["created again"] = nameOf(admin.CreateTopic(topic, detail, false))

	produce(servers, topic)
	client := story.Got(sarama.NewClient(servers, settings()))
	defer client.Close()
	told.Records(consume(client, topic))
	told["too large"] = writeTooMuch(servers, topic)

	told["earliest"] = offsets(client, topic, sarama.OffsetOldest)
	told["latest"] = offsets(client, topic, sarama.OffsetNewest)
	told["at time"] = offsets(client, topic, story.FirstTimeMs+30)

	told["config"] = config(admin, topic)
	changed := story.ChangedTo
	change := map[string]sarama.IncrementalAlterConfigsEntry{
		story.Changed: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &changed},
	}
	story.Must(admin.IncrementalAlterConfig(sarama.TopicResource, topic, change, false))
	told["config changed"] = story.Until(story.ChangedTo, func() string { return config(admin, topic)[story.Changed] })

	story.Must(admin.DeleteRecords(topic, map[int32]int64{0: story.CutAt}))
	told["cut"] = offsets(client, topic, sarama.OffsetOldest)[0]
	told["out of range"] = readFromCut(client, topic)

	story.Must(admin.CreatePartitions(topic, story.PartitionsLater, nil, false))
	told["partitions"] = story.Until(story.PartitionsLater, func() int {
		return len(story.Got(admin.DescribeTopics([]string{topic}))[0].Partitions)
	})
	story.Must(admin.DeleteTopic(topic))
	told["deleted"] = story.Until(story.Gone, func() string {
		return nameOf(story.Got(admin.DescribeTopics([]string{topic}))[0].Err)
	})
	told.Print()
}

func produce(servers []string, topic string) {
	for number, codec := range story.Codecs {
		config := settings()
		config.Producer.Compression = codecs[codec]
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
		producer := story.Got(sarama.NewSyncProducer(servers, config))
		var messages []*sarama.ProducerMessage
		for n := number * story.PerCodec; n < (number+1)*story.PerCodec; n++ {
			messages = append(messages, &sarama.ProducerMessage{
				Topic: topic, Partition: story.PartitionOf(n), Timestamp: story.Time(n),
				Key: sarama.ByteEncoder(story.Key(n)), Value: sarama.ByteEncoder(story.Value(n)),
				Headers: []sarama.RecordHeader{{Key: []byte("n"), Value: story.HeaderOf(n)}},
			})
		}
		story.Must(producer.SendMessages(messages))
		story.Must(producer.Close())
	}
}

func consume(client sarama.Client, topic string) []story.Read {
	consumer := story.Got(sarama.NewConsumerFromClient(client))
	var read []story.Read
	for partition := int32(0); partition < story.Partitions; partition++ {
		end := story.Got(client.GetOffset(topic, partition, sarama.OffsetNewest))
		part := story.Got(consumer.ConsumePartition(topic, partition, sarama.OffsetOldest))
		for offset := int64(-1); offset < end-1; {
			message := <-part.Messages()
			offset = message.Offset
			read = append(read, story.Read{
				Partition: message.Partition, Offset: message.Offset, TimeMs: message.Timestamp.UnixMilli(),
				Key: string(message.Key), Value: string(message.Value), Header: string(message.Headers[0].Value),
			})
		}
		story.Must(part.Close())
	}
	return read
}

func writeTooMuch(servers []string, topic string) string {
	config := settings()
	config.Producer.MaxMessageBytes = 4_000_000
	producer := story.Got(sarama.NewSyncProducer(servers, config))
	defer producer.Close()
	_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(make([]byte, 3_000_000))})
	return nameOf(err)
}

// readFromCut asks for an offset that is no longer there.
func readFromCut(client sarama.Client, topic string) string {
	consumer := story.Got(sarama.NewConsumerFromClient(client))
	_, err := consumer.ConsumePartition(topic, 0, 0)
	return nameOf(err)
}

func offsets(client sarama.Client, topic string, time int64) map[int32]int64 {
	found := map[int32]int64{}
	for partition := int32(0); partition < story.Partitions; partition++ {
		found[partition] = story.Got(client.GetOffset(topic, partition, time))
	}
	return found
}

func config(admin sarama.ClusterAdmin, topic string) map[string]string {
	found := map[string]string{}
	for _, one := range story.Got(admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})) {
		if one.Source == sarama.SourceTopic {
			found[one.Name] = one.Value
		}
	}
	return found
}

var names = map[sarama.KError]string{
	sarama.ErrNoError: "", sarama.ErrTopicAlreadyExists: "TOPIC_ALREADY_EXISTS",
	sarama.ErrMessageSizeTooLarge: "MESSAGE_TOO_LARGE", sarama.ErrOffsetOutOfRange: "OFFSET_OUT_OF_RANGE",
	sarama.ErrUnknownTopicOrPartition: "UNKNOWN_TOPIC_OR_PARTITION",
}

func nameOf(err error) string {
	var code sarama.KError
	if errors.As(err, &code) {
		if name, known := names[code]; known {
			return name
		}
	}
	story.Must(err)
	return ""
}
