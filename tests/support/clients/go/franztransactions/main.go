// Transactions with franz-go: commits, an abort, an instance that is fenced, and what a consumer of committed records sees.
package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"tailrace.test/clients/story"
)

func main() {
	bootstrap, topic := story.Arguments()
	ctx, cancel := context.WithTimeout(context.Background(), story.Deadline)
	defer cancel()
	told := story.Told{}

	old := connect(kgo.SeedBrokers(bootstrap), kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	defer old.Close()
	write(ctx, old, "one", kgo.TryCommit)
	write(ctx, old, "never", kgo.TryAbort)
	write(ctx, old, "two", kgo.TryCommit)
	story.Must(old.BeginTransaction())
	story.Must(old.ProduceSync(ctx, kgo.StringRecord("left open")).FirstErr())

	renewed := connect(kgo.SeedBrokers(bootstrap), kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	defer renewed.Close()
	write(ctx, renewed, "three", kgo.TryCommit)
	err := old.EndTransaction(ctx, kgo.TryCommit)
	told["fenced"] = errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.ProducerFenced)

	told["committed"] = read(ctx, bootstrap, topic, 3)
	told.Print()
}

func connect(options ...kgo.Opt) *kgo.Client {
	if version := story.Version(); version != "" {
		options = append(options, kgo.MaxVersions(kversion.FromString("v"+version)))
	}
	return story.Got(kgo.NewClient(options...))
}

func write(ctx context.Context, client *kgo.Client, value string, end kgo.TransactionEndTry) {
	story.Must(client.BeginTransaction())
	story.Must(client.ProduceSync(ctx, kgo.StringRecord(value), kgo.StringRecord(value)).FirstErr())
	story.Must(client.EndTransaction(ctx, end))
}

func read(ctx context.Context, bootstrap, topic string, transactions int) []string {
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	consumer := connect(
		kgo.SeedBrokers(bootstrap), kgo.ConsumePartitions(start), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	defer consumer.Close()
	values := []string{}
	for len(values) < 2*transactions {
		fetches := consumer.PollFetches(ctx)
		story.Must(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	return values
}
