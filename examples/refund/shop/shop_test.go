package shop_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund/shop"
)

func eur(minor int64) agent.Money { return agent.Money{Minor: minor, Currency: "EUR"} }

func open(t *testing.T, path string) *shop.Shop {
	t.Helper()
	s, err := shop.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newShop(t *testing.T) *shop.Shop {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "shop.db"))
}

// refund refunds in a transaction of its own, as a tool does.
func refund(ctx context.Context, s *shop.Shop, id string, amount agent.Money) (shop.Refund, error) {
	tx, err := s.DB().BeginTx(ctx, nil)
	if err != nil {
		return shop.Refund{}, err
	}
	r, err := s.Refund(ctx, tx, shop.RefundArgs{OrderID: id, Amount: amount})
	if err != nil {
		return r, errors.Join(err, tx.Rollback())
	}
	return r, tx.Commit()
}

func TestSeededOrders(t *testing.T) {
	s := newShop(t)
	for _, want := range []shop.Order{
		{ID: "1017", CustomerID: "c-017", Item: "USB-C cable, 2 m", Total: eur(1990), Status: "delivered"},
		{ID: "1024", CustomerID: "c-071", Item: "Floor lamp, black", Total: eur(9890), Status: "delivered"},
		{ID: "1042", CustomerID: "c-017", Item: "Desk lamp, black", Total: eur(8990), Status: "delivered"},
		{ID: "1043", CustomerID: "c-017", Item: "Desk lamp, white", Total: eur(7990), Status: "delivered"},
	} {
		got, err := s.Find(t.Context(), shop.FindArgs{OrderID: want.ID})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	var n int
	require.NoError(t, s.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n))
	require.Equal(t, 300, n)
	list, err := s.Refunds(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestFindTellsWhatWasWrong(t *testing.T) {
	s := newShop(t)
	for _, id := range []string{"", "9999", "#1042", " 1042", "1042' OR '1'='1"} {
		_, err := s.Find(t.Context(), shop.FindArgs{OrderID: id})
		require.ErrorIs(t, err, shop.ErrNoSuchOrder, "%q", id)
		require.ErrorContains(t, err, "digits only")
	}
	require.NoError(t, s.Close())
	_, err := s.Find(t.Context(), shop.FindArgs{OrderID: "1042"})
	require.Error(t, err)
	require.NotErrorIs(t, err, shop.ErrNoSuchOrder, "a database that fails is no answer about an order")
}

func TestRefundIsPartOfTheCallersTransaction(t *testing.T) {
	s, ctx := newShop(t), t.Context()
	tx, err := s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = s.Refund(ctx, tx, shop.RefundArgs{OrderID: "1042", Amount: eur(8990)})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	list, err := s.Refunds(ctx)
	require.NoError(t, err)
	require.Empty(t, list)

	got, err := refund(ctx, s, "1042", eur(8990))
	require.NoError(t, err, "what was rolled back did not happen")
	require.Equal(t, shop.Refund{ID: "r-1042", OrderID: "1042", Amount: eur(8990)}, got)
	list, err = s.Refunds(ctx)
	require.NoError(t, err)
	require.Equal(t, []shop.Refund{got}, list)
	o, err := s.Find(ctx, shop.FindArgs{OrderID: "1042"})
	require.NoError(t, err)
	require.Equal(t, "refunded", o.Status)
	require.Equal(t, eur(8990), o.Total)
}

func TestRefusals(t *testing.T) {
	s, ctx := newShop(t), t.Context()
	_, err := refund(ctx, s, "1017", eur(990))
	require.NoError(t, err, "a part of the total")
	for name, c := range map[string]struct {
		id     string
		amount agent.Money
		says   string
	}{
		"no such order":    {"9999", eur(100), "no such order"},
		"too much":         {"1042", eur(8991), "89.91 EUR is more than its total of 89.90 EUR"},
		"other currency":   {"1042", agent.Money{Minor: 8990, Currency: "USD"}, `paid in EUR, not in "USD"`},
		"no currency":      {"1042", agent.Money{Minor: 8990}, "paid in EUR"},
		"nothing":          {"1042", eur(0), "not an amount"},
		"less":             {"1042", eur(-8990), "not an amount"},
		"again":            {"1017", eur(990), "refunded already"},
		"again, the rest":  {"1017", eur(1000), "refunded already"},
		"number not exact": {"1042 ", eur(8990), "no such order"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := refund(ctx, s, c.id, c.amount)
			var no *shop.Refusal
			require.ErrorAs(t, err, &no)
			require.Equal(t, c.id, no.OrderID)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, no.Reason == "the shop has no such order", errors.Is(err, shop.ErrNoSuchOrder))
		})
	}
	list, err := s.Refunds(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestARefusalLeavesTheTransactionUsable(t *testing.T) {
	s, ctx := newShop(t), t.Context()
	_, err := refund(ctx, s, "1017", eur(1990))
	require.NoError(t, err)
	tx, err := s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	var no *shop.Refusal
	_, err = s.Refund(ctx, tx, shop.RefundArgs{OrderID: "1017", Amount: eur(1990)})
	require.ErrorAs(t, err, &no)
	_, err = s.Refund(ctx, tx, shop.RefundArgs{OrderID: "1043", Amount: eur(7990)})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	list, err := s.Refunds(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
}

func TestADatabaseErrorIsNoRefusal(t *testing.T) {
	s, ctx := newShop(t), t.Context()
	tx, err := s.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	_, err = s.Refund(ctx, tx, shop.RefundArgs{OrderID: "1042", Amount: eur(8990)})
	require.ErrorIs(t, err, sql.ErrTxDone)
	var no *shop.Refusal
	require.NotErrorAs(t, err, &no)
}

// Of many who refund one order at the same time, through two handles on the
// file, one succeeds, and the others learn that it is done, not that the
// database is busy.
func TestOneRefundOfManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	shops := []*shop.Shop{open(t, path), open(t, path)}
	errs := make([]error, 12)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = refund(t.Context(), shops[i%2], "1042", eur(8990)) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		var no *shop.Refusal
		require.ErrorAs(t, err, &no)
	}
	require.Equal(t, 1, won)
}

// A transaction that is under way holds up writers no longer than they wait,
// and readers not at all.
func TestReadersDoNotWaitForAWriter(t *testing.T) {
	s := newShop(t)
	tx, err := s.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = s.Find(ctx, shop.FindArgs{OrderID: "1042"})
	require.NoError(t, err)
	_, err = s.DB().BeginTx(ctx, nil)
	require.Error(t, err, "a second writer waits when it begins, not halfway")
}
