package tool_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

func TestListEffects(t *testing.T) {
	ctx := context.Background()
	for engine, open := range openers {
		t.Run(engine, func(t *testing.T) {
			db := open(t)
			_, err := tool.ListEffects(ctx, db.DB, tool.EffectFilter{})
			require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), err)
			db.do(t, firstTable...)
			_, err = tool.ListEffects(ctx, db.DB, tool.EffectFilter{})
			require.ErrorContains(t, err, "of an older Interlock: run `interlock effects install DSN` first")
			require.Equal(t, 11, len(columnsOf(t, db)), "a list changes nothing")

			before := time.Now().Add(-time.Second)
			r := transactional(db.DB, pay)
			untilSettled(t, r, keyed("a"))
			other := keyed("b")
			other.Tenant, other.Scope, other.Agent, other.Version, other.Tool, other.Step, other.Ordinal = "other", "other/b/k/run-2", "b", 2, "u", "2.1", 1
			untilSettled(t, r, other)
			_, f := attempt(transactional(db.DB, functions["a refusal after a write"].run), keyed("c"))
			isFailure(t, f, tool.FailedRefused, false, "")
			_, f = attempt(transactional(db.DB, functions["commits, and then an error"].run), keyed("d"))
			isFailure(t, f, tool.FailedInDoubt, true, "")
			require.NoError(t, r.Undone(ctx, keyed("a"), "undo", tool.Ports{}))

			keys := func(f tool.EffectFilter) (out []string) {
				rows, err := tool.ListEffects(ctx, db.DB, f)
				require.NoError(t, err)
				for _, e := range rows {
					out = append(out, e.Key)
				}
				return out
			}
			require.Equal(t, []string{"d", "c", "b", "a", "old"}, keys(tool.EffectFilter{}))
			require.Equal(t, []string{"d", "c"}, keys(tool.EffectFilter{Limit: 2}))
			require.Equal(t, []string{"b"}, keys(tool.EffectFilter{Tenant: "other"}))
			require.Equal(t, []string{"b"}, keys(tool.EffectFilter{Tool: "u"}))
			require.Equal(t, []string{"b"}, keys(tool.EffectFilter{Agent: "b"}))
			require.Equal(t, []string{"d", "c", "a", "old"}, keys(tool.EffectFilter{Agent: "a"}), "also where the row does not tell")
			require.Equal(t, []string{"d", "c", "a"}, keys(tool.EffectFilter{Tenant: "acme", Version: 1}))
			require.Equal(t, []string{"d", "c", "b", "a"}, keys(tool.EffectFilter{Since: before}))
			require.Equal(t, []string{"old"}, keys(tool.EffectFilter{Until: before}))
			require.Equal(t, []string{"old"}, keys(tool.EffectFilter{Since: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Until: time.Date(2026, 3, 1, 9, 0, 1, 0, time.UTC)}))
			require.Empty(t, keys(tool.EffectFilter{Agent: "_"}), "no pattern")

			rows, err := tool.ListEffects(ctx, db.DB, tool.EffectFilter{})
			require.NoError(t, err)
			for _, e := range rows {
				require.Equal(t, map[string]tool.RecordedStatus{"a": "undone", "b": "applied", "c": "refused", "d": "in_doubt", "old": "applied"}[e.Key], e.Status, e.Key)
			}
			b := rows[2]
			require.WithinDuration(t, time.Now(), b.At, time.Minute)
			b.At = time.Time{}
			require.Equal(t, tool.RecordedEffect{Tenant: "other", Key: "b", Address: "other/b/k", Scope: "other/b/k/run-2", Agent: "b", Version: 2, Tool: "u", Step: "2.1",
				Ordinal: 1, Args: other.Args, Status: tool.RecordedApplied, Result: agent.JSON(paidResult)}, b)
			require.Equal(t, "undo", rows[3].UndoneBy)
			require.WithinDuration(t, time.Now(), *rows[3].UndoneAt, time.Minute)
			require.Equal(t, "account closed", rows[1].Refused)
			require.Equal(t, "acme/a/k", rows[4].Address)
			require.Equal(t, "a", rows[4].Agent)
		})
	}
}

func columnsOf(t *testing.T, p *product) []string {
	rows, err := p.Query(`SELECT * FROM interlock_effects WHERE 1 = 0`)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	names, err := rows.Columns()
	require.NoError(t, err)
	return names
}
