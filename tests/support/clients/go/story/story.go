// Package story is what every client is asked to do, and how it tells what it saw.
package story

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

const (
	Partitions  = 3
	PerCodec    = 60
	FirstTimeMs = 1_700_000_000_000
	CutAt       = 5
	Deadline    = 60 * time.Second
)

var Codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// Topic configs at creation, and the one that is changed later.
var Configs = map[string]string{"retention.ms": "-1", "max.message.bytes": "1000000"}

const Changed, ChangedTo = "max.message.bytes", "2000000"

// Record n goes to partition n % 3.
func Key(n int) []byte        { return []byte(fmt.Sprintf("key-%d", n)) }
func Value(n int) []byte      { return []byte(strings.Repeat(fmt.Sprintf("value %d ", n), n%50+1)) }
func HeaderOf(n int) []byte   { return []byte(fmt.Sprint(n)) }
func Time(n int) time.Time    { return time.UnixMilli(FirstTimeMs + int64(n)) }
func PartitionOf(n int) int32 { return int32(n % Partitions) }

// Total is how many records are written.
func Total() int { return PerCodec * len(Codecs) }

// Read is a record as a consumer saw it.
type Read struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	TimeMs    int64  `json:"timestamp"`
	Key       string `json:"key"`
	Value     string `json:"value"`
	Header    string `json:"header"`
}

// Told is printed as JSON when the story is over.
type Told map[string]any

func (told Told) Records(records []Read) {
	sort.Slice(records, func(a, b int) bool {
		if records[a].Partition != records[b].Partition {
			return records[a].Partition < records[b].Partition
		}
		return records[a].Offset < records[b].Offset
	})
	told["records"] = records
}

func (told Told) Print() {
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		Must(err)
	}
}

// Arguments are the broker's address and the topic's name.
func Arguments() (bootstrap, topic string) {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: PROGRAM BOOTSTRAP TOPIC [VERSION]")
		os.Exit(2)
	}
	return os.Args[1], os.Args[2]
}

// Version is the release of Kafka whose protocol is to be spoken; empty for the newest that both sides know.
func Version() string {
	if len(os.Args) < 4 {
		return ""
	}
	return os.Args[3]
}

func Must(err error) {
	if err != nil {
		panic(err)
	}
}

func Got[T any](value T, err error) T {
	Must(err)
	return value
}

// Until asks until the answer is the wanted one, for brokers that hear of a change a moment after it was made.
func Until[T comparable](wanted T, ask func() T) T {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if answer := ask(); answer == wanted || time.Since(began) > Deadline/4 {
			return answer
		}
	}
}

// What is true in the end.
const (
	PartitionsLater = Partitions + 1
	Gone            = "UNKNOWN_TOPIC_OR_PARTITION"
)
