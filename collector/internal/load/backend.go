package load

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	// Exporters compress what they send.
	_ "google.golang.org/grpc/encoding/gzip"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Backend is where a collector sends spans on to: it counts them, and nothing else, which costs next to nothing.
type Backend struct {
	// Address is where it listens.
	Address string

	server *grpc.Server
	spans  atomic.Int64
}

// Serve lets a backend listen on a free port.
func Serve() (*Backend, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	made := &Backend{Address: listener.Addr().String()}
	made.server = grpc.NewServer(
		grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(made.take), grpc.MaxRecvMsgSize(256<<20),
	)
	go func() { _ = made.server.Serve(listener) }()
	return made, nil
}

// Spans is how many came.
func (b *Backend) Spans() int64 { return b.spans.Load() }

// Close ends it.
func (b *Backend) Close() { b.server.Stop() }

func (b *Backend) take(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	b.spans.Add(spansIn(request))
	return stream.SendMsg(&[]byte{})
}

// spansIn counts the spans of a request by walking over its resources (1), scopes (2) and spans (2) without reading them.
func spansIn(request []byte) int64 {
	total := int64(0)
	each(request, 1, func(resource []byte) {
		each(resource, 2, func(scope []byte) { each(scope, 2, func([]byte) { total++ }) })
	})
	return total
}

func each(message []byte, number protowire.Number, do func([]byte)) {
	for len(message) > 0 {
		found, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			return
		}
		if found == number && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(message)
			field, _ := protowire.ConsumeBytes(message[tag:])
			do(field)
		}
		message = message[size:]
	}
}

// raw leaves messages as the bytes that they are.
type raw struct{}

var _ encoding.CodecV2 = raw{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*message.(*[]byte))}, nil
}

func (raw) Unmarshal(from mem.BufferSlice, message any) error {
	*message.(*[]byte) = from.Materialize()
	return nil
}

// Register is a backend that remembers how often each entry came.
type Register struct {
	ptraceotlp.UnimplementedGRPCServer
	// Address is where it listens.
	Address string

	server *grpc.Server
	mu     sync.Mutex
	times  map[string]int
}

// Keep lets a register listen on a free port.
func Keep() (*Register, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	made := &Register{Address: listener.Addr().String(), server: grpc.NewServer(grpc.MaxRecvMsgSize(256 << 20)), times: map[string]int{}}
	ptraceotlp.RegisterGRPCServer(made.server, made)
	go func() { _ = made.server.Serve(listener) }()
	return made, nil
}

// Export takes entries.
func (r *Register) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range request.Traces().ResourceSpans().All() {
		for _, scope := range from.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				if id, ok := span.Attributes().Get(semconv.ContextLedgerEntryID); ok {
					r.times[id.AsString()]++
				}
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// Entries gives how many entries came, and how many times more than once each.
func (r *Register) Entries() (known, again int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, times := range r.times {
		again += times - 1
	}
	return len(r.times), again
}

// Close ends it.
func (r *Register) Close() { r.server.Stop() }
