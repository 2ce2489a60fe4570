package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// Money is an amount in the smallest unit of its currency: 4990 and "EUR" are
// 49.90 EUR. There are no floats in state. The currency is a code of ISO 4217 in
// capitals; JSON with any other is refused wherever it comes in. The zero Money, 0 of
// no currency, is "no amount yet".
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"` // ISO 4217
}

// UnmarshalJSON takes an amount in a known currency, or none.
func (m *Money) UnmarshalJSON(data []byte) error {
	type plain Money
	var p plain
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return err
	}
	if err := Money(p).check(); err != nil {
		return err
	}
	*m = Money(p)
	return nil
}

// check refuses a currency that is not in the table: two ways to write one would be
// two effects.
func (m Money) check() error {
	code := strings.ToUpper(m.Currency)
	switch {
	case m == Money{}:
		return nil
	case m.Currency == "":
		return Errorf(CodeInvalid, "an amount needs a currency, a code of ISO 4217 such as EUR")
	case currency.IsValid(m.Currency):
		return nil
	case currency.IsValid(code):
		return Errorf(CodeInvalid, "currency %q: write %s, in capitals", m.Currency, code)
	}
	return Errorf(CodeInvalid, "%q is no currency of ISO 4217: write a code such as EUR, in capitals", clip(m.Currency, idLimit))
}

// digits is how many decimals an amount in the currency has.
func (m Money) digits() int {
	if n, known := currency.GetDigits(m.Currency); known {
		return int(n)
	}
	return 2
}

// Decimal is the amount in the currency's main unit, without its name.
func (m Money) Decimal() string {
	digits := m.digits()
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
