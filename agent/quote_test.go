package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

type wordsState struct {
	Text   string      `json:"text"   set:"user"`
	Count  int64       `json:"count"  set:"user"`
	Amount agent.Money `json:"amount" set:"user"`
	Paid   agent.Money `json:"paid"   set:"tool"`
}

type wordsIn struct {
	Amount agent.Money `json:"amount"`
}

func wordsAgent() *agent.Definition {
	pay := tool.Keyed("pay", keyed[wordsIn, refund], func(s *wordsState, a wordsIn, _ refund) error { s.Paid = a.Amount; return nil })
	return agent.Define(agent.Spec[wordsIn, wordsState]{Name: "words", Version: 1, Instructions: "x",
		Init: func(in wordsIn) (wordsState, error) { return wordsState{Amount: in.Amount}, nil },
		Phases: []agent.Phase[wordsState]{{Name: "talk", Tools: []agent.Tool[wordsState]{pay}, Moves: []agent.Move[wordsState]{{To: "end"}}},
			{Name: "end", Final: true}}})
}

// setBy is the model's try to set one field by a quote; "" where it is taken.
func setBy(t *testing.T, message, quote, field, value string) string {
	t.Helper()
	tr := begin(t, wordsAgent(), `{"amount":{"minor":0,"currency":""}}`)
	tr.message(message)
	q, err := json.Marshal(quote)
	require.NoError(t, err)
	tr.model(`set_fields {"fields":{"` + field + `":` + value + `},"quote":` + string(q) + `}`)
	if a := tr.answer("c1_1"); a.Status != "done" {
		return a.Text
	}
	return ""
}

func money(minor int64, currency string) string {
	return fmt.Sprintf(`{"minor":%d,"currency":%q}`, minor, currency)
}

func word(s string) string {
	j, _ := json.Marshal(s)
	return string(j)
}

type quoteCase struct{ message, quote, field, value string }

