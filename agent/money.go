package agent

import (
	"fmt"
	"strconv"
	"strings"
)

// Money is an amount in the smallest unit of its currency: 4990 and "EUR" are
// 49.90 EUR. There are no floats in state.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"` // ISO 4217
}

// Decimal is the amount in the currency's main unit, without its name.
func (m Money) Decimal() string {
	digits := 2
	switch m.Currency {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		digits = 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		digits = 3
	}
	sign, text := "", strconv.FormatInt(m.Minor, 10)
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	if digits == 0 {
		return sign + text
	}
	if len(text) <= digits {
		text = strings.Repeat("0", digits+1-len(text)) + text
	}
	return sign + text[:len(text)-digits] + "." + text[len(text)-digits:]
}

// String is the amount as a person writes it.
func (m Money) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", m.Decimal(), m.Currency))
}
