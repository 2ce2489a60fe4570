package agent

import (
	"slices"
	"strings"
)

// quoted checks that a quote stands in a user's message and holds the value, as whole
// words or a whole number.
func (m *Machine) quoted(quote string, v any) error {
	places, err := m.places(quote)
	if err != nil {
		return err
	}
	w, err := wanted(v)
	if err != nil {
		return err
	}
	for _, p := range places {
		if err = w.in(p); err == nil {
			return nil
		}
	}
	return err
}

// tries bounds how many places of one text a value is looked for at.
const tries = 20

// quotation is a quote in a text of the user's.
type quotation struct {
	text     *prose
	from, to int
	seq      int64 // of the message
	fact     bool  // the text is a fact, not the whole message
}

// said finds the latest user message in which a quote stands.
func (m *Machine) said(quote string) (int64, error) {
	places, err := m.places(quote)
	if err != nil {
		return 0, err
	}
	return places[0].seq, nil
}

// places are where a quote stands, the latest first: in the user's messages that the run
// still holds, and the facts.
func (m *Machine) places(quote string) ([]quotation, error) {
	if r := invisible(quote); r >= 0 {
		return nil, Errorf(CodeInvalid, "the quote holds the invisible character %U: quote words without it, or use ask", r)
	}
	needle := strings.TrimSpace(fold(quote))
	if !hasWord(needle) {
		return nil, Errorf(CodeInvalid, "a quote from a user's message is needed: words of it, as they stand there")
	}
	var out []quotation
	look := func(text string, seq int64, fact bool) {
		if !strings.Contains(fold(text), needle) {
			return
		}
		w := wordsOf(text)
		at := w.find(needle, 0, len(w.text))
		for _, at := range at[max(0, len(at)-tries):] {
			out = append(out, quotation{w, at, at + len(needle), seq, fact})
		}
	}
	for _, t := range m.run.Turns {
		for _, it := range t.Opening {
			if it.Kind == ItemMessage && m.ofUser(it) {
				look(it.Text, it.Seq, false)
			}
		}
	}
	for _, f := range m.run.Facts {
		look(f.Quote, f.Seq, true)
	}
	if len(out) == 0 {
		return nil, Errorf(CodeInvalid, "no user message holds %q word for word: quote whole words and whole numbers as they stand there, or use ask", quote)
	}
	slices.SortStableFunc(out, func(a, b quotation) int { return int(b.seq - a.seq) })
	return out, nil
}

// ofUser reports whether a message is of the user whom the run serves: nobody else's
// words set the user's fields or say yes for them.
func (m *Machine) ofUser(it Item) bool { return it.By == m.run.User }

// want is a value that is looked for in a quote: a text, or a number with at most so
// many decimals and perhaps a currency.
type want struct {
	text     string
	number   string // "" for a text; canonical
	decimals int
	currency string
}

func wanted(v any) (want, error) {
	switch v := v.(type) {
	case string:
		if r := invisible(v); r >= 0 {
			return want{}, Errorf(CodeInvalid, "the value holds the invisible character %U", r)
		}
		if w := strings.TrimSpace(fold(v)); hasWord(w) {
			return want{text: w}, nil
		}
	case number:
		if s := string(v); !strings.ContainsAny(s, ".eE") {
			return want{text: s, number: s}, nil
		}
	case map[string]any:
		var amount Money
		if err := amount.UnmarshalJSON(encodeValue(v)); err != nil {
			return want{}, err
		}
		if amount.Currency != "" {
			return want{text: amount.String(), number: plainNumber(amount.Decimal()), decimals: amount.digits(), currency: amount.Currency}, nil
		}
	}
	return want{}, Errorf(CodeInvalid, "only a text, a whole number or an amount can be taken from a quote; use ask")
}

// in says whether the value stands in a quote; the error says why not.
func (w want) in(p quotation) error {
	if w.number == "" {
		if len(p.text.find(w.text, p.from, p.to)) > 0 {
			return nil
		}
		return Errorf(CodeInvalid, "the quote does not hold the value %q as whole words: quote the words that say it, or use ask", w.text)
	}
	err := Errorf(CodeInvalid, "the quote does not hold the value %s as a whole number: quote the number that says it, with all that belongs to it, or use ask", w.text)
	tried := 0
	for i, t := range p.text.tokens {
		if t.from < p.from || t.to > p.to || tried == tries {
			continue
		}
		n, ok := readNumber(p.text.text[t.from:t.to])
		if !ok || w.currency == "" && n.unit != "" {
			continue
		}
		var fits []string
		for _, r := range n.readings {
			if _, decimals, _ := strings.Cut(r, "."); len(decimals) <= w.decimals {
				fits = append(fits, r)
			}
		}
		switch {
		case !slices.Contains(fits, w.number):
			continue
		case len(fits) > 1:
			err = Errorf(CodeInvalid, "%q may be %s: ask the user to write it another way", p.text.text[t.from:t.to], strings.Join(fits, " or "))
			continue
		}
		tried++
		if w.currency == "" {
			return nil
		}
		if err = p.text.currencyFits(i, n.unit, w.currency, p.fact); err == nil {
			return nil
		}
	}
	return err
}
