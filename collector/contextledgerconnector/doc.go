// Package contextledgerconnector counts ledger entries that nobody counted yet: traces and logs in, metrics out.
//
// An entry is a span or log record with the attributes context_ledger.*, as the SDK and the context_ledger processor
// write them. What a metric is called, measured in and divided by stands in spec/registry/metrics.yaml.
package contextledgerconnector
