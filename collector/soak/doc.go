// Package soak holds the collector to what it promises over a long time and when it is killed: memory under a limit, no
// entry lost, none counted twice. SPANS says how many are sent.
package soak
