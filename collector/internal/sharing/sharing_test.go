package sharing

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The same key gives the same value while somebody holds it, and a new one once nobody does.
func TestOneValueWhileItIsHeld(t *testing.T) {
	var values Values[string, *int]
	create := func() (*int, error) { return new(int), nil }
	first, err := values.Take("a", create)
	require.NoError(t, err)
	second, err := values.Take("a", create)
	require.NoError(t, err)
	other, err := values.Take("b", create)
	require.NoError(t, err)

	assert.Same(t, first.Value, second.Value)
	assert.NotSame(t, first.Value, other.Value)
	assert.False(t, first.Release())
	assert.False(t, first.Release(), "a claim is given back once")
	assert.True(t, second.Release())

	anew, err := values.Take("a", create)
	require.NoError(t, err)
	assert.NotSame(t, first.Value, anew.Value)
}

// A value that cannot be made is held by nobody, and is tried again.
func TestAValueThatCannotBeMade(t *testing.T) {
	var values Values[string, int]
	broken := errors.New("broken")
	_, err := values.Take("a", func() (int, error) { return 0, broken })
	require.ErrorIs(t, err, broken)
	lease, err := values.Take("a", func() (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, lease.Value)
}
