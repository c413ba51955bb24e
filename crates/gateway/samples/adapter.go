// A gateway adapter in Go: reads the load of this machine. See docs/gateway-programs.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"
)

// message is a line of the gateway.
type message struct {
	Type  string  `json:"type"`
	ID    int     `json:"id"`
	Value float64 `json:"value"`
	Tags  []struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	} `json:"tags"`
}

// reading is a line of this program.
type reading struct {
	ID    int       `json:"id"`
	Value float64   `json:"value"`
	Time  time.Time `json:"time"`
}

// adapter holds what the gateway has set.
type adapter struct {
	mu     sync.Mutex
	ids    map[string]int
	offset float64
	out    *json.Encoder
}

// listen handles the messages of the gateway until standard input ends.
func (a *adapter) listen(in io.Reader) error {
	lines := json.NewDecoder(bufio.NewReader(in))
	for {
		var m message
		if err := lines.Decode(&m); err != nil {
			return err
		}
		if err := a.handle(m); err != nil {
			return err
		}
	}
}

func (a *adapter) handle(m message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m.Type {
	case "start":
		for _, tag := range m.Tags {
			a.ids[tag.Name] = tag.ID
		}
	case "write":
		a.offset = m.Value
		return a.out.Encode(reading{m.ID, m.Value, time.Now()})
	}
	return nil
}

// send writes the load, if there is a tag for it.
func (a *adapter) send() error {
	load, err := loadAverage()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id, ok := a.ids["Load"]
	if !ok {
		return nil
	}
	// Encode writes a whole line at once, so nothing has to be flushed.
	return a.out.Encode(reading{id, load + a.offset, time.Now()})
}

// loadAverage is the average number of running processes in the last minute.
func loadAverage() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	var load float64
	_, err = fmt.Sscan(string(text), &load)
	return load, err
}

func main() {
	log.SetFlags(0)
	a := &adapter{ids: make(map[string]int), out: json.NewEncoder(os.Stdout)}
	go func() {
		if err := a.listen(os.Stdin); err != io.EOF {
			log.Fatal(err)
		}
		os.Exit(0)
	}()
	for range time.Tick(100 * time.Millisecond) {
		if err := a.send(); err != nil {
			log.Fatal(err)
		}
	}
}
