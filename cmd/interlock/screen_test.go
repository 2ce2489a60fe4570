package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScreenKeepsLinesAndObeysNothing(t *testing.T) {
	var b strings.Builder
	_, err := screen{&b}.Write([]byte("one\ntwo \x1b[31m\u202e\n"))
	require.NoError(t, err)
	require.Equal(t, "one\ntwo \\u001b[31m\\u202e\n", b.String())
}
