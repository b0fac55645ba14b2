// What the drivers of Go clients share: commands from standard input, lines of JSON to standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

const patience = 25 * time.Second

// client is what a driver has to do; see compat_tests/matrix/driver.py.
type client interface {
	create(topic string, partitions int) error
	produce(mode, topic, codec string, first, count int, timestamp int64) error
	consume(committed bool, topic string, partitions, count int) error
	join(topic, group string, leave <-chan string) error
}

// The texts of record n, as compat_tests/matrix/records.py has them.
var fill = strings.Repeat("x", 100)

func key(number int) []byte    { return []byte(fmt.Sprintf("key-%d", number%50)) }
func value(number int) []byte  { return []byte(fmt.Sprintf("value-%d-%s", number, fill)) }
func header(number int) []byte { return []byte(fmt.Sprintf("header-%d", number/100)) }

func at(timestamp int64, number int) time.Time { return time.UnixMilli(timestamp + int64(number)) }

var telling sync.Mutex

func tell(event map[string]any) {
	line, _ := json.Marshal(event)
	telling.Lock()
	defer telling.Unlock()
	fmt.Println(string(line))
}

func tellRecord(partition int32, offset int64, key, value []byte, timestamp time.Time, header []byte) {
	event := map[string]any{"partition": partition, "offset": offset, "key": string(key), "value": string(value),
		"timestamp": timestamp.UnixMilli(), "header": nil}
	if header != nil {
		event["header"] = string(header)
	}
	tell(event)
}

func tellAssigned(partitions []int) {
	sort.Ints(partitions)
	if partitions == nil {
		partitions = []int{}
	}
	tell(map[string]any{"assigned": partitions})
}

func number(word string) int {
	value, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return int(value)
}

func obey(driven client, words []string, lines <-chan string) error {
	switch words[0] {
	case "create":
		return driven.create(words[1], number(words[2]))
	case "produce":
		return driven.produce(words[1], words[2], words[3], number(words[4]), number(words[5]), int64(number(words[6])))
	case "consume":
		return driven.consume(words[1] == "committed", words[2], number(words[3]), number(words[4]))
	default:
		return driven.join(words[1], words[2], lines)
	}
}

func serve(driven client) {
	lines := make(chan string)
	go func() {
		scanner := bufio.NewScanner(os.Stdin)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		os.Exit(0)
	}()
	for line := range lines {
		if err := obey(driven, strings.Fields(line), lines); err != nil {
			tell(map[string]any{"error": err.Error()})
		} else {
			tell(map[string]any{"done": true})
		}
	}
}

func main() { serve(newClient(os.Args[len(os.Args)-1])) }
