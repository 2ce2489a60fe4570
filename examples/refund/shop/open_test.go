package shop_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/examples/refund/shop"
)

func TestReopeningKeepsWhatHappened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	s := open(t, path)
	want, err := refund(t.Context(), s, "1042", eur(8990))
	require.NoError(t, err)
	_, err = s.DB().ExecContext(t.Context(), "DELETE FROM orders WHERE id = '1300'")
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = open(t, path)
	list, err := s.Refunds(t.Context())
	require.NoError(t, err)
	require.Equal(t, []shop.Refund{want}, list)
	_, err = s.Find(t.Context(), shop.FindArgs{OrderID: "1300"})
	require.ErrorIs(t, err, shop.ErrNoSuchOrder, "orders are seeded once")
}

func TestManyOpenANewShopAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	errs := make([]error, 6)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			s, err := shop.Open(t.Context(), path)
			if errs[i] = err; err == nil {
				errs[i] = s.Close()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	for _, path := range []string{"", ":memory:", t.TempDir(), filepath.Join(t.TempDir(), "no", "such", "folder.db")} {
		_, err := shop.Open(t.Context(), path)
		require.Error(t, err, "%q", path)
	}
}

func TestPathsAreTakenAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a shop? 100% #1.db")
	open(t, path)
	require.FileExists(t, path)
}

func TestConnectionsHaveTheirSettings(t *testing.T) {
	s := newShop(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "1500"} {
		var got string
		require.NoError(t, s.DB().QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
}

func TestSeedIsWellFormed(t *testing.T) {
	f, err := os.Open("seed.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"id", "customer_id", "item", "total_minor", "currency", "ordered_on", "status"}, rows[0])
	form := []string{`\d{4}`, `c-\d{3}`, `\S.*\S`, `[1-9]\d*`, `[A-Z]{3}`, `\d{4}-\d\d-\d\d`, `paid|shipped|delivered`}
	for _, r := range rows[1:] {
		for i, cell := range r {
			require.Regexp(t, regexp.MustCompile(`^(?:`+form[i]+`)$`), cell, "order %s", r[0])
		}
	}
}
