// SPDX-License-Identifier: MIT OR Apache-2.0

// Command gopcua-server is a gopcua server with N changing variables.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/ua"
)

const firstSignal = 100000

// The interop test node that clients write and monitor.
const (
	interopURI = "urn:taktwerk:interop"
	payloadID  = "scalar/ByteString"
)

func main() {
	port := flag.Int("port", 4840, "0 takes a free one")
	bind := flag.String("bind", "127.0.0.1", "address to listen on")
	count := flag.Int("variables", 0, "how many")
	update := flag.Float64("update", 0, "milliseconds, 0 = never")
	withStdin := flag.Bool("exit-with-stdin", false, "end with standard input")
	flag.Parse()
	log.SetOutput(io.Discard)

	if *port == 0 {
		listener, err := net.Listen("tcp", net.JoinHostPort(*bind, "0"))
		if err != nil {
			fail(err)
		}
		*port = listener.Addr().(*net.TCPAddr).Port
		listener.Close()
	}
	s := server.New(
		server.EndPoint(*bind, *port),
		server.EnableSecurity("None", ua.MessageSecurityModeNone),
		server.EnableAuthMode(ua.UserTokenTypeAnonymous),
		server.ServerName("gopcua peer"),
	)
	space := server.NewNodeNameSpace(s, "urn:taktwerk:peer:gopcua:server")
	root, err := s.Namespace(0)
	if err != nil {
		fail(err)
	}
	// The library's own constructor of folders panics in this version; each namespace has a folder of its own, though.
	folder := space.Objects()
	root.Objects().AddRef(folder, id.HasComponent, true)

	// Each value is one word that readers and the writer share; the library asks for it when it needs it.
	type cell struct {
		value  atomic.Pointer[ua.DataValue]
		nodeID *ua.NodeID
	}
	cells := make([]*cell, *count)
	for i := range cells {
		c := &cell{nodeID: ua.NewNumericNodeID(space.ID(), uint32(firstSignal+i))}
		c.value.Store(stamped(float64(i), time.Now()))
		node := server.NewVariableNode(c.nodeID, fmt.Sprintf("signal%d", i), func() *ua.DataValue { return c.value.Load() })
		node.SetAttribute(ua.AttributeIDDataType, server.DataValueFromValue(ua.NewNumericExpandedNodeID(0, id.Double)))
		space.AddNode(node)
		folder.AddRef(node, id.HasComponent, true)
		cells[i] = c
	}
	interop := server.NewNodeNameSpace(s, interopURI)
	root.Objects().AddRef(interop.Objects(), id.HasComponent, true)
	payload := server.NewVariableNode(ua.NewStringNodeID(interop.ID(), payloadID), "ByteString", []byte{})
	payload.SetAttribute(ua.AttributeIDDataType, server.DataValueFromValue(ua.NewNumericExpandedNodeID(0, id.ByteString)))
	interop.AddNode(payload)
	interop.Objects().AddRef(payload, id.HasComponent, true)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	if err := s.Start(ctx); err != nil {
		fail(err)
	}
	if *update > 0 {
		go func() {
			period := time.Duration(*update * float64(time.Millisecond))
			start := time.Now()
			for turn := 1; ; turn++ {
				time.Sleep(time.Until(start.Add(time.Duration(turn) * period)))
				now := time.Now()
				for i, c := range cells {
					c.value.Store(stamped(float64(turn+i), now))
					s.ChangeNotification(c.nodeID)
				}
			}
		}()
	}
	if *withStdin {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	fmt.Printf("READY opc.tcp://%s\n", net.JoinHostPort(*bind, fmt.Sprint(*port)))
	<-ctx.Done()
}

func stamped(value float64, at time.Time) *ua.DataValue {
	return &ua.DataValue{
		EncodingMask:    ua.DataValueValue | ua.DataValueSourceTimestamp,
		Value:           ua.MustVariant(value),
		SourceTimestamp: at,
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
