package agent

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/bojanz/currency"
)

// scales are words that make a number another one, or its unit a part of one: what
// stands before them is not an amount by itself.
var scales = strings.Fields(`k thousand thousands million millions billion billions trillion hundred hundreds dozen mn mln mio mrd bn
	tausend hundert tsd millionen milliarde milliarden mil millón millones mille millions milliard milliards milliers mila milioni milione
	milhão milhões тыс тысяч тысячи тысяча миллион миллиона миллионов lakh lakhs crore crores
	cent cents ct cts penny pence p rappen centime centimes öre øre kopeck kopecks paise fils sen percent percents prozent procent % ‰`)

var (
	grouped = regexp.MustCompile(`^[^\d]{0,5}\d{1,3}( \d{3})*$`)
	group   = regexp.MustCompile(`^\d{3}([.,]\d+)?([^\d.,]{0,5}|[.,]-)$`)
	numeric = regexp.MustCompile(`^([^\d.,]*)((?:\d|[.,]\d)[\d.,' ]*?)( ?[½¼¾])?([^\d]*)$`)
	tail    = regexp.MustCompile(`^[.,]-{1,2}`) // 50.- and 50,--
)

// numberRead is what a number as people write it can be.
type numberRead struct {
	readings []string // canonical: no sign but -, no groups, a point, no trailing zeros
	unit     string   // the currency that is written onto it
}

// readNumber reads 1500, 1,500.00, 1.500,00, 1'500.00, 1 500.00, 12,34,567, -5, 5½, €50,
// 50EUR. What can be read in two ways (1.234) has two readings; what may be no number
// (1042-7, 5k, 0042) has none.
func readNumber(s string) (n numberRead, ok bool) {
	p := numeric.FindStringSubmatch(s)
	if p == nil {
		return n, false
	}
	before, core, part, after := p[1], p[2], strings.TrimSpace(p[3]), tail.ReplaceAllString(p[4], "")
	if core[0] == '.' && strings.ContainsFunc(before, unicode.IsLetter) {
		core = core[1:] // Fr.50
	}
	sign := ""
	for _, side := range []func(string, string) (string, bool){strings.CutPrefix, strings.CutSuffix} {
		if rest, cut := side(before, "-"); cut && sign == "" {
			before, sign = rest, "-"
		} else if rest, cut := side(before, "+"); cut && sign == "" {
			before = rest
		}
	}
	before, after = strings.TrimSpace(before), strings.TrimSpace(after)
	for _, unit := range []string{before, after} {
		switch {
		case unit == "":
		case n.unit != "" || currenciesOf(unit, true) == nil:
			return n, false
		default:
			n.unit = unit
		}
	}
	fraction := map[string]string{"½": ".5", "¼": ".25", "¾": ".75"}[part]
	for _, r := range readings(core) {
		if fraction != "" {
			if strings.Contains(r, ".") {
				return n, false
			}
			r += fraction
		}
		n.readings = append(n.readings, plainNumber(sign+r))
	}
	slices.Sort(n.readings)
	n.readings = slices.Compact(n.readings)
	return n, len(n.readings) > 0
}

// readings are what digits with separators can be: groups of thousands, decimals, or both.
func readings(s string) (out []string) {
	last := strings.LastIndexAny(s, ".,' ")
	if last < 0 {
		return sound(s)
	}
	sep := s[last : last+1]
	if whole, ok := ungroup(s, sep); ok {
		out = append(out, whole)
	}
	if (sep == "." || sep == ",") && strings.Count(s, sep) == 1 && last+1 < len(s) {
		whole := s[:last]
		if i := strings.IndexAny(whole, ".,' "); i >= 0 {
			var ok bool
			if whole, ok = ungroup(whole, whole[i:i+1]); !ok {
				return out
			}
		}
		if whole == "" {
			whole = "0"
		}
		for _, w := range sound(whole) {
			out = append(out, w+"."+s[last+1:])
		}
	}
	return out
}

// sound refuses what starts with a zero that no number needs: that is an id.
func sound(digits string) []string {
	if len(digits) > 1 && digits[0] == '0' || digits == "" {
		return nil
	}
	return []string{digits}
}

// ungroup takes the separators out of groups of three, or of two before the last three.
func ungroup(s, sep string) (string, bool) {
	parts := strings.Split(s, sep)
	n := len(parts)
	if n < 2 || len(parts[0]) < 1 || len(parts[0]) > 3 || parts[0][0] == '0' || len(parts[n-1]) != 3 {
		return "", false
	}
	for i, p := range parts {
		if strings.ContainsAny(p, ".,' ") || i > 0 && i < n-1 && len(p) != len(parts[1]) || n > 2 && i == 1 && len(p) != 3 && len(p) != 2 {
			return "", false
		}
	}
	if n > 2 && len(parts[1]) == 2 && len(parts[0]) > 2 {
		return "", false
	}
	return strings.Join(parts, ""), true
}

