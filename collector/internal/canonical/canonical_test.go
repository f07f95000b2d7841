package canonical_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
)

func parse(t testing.TB, text string) any {
	value, err := canonical.Parse(text)
	require.NoError(t, err)
	return value
}

// What is no JSON is refused, with the place.
func TestParseRefuses(t *testing.T) {
	for text, said := range map[string]string{
		"":             "no value at byte 0",
		"nul":          "no value at byte 0",
		"1 2":          "more than one value at byte 2",
		"01":           "no value at byte 0",
		"1.":           "no value at byte 0",
		"1e":           "no value at byte 0",
		"1e+-2":        "no value at byte 0",
		"+1":           "no value at byte 0",
		`{"a" 1}`:      "no colon at byte 5",
		`{1: 2}`:       "no name of a member at byte 1",
		`[1 2]`:        "no comma at byte 3",
		`[1,]`:         "no value at byte 3",
		`"a`:           "a text without an end at byte 2",
		"\"a\nb\"":     "a control character in a text at byte 2",
		`"\x"`:         "no escape at byte 1",
		`"\u12g4"`:     "no escape at byte 1",
		`{"a": [1, 2}`: "no comma at byte 11",
	} {
		_, err := canonical.Parse(text)
		assert.EqualError(t, err, said, text)
	}
	_, err := canonical.Parse(strings.Repeat("[", 100_000))
	assert.ErrorIs(t, err, canonical.ErrDepth)
	_, err = canonical.Parse(strings.Repeat("9", 5000))
	assert.EqualError(t, err, "no value at byte 0")
}

// What JSON allows and few write: lone surrogates, pairs, doubled names, bytes that are no UTF-8, huge numbers.
func TestParseOddities(t *testing.T) {
	for text, form := range map[string]string{
		`"\ud83d\ude00"`:          `"😀"`,
		`"\ud83d"`:                `"\\ud83d"`,
		`"\ude00\ud83d\ude00"`:    `"\\ude00😀"`,
		"\"a\xffb\"":              `"a` + "\uFFFD" + `b"`,
		`{"a": 1, "b": 2, "a":3}`: `{"a":3,"b":2}`,
		` [ ] `:                   `[]`,
		`-0`:                      `0`,
		`1e400`:                   `"\u0000float:inf"`,
		`-1e400`:                  `"\u0000float:-inf"`,
		`1E2`:                     `100`,
		`1e16`:                    `1e16`,
		`9007199254740994.0`:      `9007199254740994.0`,
		`1.5e300`:                 `1.5e300`,
		`0.000001`:                `1e-6`,
		`0.0001`:                  `0.0001`,
	} {
		assert.Equal(t, form, string(canonical.Form(parse(t, text))), text)
	}
}

// An object with many members has each name once, with its last value.
func TestManyMembers(t *testing.T) {
	text := "{"
	for range 3 {
		for number := range 100 {
			text += `"k` + string(rune('0'+number%10)) + string(rune('0'+number/10)) + `": 1,`
		}
	}
	object := canonical.Mapping(parse(t, text+`"k00": 2}`))
	assert.Len(t, object, 100)
	assert.Equal(t, int64(2), object.Get("k00"))
}

// What JSON has no form for has a tag that no text equals.
func TestTags(t *testing.T) {
	deep := any("x")
	for range 300 {
		deep = []any{deep}
	}
	assert.Contains(t, string(canonical.Form(deep)), `"\u0000cut"`)
	assert.Equal(t, `"\u0000float:nan"`, string(canonical.Form(math.NaN())))
	assert.Equal(t, `"\u0000type:struct {}"`, string(canonical.Form(struct{}{})))
	large := new(big.Int).Lsh(big.NewInt(1), 5000)
	assert.True(t, strings.HasPrefix(string(canonical.Form(large)), `"\u0000int:1000`))
}

// Bytes as sent keep the order of members and whole floats.
func TestWire(t *testing.T) {
	assert.Equal(t, `{"b":1.0,"a":[2]}`, string(canonical.Wire(parse(t, `{"b": 1.0, "a": [2]}`))))
}

// The sets of a schema are sorted, and nothing else.
func TestSchema(t *testing.T) {
	tool := parse(t, `{"p": [{"required": ["b", "a"]}], "required": ["x", 1], "enum": ["b", "a"]}`)
	want := `{"p":[{"required":["a","b"]}],"required":["x",1],"enum":["b","a"]}`
	assert.Equal(t, want, string(canonical.Wire(canonical.Schema(tool))))
}

// The scheme of digests tells two keys apart, and not what they are.
func TestScheme(t *testing.T) {
	assert.Equal(t, "xxh3", canonical.NewExporter("").Scheme())
	one, other := canonical.NewExporter("one").Scheme(), canonical.NewExporter("other").Scheme()
	assert.NotEqual(t, one, other)
	assert.Regexp(t, `^b2k:[0-9a-f]{8}$`, one)
}

// The digits of a digest are read back, and nothing else is.
func TestRead(t *testing.T) {
	digest := canonical.OfText("a")
	found, ok := canonical.Read(strings.TrimPrefix(canonical.Exporter{}.Write(digest), "xxh3:"))
	assert.True(t, ok)
	assert.Equal(t, digest, found)
	for _, digits := range []string{"", "zz", "00"} {
		_, ok := canonical.Read(digits)
		assert.False(t, ok)
	}
}

// A member is set, taken away and found without changing the object that others hold.
func TestObject(t *testing.T) {
	object := canonical.Mapping(parse(t, `{"a": 1, "b": 2}`))
	assert.Equal(t, `{"a":3,"b":2}`, string(canonical.Wire(object.With("a", int64(3)))))
	assert.Equal(t, `{"a":1,"b":2,"c":3}`, string(canonical.Wire(object.With("c", int64(3)))))
	assert.Equal(t, `{"b":2}`, string(canonical.Wire(object.Without("a"))))
	assert.Equal(t, `{"a":1,"b":2}`, string(canonical.Wire(object)))
	assert.Nil(t, object.Get("c"))
	assert.Empty(t, canonical.Mapping("a"))
	assert.Empty(t, canonical.Items("a"))
	assert.Empty(t, canonical.Text(1))
}

// Whatever is read has a canonical form that is read back as the same one.
func FuzzForm(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,2.5,"x",null,true]}`, `"\ud83d\ude00\u0000"`, `[1e300,-0.0,12345678901234567890]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := canonical.Parse(text)
		if err != nil {
			return
		}
		form := string(canonical.Form(value))
		again, err := canonical.Parse(form)
		if err != nil {
			t.Fatalf("%q: %v", form, err)
		}
		if found := string(canonical.Form(again)); found != form {
			t.Fatalf("%q is read back as %q", form, found)
		}
		canonical.Form(canonical.Schema(value))
		canonical.Wire(value)
	})
}
