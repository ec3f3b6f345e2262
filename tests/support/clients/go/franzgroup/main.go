// A member of a consumer group, with franz-go: reads, commits, and tells what happens to it, as python/group_member.py.
//
//	franzgroup BOOTSTRAP GROUP TOPIC STRATEGY SESSION_MS
package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"
	"tailrace.test/clients/story"
)

func main() {
	bootstrap, group, topic, strategy := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	session := time.Duration(story.Got(strconv.Atoi(os.Args[5]))) * time.Millisecond
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	balancer := kgo.RangeBalancer()
	if strategy == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	client := story.Got(kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(session/5),
		kgo.RebalanceTimeout(10*time.Second),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
			tell("assigned", map[string]any{"partitions": given[topic]})
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
			tell("revoked", map[string]any{"partitions": taken[topic]})
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			tell("revoked", map[string]any{"partitions": lost[topic], "lost": true})
		}),
	))
	for ctx.Err() == nil {
		polled := client.PollRecords(ctx, 1)
		polled.EachRecord(func(record *kgo.Record) {
			place := map[string]any{"partition": record.Partition, "offset": record.Offset}
			tell("read", place)
			if err := client.CommitRecords(context.Background(), record); err != nil {
				tell("refused", map[string]any{"why": err.Error()})
				return
			}
			tell("committed", map[string]any{"partition": record.Partition, "offset": record.Offset + 1})
		})
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}

// tell writes one event as a line of JSON, with the time on the system's monotonic clock.
func tell(event string, facts map[string]any) {
	var now unix.Timespec
	story.Must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	told := map[string]any{"event": event, "at": float64(now.Nano()) / 1e9}
	for name, fact := range facts {
		told[name] = fact
	}
	if partitions, has := told["partitions"]; has && partitions.([]int32) == nil {
		told["partitions"] = []int32{}
	}
	_, err := os.Stdout.Write(append(story.Got(json.Marshal(told)), '\n'))
	story.Must(err)
}