// plainNumber drops what does not change a number.
func plainNumber(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// currencyNames are the names and signs of currencies in the languages that people
// write to us in; the codes of ISO 4217 need no entry. A name of several is all of them.
var currencyNames = func() map[string][]string {
	out := map[string][]string{}
	for codes, names := range map[string]string{
		"USD AUD CAD NZD SGD HKD TWD MXN ARS CLP COP BRL JMD TTD BBD BSD BZD FJD LRD NAD GYD SRD XCD": "$ dollar dollars dólar dólares dollari доллар доллара долларов",
		"USD": "us$ usd$ buck bucks", "AUD": "a$ au$", "CAD": "c$ ca$ can$", "NZD": "nz$", "HKD": "hk$", "SGD": "s$", "TWD": "nt$",
		"EUR": "€ euro euros eurot евро ευρώ", "GBP EGP LBP SYP SDG SSP FKP GIP SHP": "£ pound pounds pfund", "GBP": "quid sterling",
		"JPY CNY": "¥", "JPY": "yen yens 円 jp¥", "CNY TWD": "元 块", "CNY": "yuan rmb renminbi 人民币 cn¥", "KRW KPW": "₩ won 원",
		"INR PKR LKR NPR MUR SCR": "rs rs. rupee rupees", "INR": "₹", "CHF": "fr fr. sfr sfr. franken", "CHF XOF XAF XPF CDF RWF BIF GNF DJF KMF": "franc francs",
		"SEK NOK DKK ISK": "kr kr. krona kronor krone kroner króna", "CZK": "kč koruna korun", "PLN": "zł zl złoty zloty złotych", "RUB BYN": "ruble rubles rouble roubles рубль рубля рублей руб", "RUB": "₽",
		"TRY": "₺ lira liras tl", "BRL": "r$ real reais", "THB": "฿ baht บาท", "VND": "₫ đ dong", "ILS": "₪ shekel shekels nis שקל שקלים", "UAH": "₴ hryvnia гривень гривна",
		"NGN": "₦ naira", "ZAR": "r rand", "MXN ARS CLP COP UYU DOP PHP CUP": "peso pesos", "PHP": "₱", "HUF": "ft forint", "AED": "dirham درهم", "AED MAD": "dirhams", "SAR QAR OMR YER": "riyal riyals ريال",
		"KWD BHD JOD IQD DZD TND LYD RSD MKD": "dinar dinars", "IDR": "rp rupiah", "MYR": "rm ringgit", "KES TZS UGX SOS": "shilling shillings ksh", "CLF": "uf",
	} {
		for _, n := range strings.Fields(names) {
			out[n] = append(out[n], strings.Fields(codes)...)
		}
	}
	return out
}()

// nations narrow the name of a currency that stands behind them.
var nations = map[string]string{"us": "USD", "american": "USD", "australian": "AUD", "canadian": "CAD", "singapore": "SGD", "swiss": "CHF",
	"egyptian": "EGP", "british": "GBP", "english": "GBP", "indian": "INR", "pakistani": "PKR", "mexican": "MXN", "swedish": "SEK", "norwegian": "NOK",
	"danish": "DKK", "kuwaiti": "KWD", "japanese": "JPY", "chinese": "CNY", "zealand": "NZD", "kong": "HKD"}

// currenciesOf are the currencies that a word names; nil where it names none. Codes
// count in small letters only beside a number: "all" and "try" are words.
func currenciesOf(word string, beside bool) []string {
	if word == "" {
		return nil
	}
	if currency.IsValid(word) {
		return []string{word}
	}
	if code := strings.ToUpper(word); beside && currency.IsValid(code) {
		return []string{code}
	}
	return currencyNames[strings.ToLower(word)]
}

// currencyFits checks the currency that is written with a number: the one on it or
// beside it, else every one that its sentence names. A fact has lost its sentence, so
// that there it must be named.
func (w *prose) currencyFits(i int, unit, code string, fact bool) error {
	at := func(j int, beside bool) []string {
		if j < 0 || j >= len(w.tokens) {
			return nil
		}
		word := w.text[w.tokens[j].from:w.tokens[j].to]
		if n, ok := readNumber(word); ok && n.unit != "" {
			return currenciesOf(n.unit, true)
		}
		if j > 0 && nations[strings.ToLower(w.text[w.tokens[j-1].from:w.tokens[j-1].to])] != "" && currenciesOf(word, false) != nil {
			return []string{nations[strings.ToLower(w.text[w.tokens[j-1].from:w.tokens[j-1].to])]}
		}
		return currenciesOf(word, beside)
	}
	var named [][]string
	switch near := [][]string{currenciesOf(unit, true), at(i+1, true), at(i+2, false), at(i-1, true)}; {
	case unit != "":
		named = near[:1]
	case near[1] != nil:
		named = near[1:2]
	case near[2] != nil && nations[w.word(i+1)] != "":
		named = near[2:3]
	case near[3] != nil:
		named = near[3:]
	default:
		from, to := w.sentence(i)
		for j := from; j < to; j++ {
			if codes := at(j, false); codes != nil {
				named = append(named, codes)
			}
		}
	}
	for _, codes := range named {
		if !slices.Contains(codes, code) {
			return Errorf(CodeInvalid, "the user names another currency than %s there: take theirs, or use ask", code)
		}
	}
	if fact && len(named) == 0 {
		return Errorf(CodeInvalid, "the fact names no currency: quote the message, or use ask")
	}
	return nil
}

func (w *prose) word(i int) string {
	if i < 0 || i >= len(w.tokens) {
		return ""
	}
	return strings.ToLower(w.text[w.tokens[i].from:w.tokens[i].to])
}
