// Package contextledgerprocessor makes ledger entries of the model calls among spans and log records, whoever tells of
// them: names and token counts are brought into one form, each call is held against the session that it continues, and
// what the cache did and why is written beside what was there. It annotates and drops nothing.
//
// In the mode partition it does none of this, but splits batches by session, so that a queue between collectors can
// give each session to one of them.
package contextledgerprocessor
