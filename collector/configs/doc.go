// Package configs has a configuration of otelcol-context-ledger for each place where it can stand. The tests start the
// real binary with them and look at what comes out at the far end; OTELCOL names the binary, which `make collector`
// builds.
package configs
