package spelling_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/spelling"
)

// A word has the form that spec/README.md tells, whichever byte stands first or later in it.
func TestWordHasItsForm(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,63}$`)
	for sign := range 256 {
		for _, text := range []string{string([]byte{byte(sign)}), string([]byte{byte(sign), 'a'}), string([]byte{'a', byte(sign)})} {
			assert.Equal(t, form.MatchString(text), spelling.Word(text) == text, "%q", text)
		}
	}
}

// A model that is a path of a machine is told by its last part, whatever marks the path.
func TestModelIsToldByTheLastPartOfAPath(t *testing.T) {
	for said, want := range map[string]string{
		"/srv/m.gguf": "m.gguf", "~/m.gguf": "m.gguf", `\\host\m.gguf`: "m.gguf", `C:\m.gguf`: "m.gguf", "d:/m.gguf": "m.gguf",
		"file:///m.gguf": "m.gguf", "org/model": "org/model", "model:latest": "model:latest", "1:/x": "1:/x", "": "",
	} {
		assert.Equal(t, want, spelling.Model(said), said)
	}
}
