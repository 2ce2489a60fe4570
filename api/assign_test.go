package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api"
)

// A gate is looked at by one person; the list says so; they let it go, hand it over,
// or an operator takes it away. Anybody who may decide does so all the same.
func TestAssign(t *testing.T) {
	l := newLab(t)
	path, gate := l.atGate("k")
	assigned := func() *api.Assigned {
		page := into[api.GatePage](l.get("ann", "/v1/gates").ok(http.StatusOK))
		return page.Gates[0].Assigned
	}
	require.Nil(t, assigned())
	l.post("ann", path+"/gates/1.1/assign", "a-1", nil).ok(http.StatusOK)
	a := assigned()
	require.Equal(t, []string{"ann", "ann", ""}, []string{a.To, a.By, a.For})
	p := l.post("bob", path+"/gates/1.1/assign", "a-2", nil).problem(http.StatusConflict, agent.CodeConflict)
	require.Contains(t, p.Detail, "ann looks at it until")
	l.post("bob", path+"/gates/1.1/unassign", "a-3", nil).ok(http.StatusOK)
	require.Equal(t, "ann", assigned().To, "it is not bob's to let go")
	l.post("ann", path+"/gates/1.1/assign", "a-4", map[string]any{"to": "bob", "minutes": 30}).ok(http.StatusOK)
	a = into[api.GateLine](l.get("bob", path+"/gates/1.1").ok(http.StatusOK)).Assigned
	require.Equal(t, []string{"bob", "ann"}, []string{a.To, a.By})
	l.post("op", path+"/gates/1.1/assign", "a-5", nil).ok(http.StatusOK)
	require.Equal(t, "op", assigned().To)
	l.post("op", path+"/gates/1.1/unassign", "a-6", nil).ok(http.StatusOK)
	require.Nil(t, assigned())
	l.post("ann", path+"/gates/1.1/assign", "a-7", `{"minutes":481}`).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("ann", path+"/gates/1.1/assign", "a-7", `{"to":"b\nob"}`).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("ann", path+"/gates/1.1/assign", "a-8", nil).ok(http.StatusOK)
	l.post("bob", path+"/gates/1.1/verdict", "v-1", map[string]string{"digest": gate.Digest, "verdict": "approve"}).ok(http.StatusOK)
	l.post("ann", path+"/gates/1.1/assign", "a-9", nil).problem(http.StatusConflict, agent.CodeGateClosed)
}

// Who stands in for somebody has their gates while they are away.
func TestAbsences(t *testing.T) {
	l := newLab(t)
	path, _ := l.atGate("k")
	l.post("ann", path+"/gates/1.1/assign", "a-1", nil).ok(http.StatusOK)
	until := "2099-01-01T00:00:00Z"
	l.post("bob", "/v1/absences", "b-1", map[string]string{"subject": "ann", "cover": "bob", "until": until}).problem(http.StatusForbidden, agent.CodeDenied)
	l.post("ann", "/v1/absences", "b-2", map[string]string{"cover": "ann", "until": until}).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("ann", "/v1/absences", "b-3", map[string]string{"cover": "bob", "until": "2001-01-01T00:00:00Z"}).problem(http.StatusUnprocessableEntity, agent.CodeInvalid)
	l.post("ann", "/v1/absences", "b-4", map[string]string{"cover": "bob", "until": until}).ok(http.StatusOK)
	a := into[api.GateLine](l.get("bob", path+"/gates/1.1").ok(http.StatusOK)).Assigned
	require.Equal(t, []string{"bob", "ann", "ann"}, []string{a.To, a.By, a.For})
	l.post("bob", path+"/gates/1.1/assign", "a-2", nil).ok(http.StatusOK)
	l.post("nurse", "/v1/absences/ann/end", "b-5", nil).problem(http.StatusForbidden, agent.CodeDenied)
	require.Len(t, into[api.AbsenceList](l.get("op", "/v1/absences").ok(http.StatusOK)).Absences, 1)
	require.Empty(t, into[api.AbsenceList](l.get("evil", "/v1/absences").ok(http.StatusOK)).Absences)
	l.post("op", "/v1/absences/ann/end", "b-6", nil).ok(http.StatusOK)
	l.post("op", "/v1/absences/ann/end", "b-7", nil).ok(http.StatusOK)
	a = into[api.GateLine](l.get("bob", path+"/gates/1.1").ok(http.StatusOK)).Assigned
	require.Equal(t, []string{"bob", "bob", ""}, []string{a.To, a.By, a.For}, "what they took meanwhile stays theirs")
}