// What a user did not say sets no field of theirs, however the quote is cut.
func TestSetFields_QuoteOfWhatWasNotSaid(t *testing.T) {
	for _, c := range []quoteCase{
		// Another currency, or none that is known.
		{"refund 5000 JPY", "5000", "amount", money(500000, "USD")},
		{"refund 5000 JPY", "5000 JPY", "amount", money(500000, "USD")},
		{"I paid 50 yen", "50 yen", "amount", money(5000, "EUR")},
		{"I paid 50 yen", "50", "amount", money(5000, "EUR")},
		{"50 dollars please", "50 dollars", "amount", money(5000, "EUR")},
		{"$50 please", "$50", "amount", money(5000, "EUR")},
		{"$ 50 please", "50", "amount", money(5000, "EUR")},
		{"US$50", "US$50", "amount", money(5000, "EUR")},
		{"50€", "50€", "amount", money(5000, "USD")},
		{"50 usd", "50", "amount", money(5000, "EUR")},
		{"50 Australian dollars", "50", "amount", money(5000, "USD")},
		{"In GBP, please: 50", "50", "amount", money(5000, "EUR")},
		{"50 EUR", "50 EUR", "amount", money(5000, "<b>")},
		{"50 eur", "50 eur", "amount", money(5000, "eur")},
		{"1.234 EUR", "1.234", "amount", money(1234, "KWD")},
		// A part of a number: sign, groups, decimals, fraction, scale.
		{"-50 EUR", "-50 EUR", "amount", money(5000, "EUR")},
		{"-50 EUR", "50 EUR", "amount", money(5000, "EUR")},
		{"−5 it is", "5", "count", "5"},
		{"–5 it is", "–5", "count", "5"},
		{"10-5", "-5", "count", "-5"},
		{"10-5", "10-5", "count", "10"},
		{"5 000 pieces", "5", "count", "5"},
		{"5\u00a0000 pieces", "5", "count", "5"},
		{"5\u202f000 pieces", "000", "text", word("000")},
		{"5'000 pieces", "5", "count", "5"},
		{"5’000 pieces", "5", "count", "5"},
		{"1'000.00 EUR", "1'000.00", "amount", money(100, "EUR")},
		{"12 500 EUR", "12 500 EUR", "amount", money(50000, "EUR")},
		{"1 500.00 EUR", "500.00 EUR", "amount", money(50000, "EUR")},
		{"5½ pieces", "5", "count", "5"},
		{"5 ½ pieces", "5", "count", "5"},
		{"5 thousand", "5", "count", "5"},
		{"50k EUR", "50k EUR", "amount", money(5000, "EUR")},
		{"10万円", "10万円", "amount", money(10, "JPY")},
		{"50 cents", "50 cents", "amount", money(5000, "EUR")},
		{"50%", "50%", "count", "50"},
		{"1.234 of KWD", "1.234", "amount", money(1234000, "KWD")}, // 1.234 or 1234: nobody knows
		{"1,234 it is", "1,234", "amount", money(1234, "KWD")},
		// A part of an id.
		{"order A-1042", "1042", "text", word("1042")},
		{"order 1042-7", "1042", "text", word("1042")},
		{"order 1042/7", "1042", "count", "1042"},
		{"order 1042#7", "1042", "text", word("1042")},
		{"order 1042_7", "1042", "text", word("1042")},
		{"https://shop.example/1042", "1042", "text", word("1042")},
		// A part of an address.
		{"mail ann@x.co.uk", "ann@x.co", "text", word("ann@x.co")},
		{"mail jo.ann@x.co", "ann@x.co", "text", word("ann@x.co")},
		{"mail ann+evil@x.co", "evil@x.co", "text", word("evil@x.co")},
		{"mail ann@x.co", "ann", "text", word("ann")},
		// Characters that nobody sees, and marks of a letter.
		{"order 10\u200b42", "10", "text", word("10")},
		{"order 10\u200b42", "10\u200b42", "text", word("1042")},
		{"order 10\u200b42", "10\u200b42", "text", word("10\u200b42")},
		{"order 42\u2060", "42", "text", word("42")},
		{"order 10\u00ad42", "42", "text", word("42")},
		{"cafe\u0301", "cafe", "text", word("cafe")},
		{"5\u0336 it is", "5", "count", "5"},
		// A part of a word, in any script.
		{"איני רוצה", "אין", "text", word("אין")},
		{"והזמנה שלי", "הזמנה", "text", word("הזמנה")},
		{"لانعم", "نعم", "text", word("نعم")},
		{"ไม่ใช่", "ใช่", "text", word("ใช่")},
		{"这不是", "是", "text", word("是")},
		{"違います、はいではない", "はい", "text", word("はい")},
		{"아니요", "요", "text", word("요")},
		// No word at all.
		{"No, stop.", ".", "text", word(".")},
		{"No, stop.", " ", "text", word(" ")},
		{"order 0042", "0042", "count", "42"},
		{"order 5e3", "5e3", "count", "5000"},
	} {
		require.NotEmpty(t, setBy(t, c.message, c.quote, c.field, c.value), "%+q", c)
	}
}

// What a user said is taken in the notations that people use.
func TestSetFields_QuoteOfWhatWasSaid(t *testing.T) {
	for _, c := range []quoteCase{
		{"1.500,00 EUR", "1.500,00 EUR", "amount", money(150000, "EUR")},
		{"1,500.00 EUR", "1,500.00", "amount", money(150000, "EUR")},
		{"it cost 1'500.00", "1'500.00", "amount", money(150000, "CHF")},
		{"it cost 1’500.00", "1'500.00", "amount", money(150000, "CHF")},
		{"1 500.00 EUR", "1 500.00 EUR", "amount", money(150000, "EUR")},
		{"1\u00a0500,00\u00a0€", "1 500,00 €", "amount", money(150000, "EUR")},
		{"1\u202f500\u202f€", "1 500 €", "amount", money(150000, "EUR")},
		{"89,90", "89,90", "amount", money(8990, "EUR")},
		{"89.9 please", "89.9", "amount", money(8990, "EUR")},
		{"−5 EUR", "-5 EUR", "amount", money(-500, "EUR")},
		{"5½", "5½", "amount", money(550, "EUR")},
		{"€50", "€50", "amount", money(5000, "EUR")},
		{"50EUR", "50EUR", "amount", money(5000, "EUR")},
		{"Fr. 50.-", "50.-", "amount", money(5000, "CHF")},
		{"50 dollars", "50 dollars", "amount", money(5000, "USD")},
		{"50 Australian dollars", "50", "amount", money(5000, "AUD")},
		{"5000円", "5000円", "amount", money(5000, "JPY")},
		{"1.234 EUR", "1.234 EUR", "amount", money(123400, "EUR")}, // no euro has three decimals
		{"1.234 KWD is 3,50 EUR", "3,50 EUR", "amount", money(350, "EUR")},
		{"12,34,567 rupees", "12,34,567", "amount", money(123456700, "INR")},
		{"١٠٤٢ please", "١٠٤٢", "count", "1042"},
		{"1,042 pieces", "1,042", "count", "1042"},
		{"refund 1042, please", "1042", "text", word("1042")},
		{"it is #1042.", "#1042.", "text", word("1042")},
		{"退款1042号", "1042", "text", word("1042")},
		{"order A-7_b", "A-7_b", "text", word("A-7_b")},
		{"order “1042”", `"1042"`, "text", word("1042")},
		{"Rosa‑Luxemburg–Str. 5", "Rosa-Luxemburg-Str. 5", "text", word("Rosa-Luxemburg-Str. 5")},
		{"New\u00a0York", "New York", "text", word("New York")},
		{"New\n  York", "New York", "text", word("New York")},
		{"cafe\u0301 order", "caf\u00e9", "text", word("caf\u00e9")},
		{"caf\u00e9 order", "cafe\u0301", "text", word("cafe\u0301")},
		{"mail ann@x.co.", "ann@x.co", "text", word("ann@x.co")},
		{"כן, תודה", "כן", "text", word("כן")},
		{"はい、お願いします", "はい", "text", word("はい")},
	} {
		require.Empty(t, setBy(t, c.message, c.quote, c.field, c.value), "%+q", c)
	}
}

