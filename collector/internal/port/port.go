// Package port finds ports for servers that are started by their configuration, and so cannot be asked for theirs.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports below those that an operating system gives to outgoing connections (from 32768 on Linux): one of these would else
// take the port before the server does.
const first, after, tries = 12_000, 32_000, 1_000

// Free gives so many different addresses of this machine at which nobody listens.
func Free(many int) ([]string, error) {
	found := make([]string, 0, many)
	for range tries {
		if len(found) == many {
			return found, nil
		}
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(after-first))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		defer listener.Close() // not before all are found: they are to be different
		found = append(found, address)
	}
	return nil, fmt.Errorf("of %d ports from %d to %d none of %d tries was free", many, first, after, tries)
}
