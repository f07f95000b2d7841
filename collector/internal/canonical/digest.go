package canonical

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
	"golang.org/x/crypto/blake2b"
)

// Digest is XXH3 of 128 bits, the most significant byte first.
type Digest [16]byte

// None is the digest of nothing that was said.
var None Digest

// Of is the digest of bytes.
func Of(raw []byte) Digest {
	return xxh3.Hash128(raw).Bytes()
}

// OfText is the digest of a text.
func OfText(text string) Digest {
	return xxh3.HashString128(text).Bytes()
}

// OfValues is the digest of a list of JSON values.
func OfValues(values ...any) Digest {
	return Of(Form(values))
}

// Joined is the digest of digests, one after the other.
func Joined(digests ...Digest) Digest {
	raw := make([]byte, 0, len(digests)*len(None))
	for _, digest := range digests {
		raw = append(raw, digest[:]...)
	}
	return Of(raw)
}

// Exporter writes digests for who is outside: bare, or keyed, so that nobody without the key can test a guess.
type Exporter struct {
	key []byte
}

// NewExporter makes an exporter; an empty key exports bare digests. BLAKE2b takes 64 bytes, so that a longer key is
// digested first.
func NewExporter(key string) Exporter {
	switch raw := []byte(key); {
	case key == "":
		return Exporter{}
	case len(raw) > blake2b.Size:
		whole := blake2b.Sum512(raw)
		return Exporter{whole[:]}
	default:
		return Exporter{raw}
	}
}

// Write writes a digest as it is exported, `xxh3:<32 hex>` or `b2k:<32 hex>`.
func (e Exporter) Write(digest Digest) string {
	if e.key == nil {
		return "xxh3:" + hex.EncodeToString(digest[:])
	}
	return "b2k:" + hex.EncodeToString(e.keyed(digest[:]))
}

// Digits are the first 16 hex digits of an exported digest: what stands in locators and at the end of long names.
func (e Exporter) Digits(digest Digest) string {
	_, found, _ := strings.Cut(e.Write(digest), ":")
	return found[:16]
}

// Scheme says how digests are exported: `xxh3`, or `b2k:` and a mark of the key, which tells two keys apart and neither
// of them.
func (e Exporter) Scheme() string {
	if e.key == nil {
		return "xxh3"
	}
	return e.Write(OfText("scheme"))[:12]
}

// keyed cannot fail: sizes of digest and key are within BLAKE2b's bounds.
func (e Exporter) keyed(raw []byte) []byte {
	hash, err := blake2b.New(len(None), e.key)
	if err != nil {
		return make([]byte, len(None))
	}
	_, _ = hash.Write(raw)
	return hash.Sum(nil)
}

// Schema is a tool definition with its set-like lists sorted: `required` names a set in JSON Schema, `enum` an order that
// the model reads.
func Schema(tool any) any {
	switch tool := tool.(type) {
	case Object:
		sorted := make(Object, len(tool))
		for at, member := range tool {
			sorted[at] = Member{member.Name, Schema(member.Value)}
			if names, ok := set(member); ok {
				sorted[at].Value = names
			}
		}
		return sorted
	case []any:
		sorted := make([]any, len(tool))
		for at, item := range tool {
			sorted[at] = Schema(item)
		}
		return sorted
	default:
		return tool
	}
}

func set(member Member) ([]any, bool) {
	items, listed := member.Value.([]any)
	if member.Name != "required" || !listed {
		return nil, false
	}
	names := make([]string, len(items))
	for at, item := range items {
		name, ok := item.(string)
		if !ok {
			return nil, false
		}
		names[at] = name
	}
	slices.Sort(names)
	sorted := make([]any, len(names))
	for at, name := range names {
		sorted[at] = name
	}
	return sorted, true
}

// Read reads the 32 hex digits of a digest.
func Read(digits string) (Digest, bool) {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != len(None) {
		return None, false
	}
	return Digest(raw), true
}
