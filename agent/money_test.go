package agent_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

func TestMoney_String(t *testing.T) {
	for _, c := range []struct {
		minor         int64
		currency      string
		decimal, text string
	}{
		{4990, "EUR", "49.90", "49.90 EUR"},
		{0, "EUR", "0.00", "0.00 EUR"},
		{5, "EUR", "0.05", "0.05 EUR"},
		{50, "USD", "0.50", "0.50 USD"},
		{100, "USD", "1.00", "1.00 USD"},
		{-5, "EUR", "-0.05", "-0.05 EUR"},
		{-4990, "EUR", "-49.90", "-49.90 EUR"},
		{123456789, "EUR", "1234567.89", "1234567.89 EUR"},
		{4990, "JPY", "4990", "4990 JPY"},
		{-1, "JPY", "-1", "-1 JPY"},
		{0, "KRW", "0", "0 KRW"},
		{4990, "KWD", "4.990", "4.990 KWD"},
		{1, "KWD", "0.001", "0.001 KWD"},
		{-12345, "BHD", "-12.345", "-12.345 BHD"},
		{math.MinInt64, "EUR", "-92233720368547758.08", "-92233720368547758.08 EUR"},
		{math.MinInt64, "JPY", "-9223372036854775808", "-9223372036854775808 JPY"},
		{math.MinInt64, "KWD", "-9223372036854775.808", "-9223372036854775.808 KWD"},
		{math.MaxInt64, "EUR", "92233720368547758.07", "92233720368547758.07 EUR"},
		// No currency yet, as in a zero state: still a number, no stray space.
		{0, "", "0.00", "0.00"},
	} {
		m := agent.Money{Minor: c.minor, Currency: c.currency}
		require.Equal(t, c.decimal, m.Decimal())
		require.Equal(t, c.text, m.String())
	}
}

func TestMoney_JSON(t *testing.T) {
	for _, minor := range []int64{math.MinInt64, -1, 0, 9007199254740993, math.MaxInt64} {
		want := agent.Money{Minor: minor, Currency: "EUR"}
		j, err := agent.Encode(want)
		require.NoError(t, err)
		var back agent.Money
		require.NoError(t, json.Unmarshal(j, &back))
		require.Equal(t, want, back)
	}
}