// A fact is a quote too; what its sentence said of the currency is not lost with it.
func TestFacts_Quote(t *testing.T) {
	tr := begin(t, wordsAgent(), `{"amount":{"minor":0,"currency":""}}`)
	tr.message("my wife paid 50 dollars, not 1 500.00")
	tr.model(`record_fact {"quote":"."}`, `record_fact {"quote":"500.00"}`, `record_fact {"quote":"fe paid"}`, `record_fact {"quote":"50"}`)
	for _, id := range []string{"c1_1", "c1_2", "c1_3"} {
		require.Equal(t, "refused", tr.answer(id).Status)
	}
	require.Equal(t, "done", tr.answer("c1_4").Status)
	tr.message("go on")
	tr.model(`set_fields {"fields":{"amount":` + money(5000, "EUR") + `},"quote":"50"}`)
	require.Equal(t, "refused", tr.answer("c2_1").Status)
}

// A long message is looked through in linear time, whatever it holds.
func TestSetFields_QuoteInLongMessages(t *testing.T) {
	for _, unit := range []string{"50 ", "50 yen ", "5 000 ", "a", "是", "5\u200b", "¥", "5.5,"} {
		long := strings.TrimSpace(strings.Repeat(unit, 5_500/len(unit)))
		began := time.Now()
		require.NotEmpty(t, setBy(t, long, strings.TrimSpace(unit), "amount", money(5001, "EUR")))
		require.NotEmpty(t, setBy(t, long+" USD", long[:2_999/len(unit)*len(unit)-1], "amount", money(5000, "EUR")))
		require.Less(t, time.Since(began), 2*time.Second, "%q", unit)
	}
}

// One way to write a currency, wherever money comes in.
func TestMoney_OneForm(t *testing.T) {
	for code, says := range map[string]string{"jpy": "write JPY, in capitals", "<b>": "no currency", "ZZZ": "no currency", "": "needs a currency", "DEM": "no currency"} {
		j := money(4990, code)
		require.ErrorContains(t, json.Unmarshal([]byte(j), &agent.Money{}), says)

		tr := begin(t, wordsAgent(), `{"amount":`+j+`}`)
		require.Equal(t, agent.RunFailed, tr.m.Run().Status, "the body of a start")

		tr = begin(t, wordsAgent(), `{"amount":{"minor":0,"currency":""}}`)
		tr.message("4990")
		tr.model(`pay {"amount":`+j+`}`, `set_fields {"fields":{"amount":`+j+`},"quote":"4990"}`)
		require.Contains(t, tr.answer("c1_1").Text, says, "arguments of a call")
		require.Contains(t, tr.answer("c1_2").Text, says, "a field")
	}
}

func TestMoney_Digits(t *testing.T) {
	for code, want := range map[string]string{"MGA": "12345.67", "CLF": "123.4567", "KWD": "1234.567", "JPY": "1234567", "IQD": "1234.567", "HUF": "12345.67", "UGX": "1234567", "CLP": "1234567"} {
		require.Equal(t, want+" "+code, agent.Money{Minor: 1234567, Currency: code}.String())
	}
}
