package port_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/port"
)

// The addresses are different, and each can be listened at.
func TestFree(t *testing.T) {
	found, err := port.Free(20)
	require.NoError(t, err)
	assert.Len(t, found, 20)
	for _, address := range found {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err, "each once")
		defer listener.Close()
	}
}
