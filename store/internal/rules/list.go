package rules

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"interlock/agent"
	"interlock/store"
)

// Query is a list's query that grows by the conditions that are asked for, so
// that the database plans for these alone. Mark is what stands before a
// parameter's number.
type Query struct {
	Text string
	Args []any
	Mark string
}

// And adds a condition in which each of the values has its %, in order.
func (q *Query) And(condition string, values ...any) {
	q.Text += " AND "
	q.add(condition, values)
}

// Equal adds a condition, unless the value is empty.
func (q *Query) Equal(column, value string) {
	if value != "" {
		q.And(column+" = %", value)
	}
}

// Begins adds a condition, unless the prefix is empty, which an index on the column
// serves. The column is compared by its bytes, and holds valid UTF-8.
func (q *Query) Begins(column, prefix string) {
	if prefix != "" {
		q.And(column+" >= % AND "+column+" < %", prefix, prefix+string(utf8.MaxRune))
	}
}

// End adds what follows the conditions.
func (q *Query) End(text string, values ...any) { q.add(" "+text, values) }

func (q *Query) add(text string, values []any) {
	parts := strings.Split(text, "%")
	for i, part := range parts {
		q.Text += part
		if i < len(parts)-1 {
			q.Args = append(q.Args, values[i])
			q.Text += q.Mark + strconv.Itoa(len(q.Args))
		}
	}
}

// PageSize is how many rows a list has at most.
func PageSize(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, 500)
}

// Cursor names a run's place in a list. It is opaque to callers.
func Cursor(startedAt time.Time, address, firstRunID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(startedAt.UnixMicro(), 10) + "\x00" + address + "\x00" + firstRunID))
}

// ParseCursor is what a cursor was made of.
func ParseCursor(c string) (startedAt time.Time, address, firstRunID string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(c)
	parts := strings.Split(string(text), "\x00")
	if err == nil && len(parts) == 3 {
		if at, err := strconv.ParseInt(parts[0], 10, 64); err == nil && store.CheckText("", parts[1], "", parts[2]) == nil {
			return time.UnixMicro(at).UTC(), parts[1], parts[2], nil
		}
	}
	return time.Time{}, "", "", agent.Errorf(agent.CodeInvalid, "%q is no cursor of a list of runs", c)
}

// GateCursor names a gate's place in a list.
type GateCursor struct {
	OpenedAt            time.Time
	Address, FirstRunID string
	Opened              int64 // its event
}

func (c GateCursor) String() string {
	return Cursor(c.OpenedAt, c.Address, c.FirstRunID+"\x00"+strconv.FormatInt(c.Opened, 10))
}

// ParseGateCursor is what a cursor was made of.
func ParseGateCursor(c string) (at GateCursor, err error) {
	text, err := base64.RawURLEncoding.DecodeString(c)
	parts := strings.Split(string(text), "\x00")
	if err == nil && len(parts) == 4 && store.CheckText("", parts[1], "", parts[2]) == nil {
		opened, err1 := strconv.ParseInt(parts[0], 10, 64)
		n, err2 := strconv.ParseInt(parts[3], 10, 64)
		if err1 == nil && err2 == nil {
			return GateCursor{time.UnixMicro(opened).UTC(), parts[1], parts[2], n}, nil
		}
	}
	return at, agent.Errorf(agent.CodeInvalid, "%q is no cursor of a list of gates", c)
}

// Ceil is the first whole microsecond that is not before t: a time before t is
// before it too.
func Ceil(t time.Time) time.Time {
	if cut := t.Truncate(time.Microsecond); cut.Before(t) {
		return cut.Add(time.Microsecond)
	}
	return t
}

// AddRows adds what one branch wrote, and one branch superseded ("" for what is
// live), to a list of branches.
func AddRows(branches []store.Branch, b store.Branch, rows int) []store.Branch {
	if b.SupersededBy != "" {
		b.Superseded = rows
	}
	i := slices.IndexFunc(branches, func(o store.Branch) bool { return o.RunID == b.RunID })
	if i < 0 {
		return append(branches, b)
	}
	known := &branches[i]
	known.First, known.Last = min(known.First, b.First), max(known.Last, b.Last)
	known.Superseded += b.Superseded
	return branches
}
